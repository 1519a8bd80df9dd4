"""Lint refuses each way in which a probe measures less than it seems to, and says what to do."""

from __future__ import annotations

from typing import Any

import pytest

from eval_core.base.messages import Message
from eval_core.domain.fixture import Fixture
from eval_core.domain.probe import ProbeBank
from eval_core.suite.lint import LintFinding, fill_evidence, lint, manifest

FACTS = {
    4: "The importer lives in ledger/importer.py, commit 4d68d0b9.",
    6: "We use SQLite for the queue, batch size 4800.",
    8: "Moved from SQLite to Postgres, batch size 1280 with a pause of 120 ms.",
    10: "The freeze ends on 4 December, see LEDG-326; room is #pricing-watch.",
    12: "KeyError: 'union_id' came up in parse_event.",
}


def session(name: str = "queue-move", **more: str) -> Fixture:
    messages: list[Message] = [
        {"role": "system", "content": "You help."},
        {"role": "user", "content": "Move the queue."},
    ]
    for index in range(2, 20):
        role = "assistant" if index % 2 else "user"
        messages.append({"role": role, "content": FACTS.get(index, f"Step {index} goes on.")})
    for index, text in more.items():
        messages[int(index.removeprefix("at"))]["content"] = text
    return Fixture(name=name, messages=messages)


def probe(identifier: str, kind: str, question: str, *facts: Any, **more: Any) -> dict[str, Any]:
    return {"id": identifier, "type": kind, "question": question, "expected_facts": list(facts), **more}


def good() -> list[dict[str, Any]]:
    return [
        probe("a-importer", "artifact", "Where does the code live?", {"fact": "ledger/importer.py", "evidence": [4]}),
        probe("b-hash", "artifact", "Under which hash?", {"fact": "4d68d0b", "evidence": [4]}),
        probe(
            "c-store",
            "decision",
            "Which database?",
            {"fact": "Postgres", "evidence": [8]},
            {"not": "SQLite", "evidence": [6]},
        ),
        probe("d-batch", "decision", "Which batch size?", {"fact": "1280", "evidence": [8]}),
        probe("e-pause", "recall", "Which pause?", {"fact": "120 ms", "evidence": [8]}),
        probe("f-error", "recall", "What was raised?", {"all": ["KeyError", "union_id"], "evidence": [12]}),
        probe("g-freeze", "continuation", "Until when?", {"any": ["4 December", "December 4"], "evidence": [10]}),
        probe("h-ticket", "continuation", "Which ticket?", {"regex": r"LEDG-\s?326", "evidence": [10]}),
    ]


def bank(probes: list[dict[str, Any]], fixture: str = "queue-move") -> ProbeBank:
    return ProbeBank.model_validate({"fixture": fixture, "probes": probes})


def findings(*changed: dict[str, Any], **options: Any) -> list[LintFinding]:
    probes = {entry["id"]: entry for entry in good()}
    probes.update({entry["id"]: entry for entry in changed})
    return lint(bank(list(probes.values())), session(), **options)


def rules(*changed: dict[str, Any], **options: Any) -> set[tuple[str, str, str | None]]:
    return {(finding.level, finding.rule, finding.probe) for finding in findings(*changed, **options)}


def test_a_sound_bank_has_no_findings() -> None:
    assert findings() == []


@pytest.mark.parametrize(
    ("fact", "level", "rule"),
    [
        ({"fact": "ledger/exporter.py", "evidence": [4]}, "error", "not-in-fixture"),
        ({"all": ["KeyError", "open_id"], "evidence": [12]}, "error", "not-in-fixture"),
        ({"any": ["5 May", "6 June"], "evidence": [10]}, "error", "not-in-fixture"),
        ({"regex": "LEDG-999", "evidence": [10]}, "error", "not-in-fixture"),
        ({"fact": "4d68d0b", "evidence": [6]}, "error", "evidence-wrong"),
        ({"fact": "4d68d0b", "evidence": [4, 6]}, "warning", "evidence-partly-wrong"),
        ({"fact": "4d68d0b", "evidence": [4, 99]}, "error", "evidence-range"),
        ({"fact": "4d68d0b", "evidence": [-1]}, "error", "evidence-range"),
        ({"fact": "4d68d0b"}, "warning", "evidence-missing"),
        ({"fact": "7", "evidence": [7]}, "error", "too-common"),
        ({"fact": "step", "evidence": [3]}, "error", "too-common"),
        ({"any": ["4d68d0b", "yes"], "evidence": [4]}, "error", "too-common"),
        ({"regex": ".*", "evidence": [4]}, "error", "too-common"),
        ({"regex": "(4d+)+68", "evidence": [4]}, "error", "slow-regex"),
    ],
)
def test_a_fact_that_measures_nothing_is_found(fact: dict[str, Any], level: str, rule: str) -> None:
    assert rules(probe("b-hash", "artifact", "Which commit?", fact)) == {(level, rule, "b-hash")}


@pytest.mark.parametrize("word", ["3", "no", "yes", "correct", "ok"])
def test_everyday_words_are_refused_as_facts(word: str) -> None:
    found = rules(probe("b-hash", "artifact", "Which?", {"fact": word, "evidence": [4]}))
    assert ("error", "too-common", "b-hash") in found


def test_a_fact_in_parts_is_too_common_only_if_all_its_parts_are() -> None:
    def found(*parts: str) -> set[str]:
        entry = probe("b-hash", "artifact", "Which?", {"all": list(parts), "evidence": [4, 3]})
        return {rule for _, rule, _ in rules(entry)}

    assert "too-common" not in found("4d68d0b", "7")
    assert "too-common" in found("step", "7")


def test_two_cjk_characters_say_enough() -> None:
    fixture = session(at4="部署到生产环境 ledger/importer.py 4d68d0b9")
    entry = probe("x-cjk", "recall", "Where to?", {"fact": "生产", "evidence": [4]})
    assert [item for item in lint(bank([*good(), entry]), fixture) if item.probe == "x-cjk"] == []


def test_the_nearest_value_of_the_fixture_is_offered() -> None:
    (finding,) = findings(probe("a-importer", "artifact", "Where?", {"fact": "ledger/imports.py", "evidence": [4]}))
    assert "did you mean 'ledger/importer.py'?" in finding.message


@pytest.mark.parametrize(
    ("value", "advice"),
    [("parse", "it only appears inside something longer"), ("2026", "quote a value from a message")],
)
def test_a_value_inside_a_longer_word_is_told_from_one_that_is_nowhere(value: str, advice: str) -> None:
    changed = findings(probe("a-importer", "artifact", "Where?", {"fact": value, "evidence": [4]}))
    assert any(advice in finding.message for finding in changed if finding.rule == "not-in-fixture")


def test_a_question_may_not_give_its_answer_away() -> None:
    changed = probe("d-batch", "decision", "Is the batch size 1,280 now?", {"fact": "1280", "evidence": [8]})
    assert rules(changed) == {("error", "given-away", "d-batch")}


def test_a_question_may_name_what_was_superseded() -> None:
    facts = {"fact": "Postgres", "evidence": [8]}, {"not": "SQLite", "evidence": [6]}
    assert rules(probe("c-store", "decision", "What replaced SQLite?", *facts)) == set()


def test_a_superseded_value_must_have_been_said() -> None:
    facts = {"fact": "Postgres", "evidence": [8]}, {"not": "Oracle", "evidence": [6]}
    assert rules(probe("c-store", "decision", "Which?", *facts)) == {("error", "superseded-not-in-fixture", "c-store")}


def test_a_superseded_value_should_come_before_its_replacement() -> None:
    facts = {"fact": "4d68d0b9", "evidence": [4]}, {"not": "SQLite", "evidence": [6]}
    assert rules(probe("c-store", "decision", "Which?", *facts)) == {("warning", "superseded-order", "c-store")}


def test_a_fact_that_another_fixture_holds_too_is_only_noted() -> None:
    others = {
        "queue-move": session(),
        "other": session("other", at4="x", at8="Also a pause of 120 ms.", at10="y", at12="z"),
    }
    assert rules(others=others) == {("note", "in-other-fixture", "e-pause")}


def test_each_of_the_four_types_must_be_asked() -> None:
    probes = [entry for entry in good() if entry["type"] != "continuation"]
    found = {(item.level, item.rule) for item in lint(bank(probes), session())}
    assert found == {("error", "type-missing"), ("warning", "probe-count")}


def test_too_many_probes_are_warned_of() -> None:
    more = [probe(f"x-{n}", "recall", "Which pause?", {"fact": "120 ms", "evidence": [8]}) for n in range(5)]
    assert rules(*more) == {("warning", "probe-count", None)}


def test_a_draft_is_refused_until_a_person_took_it_over() -> None:
    assert rules({**good()[1], "draft": True}) == {("error", "draft", "b-hash")}


def test_a_bank_belongs_to_its_fixture() -> None:
    assert {item.rule for item in lint(bank(good(), "another"), session())} == {"wrong-fixture"}


EDGE = probe("z-edge", "recall", "What now?", {"fact": "zebra crossing", "evidence": [17]})


def test_facts_only_at_the_edges_need_a_reason_and_only_once() -> None:
    fixture = session(at17="Go to the zebra crossing.")

    def found(*extra: dict[str, Any]) -> set[tuple[str, str | None]]:
        return {(item.rule, item.probe) for item in lint(bank([*good(), *extra]), fixture)}

    assert found(EDGE) == {("edge-only", "z-edge")}
    assert found({**EDGE, "kept_verbatim": "Checks the tail."}) == set()
    twice = {**EDGE, "kept_verbatim": "Checks the tail."}, {**EDGE, "id": "z-two", "kept_verbatim": "Again."}
    assert found(*twice) == {("kept-verbatim-twice", None)}


def test_one_fact_in_the_middle_is_enough_for_a_probe() -> None:
    fixture = session(at17="Go to the zebra crossing.")
    mixed = {**EDGE, "expected_facts": [*EDGE["expected_facts"], {"fact": "KeyError", "evidence": [12]}]}
    assert lint(bank([*good(), mixed]), fixture) == []
    assert lint(bank([*good(), mixed]), fixture, verbatim=frozenset({17})) == []


def test_a_fact_that_is_nowhere_says_nothing_of_where_the_others_are() -> None:
    fixture = session(at17="Go to the zebra crossing.")
    missing = {**EDGE, "expected_facts": [*EDGE["expected_facts"], {"fact": "open_id", "evidence": [12]}]}
    assert {item.rule for item in lint(bank([*good(), missing]), fixture)} == {"not-in-fixture"}


def test_a_needless_reason_is_pointed_out() -> None:
    assert rules({**good()[1], "kept_verbatim": "Why not."}) == {("warning", "kept-verbatim-needless", "b-hash")}


def test_a_probe_on_what_the_target_keeps_is_warned_of() -> None:
    assert rules(verbatim=frozenset({12})) == {("warning", "kept-by-target", "f-error")}
    assert rules(verbatim=frozenset()) == set()


def test_evidence_is_filled_where_it_lacks_and_what_is_written_stays() -> None:
    probes = good()
    del probes[5]["expected_facts"][0]["evidence"]
    probes[3]["expected_facts"][0]["evidence"] = [8, 9]
    filled = fill_evidence(bank(probes), session())
    assert filled.probes[5].expected_facts[0].evidence == [12]
    assert filled.probes[3].expected_facts[0].evidence == [8, 9]
    assert filled.probes[0] == bank(probes).probes[0]


def test_a_fact_in_parts_is_filled_with_the_messages_of_each_part() -> None:
    entry = probe("x-all", "recall", "Which two?", {"all": ["Postgres", "union_id"]})
    assert fill_evidence(bank([entry]), session()).probes[0].expected_facts[0].evidence == [8, 12]


def test_the_manifest_lists_every_probe_in_order() -> None:
    lines = manifest([bank(good()), bank(good()[:1], "another")])
    assert lines[0] == "another/a-importer"
    assert lines == sorted(lines)
    assert len(lines) == 9
