"""Choices and actions: how they are asked, what a reply is read as, and what is kept of it."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import small
from pydantic import ValidationError

from eval_core.base.errors import UserError
from eval_core.base.messages import Message, content_text
from eval_core.comparing.compare import compare_measurements
from eval_core.domain.call import Draw
from eval_core.domain.case import Case, load_suite
from eval_core.domain.grade import Answer
from eval_core.domain.measurement import Measurement
from eval_core.domain.obey_probe import ActionProbe, ChoiceProbe, session_tools
from eval_core.domain.probe import ProbeBank, dump_bank
from eval_core.domain.session_ledger import SessionLedger
from eval_core.judging.extractive import ExtractiveAnswerer
from eval_core.judging.fact_judge import FactJudge
from eval_core.judging.obeying import ModelObeyer, chosen, tools_called
from eval_core.measuring.ask_obeys import find_obey_controls
from eval_core.measuring.run_fingerprint import make_fingerprint
from eval_core.measuring.session import MeasuringSession
from eval_core.measuring.wiring import Roles
from eval_core.models.client import ModelClient
from eval_core.models.journal import Journal
from eval_core.models.settings import Models
from eval_core.sandbox.targets import BuiltinSubject
from eval_core.storage.results import ResultsFolder
from eval_core.strands.findings import StrandState
from tests.model_provider import Asked, LoopbackProvider
from tests.models.provider import MODEL, models_at

LEDGER = {
    "fixture": "small-debug",
    "lines": [
        {"id": "billing", "kind": "rule", "anchors": ["billing/"], "text": "Leave billing/.", "speaker": "user",
         "said": [1], "polarity": "do_not", "strength": "must"},
        {"id": "pool", "kind": "value", "anchors": ["POOL_SIZE = 32"], "text": "The pool is POOL_SIZE = 32.",
         "speaker": "assistant", "said": [8]},
    ],
}  # fmt: skip
BILLING = {
    "id": "choose-billing", "type": "choice", "line": "billing",
    "situation": "The refusals are also counted in a folder beside src.",
    "demanded": "Leave that folder.", "others": ["Count there too.", "Ask for a review of it."],
}  # fmt: skip
GIVEN = {"id": "choose-given", "type": "choice", "line": "billing", "situation": "Two and two.", "demanded": "Four.",
         "others": ["Five."]}  # fmt: skip
POOL = {"id": "act-pool", "type": "action", "line": "pool", "instruction": "Set the size of the pool as settled.",
        "tools": ["patch"], "must": [r"POOL_SIZE = 32"], "must_not": ["= 4$"]}  # fmt: skip


def case(*obeys: dict[str, object]) -> Case:
    found = next(item for item in small.cases() if item.fixture.name == "small-debug")
    bank = ProbeBank.model_validate({**found.bank.model_dump(by_alias=True), "obeys": list(obeys)})
    return replace(found, bank=bank, ledger=SessionLedger.model_validate(LEDGER))


def mind(messages: Sequence[Message]) -> str:
    """Do what the ledger demands where its strings are in the prompt; add two and two without."""
    seen, asked = "\n".join(map(content_text, messages[:-1])), content_text(messages[-1])
    if "Write the one tool call" in asked:
        size = "32" if "POOL_SIZE = 32" in seen else "4"
        call = {"tool": "patch", "arguments": {"path": "src/redis_client.py", "new_string": f"POOL_SIZE = {size}"}}
        return f"Here it is:\n```json\n{json.dumps(call)}\n```"
    options = {text: letter for letter, text in re.findall(r"^([A-D])\. (.+)$", asked, re.MULTILINE)}
    if "Four." in options:
        return options["Four."]
    return options["Leave that folder." if "billing/" in seen else "Count there too."]


async def measure(
    where: Path, url: str, strategy: str, of: Case, models: Sequence[str] = (MODEL,), runs: int = 3
) -> Measurement:
    where.mkdir(exist_ok=True)
    journal = Journal(where / f"{strategy}.jsonl")
    try:
        settings = replace(models_at(url), also_answer=tuple(models[1:]))
        async with ModelClient(settings, journal=journal) as client:
            obeyers = tuple(ModelObeyer(client, model) for model in models)
            roles = Roles(BuiltinSubject(strategy), ExtractiveAnswerer(), FactJudge(), offline=False, obeyers=obeyers)
            folder = ResultsFolder(where / strategy)
            session = MeasuringSession(
                [of], roles, make_fingerprint([of], None), folder, strategy, runs, runs, tree=where, results=where,
                resume=folder.path.exists(),
            )  # fmt: skip
            return await session.measure()
    finally:
        journal.close()


def measured(
    where: Path, of: Case, *strategies: str, models: Sequence[str] = (MODEL,), runs: int = 3
) -> tuple[list[Measurement], list[Asked]]:
    async def scene() -> tuple[list[Measurement], list[Asked]]:
        async with LoopbackProvider(reply=mind) as server:
            return [await measure(where, server.base_url, name, of, models, runs) for name in strategies], server.asked

    return asyncio.run(scene())


def test_every_model_is_asked_of_every_state_and_nothing_is_paid_twice(tmp_path: Path) -> None:
    of = case(BILLING, POOL)
    (first, again), asked = measured(tmp_path, of, "anchored", "anchored")
    runs = [run.strands["obeys"] for run in first.fixtures["small-debug"]]
    assert len(runs) == 3
    for found in runs:
        answers = found["models"][MODEL]
        assert {name: entry["right"] for name, entry in answers.items()} == {"choose-billing": True, "act-pool": True}
        assert found["probes"]["choose-billing"]["text"] == "Leave billing/."
    # Two probes of three runs, then of the full transcript, of a restated rule, and twice of nothing.
    assert len(asked) == 2 * 3 + 2 * 4
    assert again.fixtures == first.fixtures
    assert first.fixtures["small-debug"][0].use["obeys"].calls == 2
    control = first.controls["small-debug"].obeys[MODEL]["act-pool"]
    assert (control.ceiling, control.floor, control.restated, control.left_out) == (True, False, True, None)


def test_controls_are_asked_once_for_all_labels(tmp_path: Path) -> None:
    of = case(BILLING)
    (first, _), asked = measured(tmp_path, of, "anchored", "opaque")
    assert len(asked) == 2 * 3 + 4
    obeyer = next(iter(first.controls["small-debug"].obeys))
    identity = first.controls["small-debug"].obeys[obeyer]["choose-billing"].asked.partition(".")[2]
    assert find_obey_controls(of, {MODEL: identity}, tmp_path) == first.controls["small-debug"].obeys
    assert find_obey_controls(of, {MODEL: "other"}, tmp_path, [first.controls["small-debug"]]) is None


def test_what_is_done_without_any_context_measures_nothing_and_is_left_out_by_name(tmp_path: Path) -> None:
    (base, candidate), _ = measured(tmp_path, case(BILLING, GIVEN), "anchored", "opaque")
    finding = compare_measurements(base, candidate)[0].strand("obeys")
    assert finding is not None
    assert "left out: choose-given (small-debug): done without any context" in finding.details
    assert "of 1 choices and actions" in finding.details[0]


def test_a_state_without_the_rule_is_found_by_what_is_done(tmp_path: Path) -> None:
    (base, candidate), _ = measured(tmp_path, case(BILLING, POOL), "anchored", "opaque", runs=6)
    verdict = compare_measurements(base, candidate)[0]
    finding = verdict.strand("obeys")
    assert finding is not None
    assert finding.state is StrandState.WORSE
    assert "6 of 6 → 0 of 6 runs" in "\n".join(finding.details)
    assert finding.base == "100 % as demanded"


def test_two_models_are_told_apart(tmp_path: Path) -> None:
    (base, candidate), _ = measured(
        tmp_path, case(BILLING, POOL), "anchored", "opaque", models=("loop", "small"), runs=6
    )
    finding = compare_measurements(base, candidate)[0].strand("obeys")
    assert finding is not None
    assert "for both models" in finding.says
    assert [line.partition(":")[0] for line in finding.details[:2]] == ["loop", "small"]


def test_a_model_that_follows_no_schema_is_asked_in_words(tmp_path: Path) -> None:
    def refuse(asked: Asked) -> str | None:
        return "400" if "response_format" in asked.body else None

    async def scene() -> None:
        async with (
            LoopbackProvider(reply=mind, behave=refuse) as server,
            ModelClient(models_at(server.base_url)) as client,
        ):
            of = case(BILLING)
            obeyer = ModelObeyer(client, MODEL)
            for run in range(2):
                right, _ = await obeyer.obey(
                    of.fixture.messages, of.bank.obeys[0], session_tools(of.fixture.messages), draw=Draw(run)
                )
                assert right is True
            assert len(server.asked) == 3

    asyncio.run(scene())


def test_a_model_that_names_no_letter_is_asked_twice_and_ends_nothing(tmp_path: Path) -> None:
    async def scene() -> None:
        async with (
            LoopbackProvider(reply=lambda messages: "I would rather not say.") as server,
            ModelClient(models_at(server.base_url)) as client,
        ):
            of = case(BILLING)
            obeyer, tools = ModelObeyer(client, MODEL), session_tools(of.fixture.messages)
            for run in range(8):
                right, reply = await obeyer.obey(of.fixture.messages, of.bank.obeys[0], tools, draw=Draw(run))
                assert right is None
                assert isinstance(reply, Answer)
            assert client.stopped is None
            assert len(server.asked) == 16

    asyncio.run(scene())


@pytest.mark.parametrize(
    ("reply", "letter"),
    [
        ("B", "B"), ("**B**", "B"), ("B. Leave it.", "B"), ('{"choice": "A"}', "A"), ("Answer: C", "C"),
        ("B\n\nBecause A breaks it.", "B"), ("<think>A or C?</think>B", "B"), ("A or B", None), ("D", None),
        ("I cannot say.", None), ("", None),
    ],
)  # fmt: skip
def test_a_letter_is_read_and_never_guessed(reply: str, letter: str | None) -> None:
    assert chosen(reply, 3) == letter


@pytest.mark.parametrize(
    ("reply", "call"),
    [
        ('{"tool": "patch", "arguments": {"path": "a"}}', ("patch", {"path": "a"})),
        ('Sure:\n```json\n{"tool": "functions.patch", "arguments": {"path": "a",}}\n```', ("patch", {"path": "a"})),
        ('{"tool": "patch"}', ("patch", {})),
        ('{"note": 1} {"tool": "a", "arguments": {}}', ("a", {})),
        ("I would patch it.", None),
        ('{"tool": "patch", "arguments": "a"}', None),
        ('{"tool": "patch", "arguments": {"path"', None),
    ],
)
def test_a_call_is_read_from_words(reply: str, call: tuple[str, dict[str, str]] | None) -> None:
    assert next(tools_called(reply), None) == call


def test_an_action_is_compared_with_what_must_and_must_not_be_there() -> None:
    probe = ActionProbe.model_validate(POOL)
    assert probe.obeyed("patch", {"edits": [{"new": "pool_size = 32"}]})
    assert not probe.obeyed("terminal", {"command": "POOL_SIZE = 32"})
    assert not probe.obeyed("patch", {"new_string": "POOL_SIZE = 4"})
    forbidden = ActionProbe.model_validate({**POOL, "tools": [], "must": [], "must_not": ["git push"]})
    assert forbidden.obeyed("terminal", {"command": "git commit"})
    assert not forbidden.obeyed("terminal", {"command": "git push origin main"})


def test_positions_change_from_run_to_run_and_not_from_side_to_side() -> None:
    probe = ChoiceProbe.model_validate(BILLING)
    places = [probe.options(run).index(probe.demanded) for run in range(30)]
    assert {places.count(place) > 3 for place in range(3)} == {True}
    assert probe.options(7) == probe.options(7)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"others": ["Leave that folder. "]}, "two of the actions are the same"),
        ({"type": "action", "instruction": "Go on."}, "an action probe checks something"),
        ({"type": "action", "instruction": "Go on.", "must": ["("]}, "does not compile"),
        ({"id": "recall-error"}, "is used twice"),
        ({"type": "guess"}, "choice"),
    ],
)
def test_a_probe_that_cannot_be_asked_is_refused(change: dict[str, object], said: str) -> None:
    with pytest.raises(ValidationError, match=re.escape(said)):
        case({**BILLING, **change})


def test_a_probe_names_a_line_of_the_ledger(tmp_path: Path) -> None:
    small.write_suite(tmp_path, [case({**BILLING, "line": "elsewhere"})])
    with pytest.raises(UserError, match=r"obeys\[0\].line: 'elsewhere' is no line of small-debug.ledger.json"):
        load_suite(tmp_path / "fixtures", tmp_path / "probes")


def test_a_bank_with_choices_has_the_digest_of_the_bank_without_and_is_written_back(tmp_path: Path) -> None:
    plain, more = case(), case(BILLING, POOL)
    assert plain.bank.digest == more.bank.digest
    assert "obeys" not in json.loads(dump_bank(plain.bank))
    assert ProbeBank.model_validate(json.loads(dump_bank(more.bank))).obeys == more.bank.obeys


def test_every_shipped_fixture_has_six_choices_and_three_actions() -> None:
    for found in load_suite(small.REPOSITORY / "fixtures", small.REPOSITORY / "probes"):
        types = [probe.type for probe in found.bank.obeys]
        assert types.count("choice") >= 6, found.fixture.name
        assert types.count("action") >= 3, found.fixture.name


def test_a_list_of_answering_models_is_asked_for_choices() -> None:
    from eval_core.base.config import ModelConfig
    from eval_core.models.settings import ModelFlags, resolve

    config = ModelConfig(compressor="m/c", answer=["m/a", "m/b"], judge="m/j")
    models = resolve(ModelFlags(), {}, config)
    assert isinstance(models, Models)
    assert (models.answer, models.obeying, models.distinct) == ("m/a", ("m/a", "m/b"), ("m/c", "m/a", "m/j", "m/b"))
    one = resolve(ModelFlags(model="m/x"), {}, config)
    assert one is not None
    assert one.obeying == ("m/x",)
    offline = resolve(ModelFlags(judge="offline"), {}, config)
    assert offline is not None
    assert offline.obeying == ()
