"""Each strand of evidence is read off real compressions, and a change in it is named."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import small
from comparing.arms import noisy

from eval_core.base.config import AcceptConfig
from eval_core.base.errors import UserError
from eval_core.base.messages import Message
from eval_core.base.tokens import count_messages
from eval_core.comparing.compare import ReportData, compare_measurements, without_stubs
from eval_core.comparing.headline import changed
from eval_core.comparing.rule import decide_kind
from eval_core.comparing.verdict import decide, exit_code
from eval_core.domain.case import Case
from eval_core.domain.compression import Outcome
from eval_core.domain.fingerprint import narrowed
from eval_core.domain.measurement import Measurement
from eval_core.domain.record import AT_BUDGETS, FormRecord, RunRecord, SectionRecord
from eval_core.domain.target import read_target
from eval_core.facts.fact_text import Haystack
from eval_core.facts.retention import FixtureFacts, probe_in_session
from eval_core.facts.session_facts import SessionFacts
from eval_core.facts.verbatim import Kept
from eval_core.judging.fact_judge import FactJudge
from eval_core.reporting.html.frontier import frontier
from eval_core.statistics.exact import Counts, fewer_p, smallest_p
from eval_core.strands.acceptance import removal
from eval_core.strands.evidence import read_evidence
from eval_core.strands.findings import FactChange, Finding, Kind, StrandState, weigh
from eval_core.strands.form import compare_form, degenerate_runs, form_strand, labels, read_form, sections
from eval_core.strands.invented import read_invented, read_stale
from eval_core.strands.shown import shown_finding
from eval_core.strands.window import read_window


@pytest.fixture(scope="module")
def case(shipped: list[Case]) -> Case:
    return next(case for case in shipped if case.fixture.name == "debug-session-feishu-id-model")


@pytest.fixture(scope="module")
def suite(shipped: list[Case]) -> list[Case]:
    return [case for case in shipped if case.fixture.name.startswith(("debug", "constraints"))]


@pytest.fixture(scope="module")
def base(suite: list[Case], tmp_path_factory: pytest.TempPathFactory) -> Measurement:
    return small.measure(suite, tmp_path_factory.mktemp("base"), "anchored", 2, 2)


def _edited(measurement: Measurement, **update: object) -> Measurement:
    fixtures = {name: [run.model_copy(update=update) for run in runs] for name, runs in measurement.fixtures.items()}
    return measurement.model_copy(update={"fixtures": fixtures})


def _by_model(measurement: Measurement) -> Measurement:
    """Return the measurement as if a model had written the summaries, without counts of its calls."""
    fixtures = {
        name: [run.model_copy(update={"use": {}}) for run in runs] for name, runs in measurement.fixtures.items()
    }
    models = {**measurement.models, "compressor": "acme/large"}
    return measurement.model_copy(update={"models": models, "fixtures": fixtures})


# Outcome


def test_where_the_base_never_compressed_the_others_are_compared_and_it_is_said(base: Measurement) -> None:
    name = "debug-session-feishu-id-model"
    failed = [run.model_copy(update={"outcome": Outcome.TARGET_ERROR, "probes": {}}) for run in base.fixtures[name]]
    before = base.model_copy(update={"fixtures": {**base.fixtures, name: failed}})
    verdict, _ = compare_measurements(before, base)
    assert verdict.kind is Kind.IMPROVED
    assert verdict.reasons == ()
    assert verdict.remarks == (f"Not compared: {name}. In the base, the compressor ended in an error in every run.",)
    assert verdict.headline == "Improved: 1 fixture compresses again."
    calm, _ = compare_measurements(before, before)
    assert (calm.kind, calm.remarks) == (Kind.NO_DETECTABLE_CHANGE, verdict.remarks)
    other = next(fixture for fixture in base.fixtures if fixture != name)
    losing = [run.model_copy(update={"structure": dict.fromkeys(run.structure, False)}) for run in base.fixtures[other]]
    worse, _ = compare_measurements(before, base.model_copy(update={"fixtures": {**base.fixtures, other: losing}}))
    assert worse.kind is Kind.REGRESSED


def test_what_a_provider_failed_at_in_the_base_is_still_missing(base: Measurement) -> None:
    name = "debug-session-feishu-id-model"
    failed = [run.model_copy(update={"outcome": Outcome.INFRA, "probes": {}}) for run in base.fixtures[name]]
    before = base.model_copy(update={"fixtures": {**base.fixtures, name: failed}})
    assert compare_measurements(before, base)[0].kind is Kind.INCOMPLETE


# Form


@pytest.mark.parametrize(
    "text",
    [
        "## Current State\nport 8443",
        "**Current State**\nport 8443",
        "**Current State:** port 8443",
        "<current_state>\nport 8443\n</current_state>",
        '{\n  "current_state": "port 8443"\n}',
        "CURRENT STATE:\nport 8443",
        "3. Current State\nport 8443",
        "Current State: port 8443",
        "Current State\n-------------\nport 8443",
        '{"current_state": "port 8443", "files": ["a.py"]}',
        '<section name="Current State">\nport 8443\n</section>',
    ],
)
def test_a_section_is_found_in_every_style(text: str) -> None:
    (first, *_) = sections(text)
    assert first.label == "current state"
    assert not first.empty


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("## Nächste Schritte\nDeploy", "nächste schritte"),
        ("Änderungen: a.py", "änderungen"),
        ("1. Überblick\nalles", "überblick"),
        ("ÄNDERUNGEN\na.py", "änderungen"),
        ("##当前任务\n部署", "当前任务"),
        ("**文件：** a.py", "文件"),
        ("文件：a.py", "文件"),
        ("【文件】\na.py", "文件"),
        ("一、当前任务\n部署", "当前任务"),
        ("Файлы: a.py", "файлы"),
    ],
)
def test_a_section_is_found_in_every_language(text: str, label: str) -> None:
    assert [section.label for section in sections(text)] == [label]
    assert not sections(text)[0].empty


@pytest.mark.parametrize("nothing", ["(none)", "- Keine", "无", "暂无", "Aucun", "なし", "-"])
def test_a_section_that_says_nothing_is_empty_in_any_language(nothing: str) -> None:
    assert sections(f"## Blockers\n{nothing}")[0].empty


@pytest.mark.parametrize(
    "text", ["see: a.py", "it works: yes", "#2147 is open", "It runs.\nIt passes\n---\nb.py is here", '- {"a": 1}']
)
def test_a_sentence_is_no_section(text: str) -> None:
    assert sections(text) == ()


def test_headings_in_code_and_in_a_sentence_are_no_sections() -> None:
    assert labels('Read the "## Current State" part.') == []
    assert [section.label for section in sections("```\n# not this\n```\n## Real\ntext")] == ["real"]


def test_a_section_holds_the_deeper_ones_and_an_empty_one_is_told() -> None:
    form = read_form(["## State\nPort: 8443\n## Blockers\n(none)\n"])
    assert {item.label: item.tokens > 0 for item in form.sections} == {"state": True, "port": True, "blockers": False}


def _forms(fixtures: int, runs: int, label_sets: list[list[str]]) -> dict[str, list[RunRecord]]:
    def run(name: str, number: int) -> RunRecord:
        found = label_sets[number % len(label_sets)]
        return RunRecord(
            fixture=name,
            run=number,
            graded=False,
            outcome=Outcome.OK,
            summary="\n".join(f"## {label}\nwords about {label}" for label in found),
            form=FormRecord(sections=[SectionRecord(label=label, tokens=9) for label in found], tokens=100),
        )

    return {f"f{at}": [run(f"f{at}", number) for number in range(runs)] for at in range(fixtures)}


def test_a_text_of_nothing_but_headings_is_read_once_and_not_once_for_each() -> None:
    found = sections("# a\n## b\n" * 60_000)
    assert len(found) == 120_000
    assert found[0].text == "\n## b"


def test_a_dropped_section_is_named_though_headings_are_left_out_now_and_then() -> None:
    usual = [["goal", "files", "state"]] * 9 + [["goal", "state"]]
    before, now = _forms(5, 10, usual), _forms(5, 10, [["goal", "state"]])
    assert compare_form(before, now).gone == ("files",)
    assert compare_form(before, before).gone == ()
    assert compare_form(before, now, ["Files"]).accepted == ("files",)
    assert compare_form(before, now, ["Files"]).gone == ()


def _written(fixtures: int, runs: int, text: str) -> dict[str, list[RunRecord]]:
    def run(name: str, number: int) -> RunRecord:
        form = read_form([text])
        return RunRecord(fixture=name, run=number, graded=False, outcome=Outcome.OK, summary=text, form=form)

    return {f"f{at}": [run(f"f{at}", number) for number in range(runs)] for at in range(fixtures)}


def test_an_empty_section_is_no_loss_where_its_content_is_under_another_heading() -> None:
    goal, errors = "ship the gateway before friday", "timeout connection refused broken pipe"
    base = _written(3, 10, f"## Goal\n{goal}\n## Errors\n{errors}\n## Open\nask about quotas")
    moved = _written(3, 10, f"## Goal\n{goal}\n## Errors\n(none)\n## Open\nask about quotas\n{errors}")
    lost = _written(3, 10, f"## Goal\n{goal}\n## Errors\n(none)\n## Open\nask about quotas and friday")
    assert compare_form(base, moved).moved == ("errors",)
    assert form_strand(compare_form(base, moved)).state is StrandState.CHANGED
    assert compare_form(base, lost).emptied == ("errors",)
    assert form_strand(compare_form(base, lost)).state is StrandState.WORSE


def test_a_summary_of_the_same_length_without_headings_is_another_form_and_no_loss() -> None:
    body = [f"what was said about point {at} and what became of it, in full, with all that matters" for at in range(4)]
    base = _written(3, 10, "\n".join(f"## Part {'abcd'[at]}\n{body[at]}" for at in range(4)))
    prose, short = _written(3, 10, " ".join([*body, "and so on, in one piece"])), _written(3, 10, body[0])
    assert compare_form(base, prose).unlabelled
    assert form_strand(compare_form(base, prose)).state is StrandState.CHANGED
    assert form_strand(compare_form(base, short)).state is StrandState.WORSE


_PLAIN = """## Goal
Ship Relay before Friday. Do not touch Billing; never push to main. No new flags, not even for Tests.
## State
PREFETCH_LIMIT is not set in Deploy. Nobody may restart Ingest without asking. The Cache cannot be cleared.
"""


@pytest.mark.parametrize(
    ("edit", "fewer"),
    [
        (str.lower, ["capital letters"]),
        (lambda text: re.sub(r"(?i)\b(?:not?|never|without|cannot)\b ?", "", text), ["words such as “not”"]),
        (lambda text: text.replace("not ", "", 1).replace("Relay", "relay"), []),
        (lambda text: text * 2, []),
        (lambda text: text.partition("## State")[0], []),
    ],
)
def test_a_text_rewritten_without_capitals_or_denials_is_worse_though_every_fact_is_found(
    edit: Callable[[str], str], fewer: list[str]
) -> None:
    change = compare_form(_written(3, 2, _PLAIN), _written(3, 2, edit(_PLAIN)))
    assert list(change.thinned) == fewer
    assert (form_strand(change).state is StrandState.WORSE) == bool(fewer or change.gone)


def test_one_run_that_writes_as_before_shows_that_it_is_no_rule() -> None:
    now = _written(3, 2, _PLAIN.lower())
    now["f1"][1] = _written(1, 1, _PLAIN)["f0"][0].model_copy(update={"fixture": "f1", "run": 1})
    assert compare_form(_written(3, 2, _PLAIN), now).thinned == {}


def test_so_few_runs_cannot_tell() -> None:
    before, now = _forms(1, 3, [["goal", "files"]]), _forms(1, 3, [["goal"]])
    assert compare_form(before, now).gone == ()
    assert not compare_form(before, now).reachable


def test_a_renamed_section_is_no_loss() -> None:
    before, now = _forms(3, 10, [["goal", "files"]]), _forms(3, 10, [["goal", "paths"]])
    text = "## goal\nx\n## {}\nsrc main gateway client session store token refresh"
    before = {n: [r.model_copy(update={"summary": text.format("files")}) for r in runs] for n, runs in before.items()}
    now = {n: [r.model_copy(update={"summary": text.format("paths")}) for r in runs] for n, runs in now.items()}
    assert compare_form(before, now).renamed == (("files", "paths"),)
    assert compare_form(before, now).gone == ()


def test_the_exact_test_is_the_hypergeometric() -> None:
    assert fewer_p([Counts(3, 3, 0, 3)]) == pytest.approx(1 / 20)
    assert fewer_p([Counts(3, 3, 0, 3)] * 2) == pytest.approx(1 / 400)
    assert smallest_p([Counts(1, 3, 1, 3)]) == pytest.approx(1 / 20)
    assert fewer_p([Counts(5, 10, 5, 10)]) > 0.5


# Window, invented, stale, size


def test_the_window_counts_both_ends_and_what_was_changed_in_place(case: Case) -> None:
    original = case.fixture.messages
    shortened = {**original[-2], "content": "cut"} if original[-2]["role"] == "tool" else original[-2]
    state: list[Message] = [original[0], small.user("a summary"), *original[-4:-2], shortened, original[-1]]
    found = read_window(Kept(original, state))
    assert found.head == 1
    assert found.changed == (shortened is not original[-2])
    assert found.head + found.tail + found.middle + found.changed == 5


def test_values_that_are_nowhere_in_the_session_are_invented(case: Case) -> None:
    known = SessionFacts(case)
    honest = [fact.value for fact in known.census if fact.kind in ("path", "url", "hash", "pr")]
    assert read_invented(["\n".join(honest)], known.text) == []
    found = read_invented(["It is in src/flux/unheard_of.py, see https://nowhere.example/x/991"], known.text)
    assert {item.kind for item in found} == {"path", "url"}


def test_a_superseded_value_without_its_successor_is_stale() -> None:
    probe = small.probe(["Postgres", {"not": "SQLite"}])
    assert [item.value for item in read_stale([probe], Haystack.of("We use SQLite."))] == ["SQLite"]
    assert read_stale([probe], Haystack.of("We moved from SQLite to Postgres.")) == []


def test_recency_grows_with_its_tokens_and_ends_with_everything(case: Case) -> None:
    known = SessionFacts(case)
    whole = count_messages(case.fixture.messages)
    shares = [known.recency(whole * part // 10) for part in range(11)]
    assert shares == sorted(shares)
    assert shares[-1] == known.total
    assert known.proportional(whole) == known.total


# The verdict


def test_the_built_in_references_stand_in_the_picture_of_size_at_several_budgets(base: Measurement) -> None:
    picture = frontier([("candidate", "candidate", base)])
    assert picture is not None
    marked = {curve.name: len(curve.dots) for curve in picture.curves}
    assert marked["the built-in anchored summary"] >= 2
    assert marked["the built-in sliding window"] >= 2


def test_deterministic_runs_are_counted_and_nothing_is_estimated(base: Measurement) -> None:
    verdict, _ = compare_measurements(base, base)
    assert verdict.kind is Kind.NO_DETECTABLE_CHANGE
    assert verdict.exact
    assert not verdict.tests
    assert all(row.p is None and row.ci_low is None and row.mde is None for row in verdict.rows)
    assert "smallest detectable change" not in verdict.headline
    assert [row.name for row in verdict.rows if row.family == "scores"] == ["overall"]


def test_lost_facts_have_names_places_and_runs(base: Measurement, suite: list[Case], tmp_path: Path) -> None:
    verdict, _ = compare_measurements(base, small.measure(suite, tmp_path / "a", "opaque"))
    assert verdict.kind is Kind.REGRESSED
    lost = [item for item in verdict.facts if item.change < 0]
    assert all(item.messages and item.base_kept == item.base_runs and item.candidate_kept == 0 for item in lost)
    assert {item.asked for item in lost} == {True, False}
    facts = verdict.strand("facts")
    assert facts is not None
    assert " facts lost, " in facts.says
    assert exit_code(verdict, "regressed") == 1


def test_the_same_facts_in_fewer_tokens_are_an_improvement_and_in_more_a_regression(base: Measurement) -> None:
    smaller = _edited(base, tokens_after=3_000)
    verdict, _ = compare_measurements(base, smaller)
    assert verdict.kind is Kind.IMPROVED
    assert verdict.headline.startswith("Improved: the same facts in ")
    verdict, _ = compare_measurements(smaller, base)
    assert verdict.kind is Kind.REGRESSED
    assert verdict.headline.startswith("Regressed: no fact gained for ")


def test_facts_bought_with_size_are_a_trade(base: Measurement) -> None:
    fixtures = {}
    for name, runs in base.fixtures.items():
        changed = []
        for run in runs:
            assert run.size is not None
            fates = run.census.fates.replace("0", "-")
            size = run.size.model_copy(update={"kept": run.size.kept + 9, "recency": run.size.recency + 20})
            census = run.census.model_copy(update={"fates": fates, "lost": {}})
            changed.append(run.model_copy(update={"census": census, "size": size, "tokens_after": 9_000}))
        fixtures[name] = changed
    verdict, _ = compare_measurements(base, base.model_copy(update={"fixtures": fixtures}))
    assert verdict.kind is Kind.TRADE
    assert "bought with" in verdict.headline
    assert exit_code(verdict, "regressed") == 0


def _without_files(summary: str) -> str:
    head, _, rest = summary.partition("## Files Modified\n")
    return head + "##" + rest.partition("\n##")[2]


def test_a_dropped_section_regresses_names_itself_and_the_way_out(base: Measurement) -> None:
    def without(run: RunRecord) -> RunRecord:
        assert run.form is not None
        text = _without_files(run.summary)
        return run.model_copy(update={"summary": text, "form": read_form([text])})

    fixtures = {name: [without(run) for run in runs] for name, runs in base.fixtures.items()}
    changed = base.model_copy(update={"fixtures": fixtures})
    verdict, _ = compare_measurements(base, changed)
    assert verdict.kind is Kind.REGRESSED
    assert verdict.headline == "Regressed: the summary lost 1 section (“files modified”)."
    assert removal(verdict) == AcceptConfig(sections=["files modified"])
    calm, _ = compare_measurements(base, changed, accept=AcceptConfig(sections=["Files Modified"]))
    assert calm.kind is Kind.NO_DETECTABLE_CHANGE
    form = calm.strand("form")
    assert form is not None
    assert form.state is StrandState.ACCEPTED


def test_older_baselines_say_what_they_did_not_record(base: Measurement) -> None:
    older = _edited(base, window=None, shown=None, form=None, size=None, invented=None, stale=None)
    verdict, _ = compare_measurements(older, base)
    states = {strand.name: strand.state for strand in verdict.strands}
    assert {states["window"], states["form"]} == {StrandState.NOT_RECORDED}
    assert verdict.kind is Kind.NO_DETECTABLE_CHANGE


def test_a_refusal_in_one_run_is_the_models_and_in_all_the_changes(base: Measurement) -> None:
    stub = {"form": FormRecord(sections=[], tokens=7), "summary": "I cannot help with that."}
    one = {
        name: [run.model_copy(update=stub) if run.run == 0 else run for run in runs]
        for name, runs in base.fixtures.items()
    }
    partly = base.model_copy(update={"fixtures": one})
    assert degenerate_runs(base.fixtures, partly.fixtures) == {(name, 0) for name in base.fixtures}
    cleaned, stubs = without_stubs(base, partly)
    assert {run.outcome for runs in cleaned.fixtures.values() for run in runs if run.run == 0} == {
        Outcome.BAD_COMPLETION
    }
    assert compare_measurements(base, partly)[0].kind is Kind.INCOMPLETE
    verdict, _ = compare_measurements(base, _edited(base, **stub))
    assert verdict.kind is Kind.REGRESSED
    assert (
        verdict.headline == "Regressed: every summary is a stub, 7 tokens instead of 4.2k, without any of its sections."
    )
    assert "if the model refused" not in verdict.next_step  # rules wrote it
    assert (
        "if the model refused" in compare_measurements(_by_model(base), _by_model(_edited(base, **stub)))[0].next_step
    )
    assert removal(verdict).sections == []
    assert len(stubs) == len(base.fixtures)


def test_more_refusals_than_chance_explains_are_the_changes_doing(base: Measurement) -> None:
    stub = {"form": FormRecord(sections=[], tokens=7), "summary": "I cannot help with that."}

    def copies(measurement: Measurement, stubs: int) -> Measurement:
        fixtures = {
            name: [runs[0].model_copy(update={"run": at, **(stub if at < stubs else {})}) for at in range(10)]
            for name, runs in measurement.fixtures.items()
        }
        planned = {"planned_runs": 10, "planned_compress_runs": 10}
        return measurement.model_copy(update={"fixtures": fixtures, **planned})

    rare, _ = compare_measurements(copies(base, 0), copies(base, 1))
    assert rare.kind is Kind.INCOMPLETE
    assert any(note.startswith("Left out as the model's failure") for note in rare.notes)
    often, _ = compare_measurements(copies(base, 0), copies(base, 4))
    assert often.kind is Kind.REGRESSED
    assert often.headline.startswith("Regressed: 8 of 20 summaries are a stub")
    assert not any(note.startswith("Left out as the model's failure") for note in often.notes)


def test_gain_and_loss_are_mixed_only_where_they_are_of_comparable_weight() -> None:
    assert weigh(0.3, 0.02) is StrandState.WORSE
    assert weigh(0.02, 0.3) is StrandState.BETTER
    assert weigh(0.3, 0.15) is StrandState.BOTH
    assert weigh(0.0, 0.0) is StrandState.SAME


def test_facts_cut_before_the_model_are_counted_and_told_from_those_not_written(project: Path, cli: small.Cli) -> None:
    small.write(
        project / "cuts.py",
        "import json, os, urllib.request\n\n\n"
        "def compress(messages, base_url, api_key, model):\n"
        "    limit = int(os.environ['LIMIT'])\n"
        "    text = '\\n'.join(str(m.get('content') or '')[:limit] for m in messages[1:])\n"
        "    body = {'model': model, 'messages': [{'role': 'user', 'content': '## Facts\\n<all>\\n' + text}]}\n"
        "    request = urllib.request.Request(base_url + '/chat/completions', json.dumps(body).encode(),\n"
        "        {'Authorization': 'Bearer ' + api_key, 'Content-Type': 'application/json'})\n"
        "    answer = json.load(urllib.request.urlopen(request))['choices'][0]['message']['content']\n"
        "    return [messages[0], {'role': 'user', 'content': answer}]\n",
    )
    call = "call: {base_url: '${LLM_BASE_URL}', api_key: '${LLM_API_KEY}', model: '${MODEL}'}"
    for limit in (100_000, 200):
        small.write(project / f"t{limit}.yml", f"compressor: cuts:compress\n{call}\nenv: {{LIMIT: '{limit}'}}\n")
        done = cli(
            "run", "--runs", "1", "--set", "compress_runs=1", "--quiet", "--target", f"t{limit}.yml",
            "--sandbox", "none", "--compare-to", "none", "--label", f"l{limit}",
        )  # fmt: skip
        assert done.code == 0
    wide, narrow = (
        Measurement.model_validate_json((project / "results" / name / "summary.json").read_text(encoding="utf-8"))
        for name in ("l100000", "l200")
    )
    before, after = shown_finding(wide), shown_finding(narrow)
    assert before is not None
    assert after is not None
    assert after[0] > before[0]
    verdict, _ = compare_measurements(wide, narrow)
    shown = verdict.strand("shown")
    assert shown is not None
    assert shown.state is StrandState.WORSE
    assert any(detail.startswith("no longer shown: ") for detail in shown.details)
    assert all(item.shown for item in verdict.facts if item.change < 0)
    text = json.dumps(verdict.model_dump(mode="json"))
    assert "no longer shown" in text
    cut = sum(detail.startswith(("no longer shown: ", "no longer passed on: ")) for detail in shown.details)
    assert len(shown.removed) == cut
    all_of_it: dict[str, list[str]] = {}
    for name, fixture in shown.removed:
        all_of_it.setdefault(fixture, []).append(name)
    but_one = {fixture: names[1:] for fixture, names in all_of_it.items()}
    for unseen, state in ((all_of_it, StrandState.ACCEPTED), (but_one, StrandState.WORSE)):
        meant, _ = compare_measurements(wide, narrow, accept=AcceptConfig(unseen=unseen))
        accepted = meant.strand("shown")
        assert accepted is not None
        assert accepted.state is state
    found = ReportData(narrow, base=wide, verdict=verdict).offer
    assert found is not None
    assert not {StrandState.WORSE, StrandState.BOTH} & {found.verdict.strand(name).state for name in ("shown", "facts")}
    assert "are cut before the compressor's model sees them" in done.out


def test_a_loss_spread_over_many_facts_does_not_give_way_to_one_that_was_gained(base: Measurement) -> None:
    gained = FactChange(
        fixture=next(iter(base.fixtures)),
        name="x",
        kind="path",
        messages=(1,),
        base_kept=0,
        base_runs=10,
        candidate_kept=10,
        candidate_runs=10,
        clear=True,
    )
    recorded = replace(read_evidence(base, base), exact=False, facts=(gained,))
    verdict = decide(noisy(1, 10, fact=0.8), noisy(2, 10, fact=0.7), recorded=recorded)
    assert verdict.kind is Kind.REGRESSED


def test_facts_that_the_session_does_not_hold_are_not_graded(case: Case) -> None:
    asked = small.probe(["no such words anywhere 7731", "open_id"])
    held = probe_in_session(asked, FixtureFacts(case.fixture))
    assert [fact.label for fact in held.required] == ["open_id"]
    state = Haystack.of("open_id")
    assert FactJudge().grade_state(held, state).overall > FactJudge().grade_state(asked, state).overall
    absent = small.probe(["no such words anywhere 7731"])
    assert probe_in_session(absent, FixtureFacts(case.fixture)) is absent


def test_a_target_that_takes_a_budget_is_run_at_each_for_the_picture_of_size(project: Path, cli: small.Cli) -> None:
    small.write(
        project / "newest.py",
        "def compress(messages, keep):\n"
        "    text = ' '.join(str(message.get('content') or '') for message in messages)\n"
        "    return [messages[0], {'role': 'user', 'content': text[-keep:]}]\n",
    )
    text = "compressor: newest:compress\ncall: {keep: '${BUDGET}'}\nllm: none\nbudgets: [400, 200, 800]\n"
    small.write(project / "newest.yml", text)
    done = cli(
        "run", "--runs", "1", "--set", "compress_runs=1", "--quiet", "--target", "newest.yml", "--sandbox", "none",
        "--compare-to", "none", "--label", "l",
    )  # fmt: skip
    assert done.code == 0, done.err
    measured = Measurement.model_validate_json((project / "results/l/summary.json").read_text(encoding="utf-8"))
    for name, points in measured.frontier.items():
        small_state, large_state = (point for point in points if point.name == AT_BUDGETS)
        (run,) = measured.fixtures[name]
        assert small_state.tokens < run.tokens_after < large_state.tokens
        assert small_state.kept <= large_state.kept
    picture = frontier([("candidate", "candidate", measured)])
    assert picture is not None
    assert "this compressor at its other budgets" in [curve.name for curve in picture.curves]


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ("call: {keep: '${BUDGET}'}", "${BUDGET} has no value"),
        ("budgets: [4, 8]", "${BUDGET} is not used"),
        ("call: {keep: '${BUDGET}'}\nbudgets: [4, 4]", "holds a value twice"),
        ("call: {keep: '${BUDGET}'}\nbudgets: [0]", "greater than 0"),
    ],
)
def test_a_budget_that_goes_nowhere_is_refused(tmp_path: Path, lines: str, words: str) -> None:
    small.write(tmp_path / "t.yml", f"compressor: newest:compress\n{lines}\n")
    with pytest.raises(UserError, match=re.escape(words)):
        read_target(tmp_path / "t.yml")


def test_a_gain_beside_a_cut_is_told_though_it_does_not_decide() -> None:
    cut = _strand("shown", StrandState.WORSE, 0.11, 0.0).model_copy(update={"says": "45 facts no longer reach it"})
    gain = _strand("facts", StrandState.BETTER, 0.05, 0.13).model_copy(update={"says": "facts kept 48 % → 59 %"})
    said = changed(Kind.REGRESSED, {"shown": cut, "facts": gain}, None)
    assert said == "Regressed: 45 facts no longer reach it, but facts kept 48 % → 59 %."


def _strand(name: str, state: StrandState, loss: float, gain: float) -> Finding:
    return Finding(name=name, state=state, loss=loss, gain=gain)


@pytest.mark.parametrize(
    ("facts", "hidden", "kind"),
    [
        # Facts lost and gained in like measure, and the model sees what it saw: that is mixed.
        ((StrandState.BOTH, 0.10, 0.13), 0.0, Kind.MIXED),
        # The freed room was filled with other facts: what is cut for every model decides.
        ((StrandState.BOTH, 0.10, 0.13), 0.12, Kind.REGRESSED),
        ((StrandState.BETTER, 0.02, 0.13), 0.12, Kind.REGRESSED),
        # A little is cut and much more gained.
        ((StrandState.BETTER, 0.02, 0.13), 0.02, Kind.IMPROVED),
        # Half and half in the facts, and hardly anything cut: the cut is not what decides.
        ((StrandState.BOTH, 0.10, 0.13), 0.02, Kind.MIXED),
    ],
)
def test_what_no_longer_reaches_the_model_breaks_the_tie_of_gain_and_loss(
    facts: tuple[StrandState, float, float], hidden: float, kind: Kind
) -> None:
    shown = StrandState.WORSE if hidden else StrandState.SAME
    strands: dict[str, Finding] = {
        "facts": _strand("facts", *facts),
        "shown": _strand("shown", shown, hidden, 0.0),
    }
    assert decide_kind(strands, None, certain=False, decided=True) is kind


@pytest.mark.parametrize(
    ("facts", "window", "kind"),
    [
        # One check repaired does not outweigh the facts that were lost with it.
        ((StrandState.WORSE, 0.10, 0.0), StrandState.SAME, Kind.REGRESSED),
        # Fewer messages kept verbatim are not an improvement because a check was repaired.
        ((StrandState.SAME, 0.0, 0.0), StrandState.WORSE, Kind.MIXED),
        ((StrandState.SAME, 0.0, 0.0), StrandState.SAME, Kind.IMPROVED),
    ],
)
def test_a_repaired_check_hides_nothing(
    facts: tuple[StrandState, float, float], window: StrandState, kind: Kind
) -> None:
    strands: dict[str, Finding] = {
        "structure": _strand("structure", StrandState.BETTER, 0.0, 1 / 55),
        "facts": _strand("facts", *facts),
        "window": _strand("window", window, 0.1, 0.0),
    }
    assert decide_kind(strands, None, certain=False, decided=True) is kind


def _rewritten(base: Measurement, edit: Callable[[str], str], *, runs: int, model: bool = True) -> Measurement:
    """The measurement with edited summaries, in as many runs as a model would write them."""

    def edited(run: RunRecord, at: int) -> RunRecord:
        text = edit(run.summary) + f"\n- run {at}"
        return run.model_copy(update={"run": at, "summary": text, "form": read_form([text])})

    fixtures = {
        name: [edited(records[0], at) for at in range(runs)] for name, records in list(base.fixtures.items())[:1]
    }
    planned = {"planned_runs": runs, "planned_compress_runs": runs, "deterministic": None, "fixtures": fixtures}
    name = next(iter(fixtures))
    fingerprint = narrowed(base.fingerprint, [name])
    return _by_model(base.model_copy(update={**planned, "fingerprint": fingerprint}))


def test_sections_that_are_merged_with_every_word_kept_are_no_loss(base: Measurement) -> None:
    def merged(text: str) -> str:
        return text.replace("## Files Modified\n", "")

    before, after = (_rewritten(base, edit, runs=10) for edit in (str, merged))
    form = compare_measurements(before, after)[0].strand("form")
    assert form is not None
    assert form.state is StrandState.CHANGED
    assert "section gone, its content is in another: files modified" in form.details


def test_a_heading_that_no_run_has_any_more_is_in_the_headline(base: Measurement) -> None:
    before, after = _rewritten(base, str, runs=10), _rewritten(base, _without_files, runs=3)
    verdict, _ = compare_measurements(before, after)
    assert verdict.kind is Kind.INCONCLUSIVE
    assert "1 section in none of 3 runs (“files modified”)" in verdict.headline
    same, _ = compare_measurements(before, _rewritten(base, str, runs=3))
    assert "in none of" not in same.headline
