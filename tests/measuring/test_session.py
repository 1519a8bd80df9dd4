"""A run from plan to measurement: nothing twice, nothing lost, nothing missing counted as zero."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
import small

from eval_core.base.errors import UserError
from eval_core.base.messages import Message
from eval_core.comparing.compare import ReportData, compare_measurements, judged_alone
from eval_core.comparing.verdict import exit_code
from eval_core.domain.call import Draw
from eval_core.domain.case import Case, plan_cells
from eval_core.domain.compression import Compression, Outcome
from eval_core.domain.fixture import Fixture
from eval_core.domain.grade import Answer, Grade, Unscored
from eval_core.domain.measurement import Measurement
from eval_core.domain.probe import Probe
from eval_core.judging.extractive import ExtractiveAnswerer
from eval_core.judging.fact_judge import FactJudge
from eval_core.measuring.controls import measure_controls
from eval_core.measuring.run_fingerprint import make_fingerprint
from eval_core.measuring.session import MeasuringSession
from eval_core.measuring.wiring import Roles
from eval_core.reporting.markdown import render_markdown
from eval_core.reporting.view import make_view
from eval_core.sandbox.targets import BuiltinSubject
from eval_core.statistics.arms import make_arm, quarantined
from eval_core.storage.results import ResultsFolder, read_measurement, read_runs
from eval_core.strands.findings import Kind


@dataclass
class Counted:
    """The reference compressor, counted, that fails on some fixtures; it does not say that it is deterministic."""

    failing: Collection[str] = ()
    calls: list[tuple[str, int, int]] = field(default_factory=list)
    topics: dict[str, str | None] = field(default_factory=dict)
    name: str = "counted"

    async def compress(
        self, fixture: Fixture, *, run: int, seed: int, focus_topic: str | None = None, log: object = None
    ) -> Compression:
        self.calls.append((fixture.name, run, seed))
        self.topics[fixture.name] = focus_topic
        if fixture.name in self.failing:
            return Compression(Outcome.TARGET_ERROR, "ValueError: <b>no</b> | such thing")
        return await BuiltinSubject("anchored").compress(fixture, run=run, seed=seed, focus_topic=focus_topic)


class Silent:
    """An answerer that is out of order for one probe."""

    def __init__(self, probe: str, reason: str = "rate_limit: gave up after 6 tries") -> None:
        self._probe, self._reason, self._inner = probe, reason, ExtractiveAnswerer()

    async def answer(self, state: list[Message], probe: Probe, *, fixture: str, draw: Draw) -> Answer | Unscored:
        if probe.id == self._probe:
            return Unscored(code="rate_limit", reason=self._reason)
        return await self._inner.answer(state, probe, fixture=fixture, draw=draw)


def measure(
    folder: Path,
    subject: Counted,
    *,
    answerer: Silent | None = None,
    cases: Sequence[Case] | None = None,
    **options: object,
) -> Measurement:
    folder.mkdir(exist_ok=True)
    roles = Roles(subject, answerer or ExtractiveAnswerer(), FactJudge(), offline=True)
    session = MeasuringSession(
        cases or small.cases(),
        roles,
        make_fingerprint(cases or small.cases(), None, options.get("focus_topic")),  # type: ignore[arg-type]
        ResultsFolder(folder),
        folder.name,
        2,
        3,
        tree=folder,
        **options,  # type: ignore[arg-type]
    )
    return asyncio.run(session.measure())


def test_a_plan_goes_run_by_run_over_all_fixtures() -> None:
    plan = plan_cells(small.cases(), 2, 3)
    assert [(cell.run, cell.graded) for cell in plan] == [(0, True)] * 3 + [(1, True)] * 3 + [(2, False)] * 3


def test_every_cell_is_run_once_with_its_own_seed_and_written_down(tmp_path: Path) -> None:
    subject = Counted()
    measurement = measure(tmp_path / "a", subject, seed=40)
    names = [case.fixture.name for case in small.cases()]
    assert sorted(subject.calls) == sorted((name, run, 40 + run) for name in names for run in range(3))
    assert {path.name for path in (tmp_path / "a").glob("*-run-*.json")} == {
        f"{name}-run-{run}.json" for name in names for run in range(3)
    }
    stored = read_runs(tmp_path / "a")
    assert stored == measurement
    assert all(run.messages for runs in stored.fixtures.values() for run in runs)
    assert not any(run.messages for runs in read_measurement(tmp_path / "a").fixtures.values() for run in runs)


def test_a_fixture_names_its_own_focus_unless_the_run_names_one(tmp_path: Path) -> None:
    first, *others = small.cases()
    focused = replace(first, fixture=first.fixture.model_copy(update={"focus_topic": "the socket"}))
    assert focused.fixture.digest != first.fixture.digest
    for topic, expected in ((None, {"the socket", None}), ("the plan", {"the plan"})):
        subject = Counted()
        measure(tmp_path / str(topic), subject, cases=[focused, *others], focus_topic=topic)
        assert set(subject.topics.values()) == expected
        assert subject.topics[focused.fixture.name] == (topic or "the socket")


def test_compress_only_runs_measure_facts_and_ask_nothing(tmp_path: Path) -> None:
    (*_, last) = measure(tmp_path / "a", Counted()).fixtures["small-debug"]
    assert not last.graded
    assert all(record.answer is None and record.result is None for record in last.probes.values())
    assert all(fact.used is None for record in last.probes.values() for fact in record.facts)
    assert last.census.total
    assert last.structure


def test_a_resumed_run_does_only_what_is_missing(tmp_path: Path) -> None:
    first, second = Counted(), Counted()
    whole = measure(tmp_path / "a", first)
    (tmp_path / "a" / "small-debug-run-1.json").unlink()
    small.write(tmp_path / "a" / "small-plan-run-0.json", "{torn")
    again = measure(tmp_path / "a", second, resume=True)
    assert sorted(second.calls) == [("small-debug", 1, 1), ("small-plan", 0, 0)]
    for name, runs in again.fixtures.items():
        for before, after in zip(whole.fixtures[name], runs, strict=True):
            assert after.model_copy(update={"seconds": before.seconds}) == before


def test_a_resumed_run_compresses_what_failed_and_only_asks_again_where_the_compression_stands(tmp_path: Path) -> None:
    measure(tmp_path / "a", Counted(failing=["small-plan"]), answerer=Silent("recall-error"))
    subject = Counted()
    again = measure(tmp_path / "a", subject, resume=True)
    assert sorted(subject.calls) == [("small-plan", run, run) for run in range(3)]
    assert all(run.ok for runs in again.fixtures.values() for run in runs)
    answered = [run.probes["recall-error"].result for run in again.fixtures["small-debug"] if run.graded]
    assert all(isinstance(result, Grade) for result in answered)


@pytest.mark.parametrize("change", ["target", "seed", "probes"])
def test_a_run_of_something_else_is_not_resumed(tmp_path: Path, change: str) -> None:
    measure(tmp_path / "a", Counted())
    before = {path.name: path.read_bytes() for path in (tmp_path / "a").iterdir()}
    if change == "probes":
        small.edit_json(
            tmp_path / "a" / "session.json", lambda b: b["fingerprint"]["probes"].update({"small-plan": "0"})
        )
        before["session.json"] = (tmp_path / "a" / "session.json").read_bytes()
    subject = Counted(name="another" if change == "target" else "counted")
    named = "probes/small-plan.probes.json" if change == "probes" else change
    with pytest.raises(UserError, match=f"--resume cannot complete this run: {named} changed"):
        measure(tmp_path / "a", subject, resume=True, seed=9 if change == "seed" else 0)
    assert not subject.calls
    assert {path.name: path.read_bytes() for path in (tmp_path / "a").iterdir()} == before


@pytest.fixture(scope="module")
def failed(tmp_path_factory: pytest.TempPathFactory) -> Measurement:
    """A measurement in which the compressor failed on one of three fixtures."""
    return measure(tmp_path_factory.mktemp("failed") / "a", Counted(failing=["small-plan"]))


class TestMissingIsNeverZero:
    def test_a_failed_compression_has_an_outcome_and_no_probe(self, failed: Measurement) -> None:
        for run in failed.fixtures["small-plan"]:
            assert run.outcome is Outcome.TARGET_ERROR
            assert not run.probes
            assert not run.structure

    def test_its_cells_are_absent_from_the_comparison(self, failed: Measurement) -> None:
        arm = make_arm(failed).fixtures["small-plan"]
        assert (arm.score_cells, arm.fact_cells) == (0, 0)
        # A failed compression is a finding about the compressor, not something still to be measured.
        assert (arm.planned_scores, arm.planned_facts) == (0, 0)

    def test_the_compressor_is_broken_and_the_fixture_is_named(
        self, failed: Measurement, small_measurement: Measurement
    ) -> None:
        verdict, _ = compare_measurements(small_measurement, failed)
        assert verdict.kind is Kind.BROKEN
        assert verdict.headline == (
            "Broken: the compressor ended in an error in 3 of 3 runs of small-plan, in the base in 0 of 5."
        )

    def test_it_is_broken_without_a_baseline_too(self, failed: Measurement, small_measurement: Measurement) -> None:
        verdict = judged_alone(failed)
        assert verdict is not None
        assert verdict.headline == "Broken: the compressor ended in an error in 3 of 3 runs of small-plan."
        assert exit_code(verdict, "regressed") == 1
        assert judged_alone(small_measurement) is None

    def test_what_the_base_fails_at_too_is_no_change(self, failed: Measurement) -> None:
        assert compare_measurements(failed, failed)[0].kind is not Kind.BROKEN

    def test_the_report_shows_the_outcome_and_a_dash(self, failed: Measurement) -> None:
        view = make_view(ReportData(failed))
        (row,) = [row for row in view.fixtures if row.fixture == "small-plan"]
        assert set(row.cells) == {"-"}
        assert row.note == "3 of 3 runs: target_error"
        text = render_markdown(view)
        assert "Missing is never counted as zero" in text
        assert "3 x the compressor ended in an error" in text
        assert "<b>no</b>" not in text

    def test_what_is_missing_is_told_by_a_field_and_not_by_the_wording(self, tmp_path: Path) -> None:
        measurement = measure(tmp_path / "a", Counted(), answerer=Silent("recall-error", "no answer was configured"))
        result = measurement.fixtures["small-debug"][0].probes["recall-error"].result
        reason = "no answer: no answer was configured"
        assert result == Unscored(code="rate_limit", missing="answer", reason=reason)

    def test_an_unanswered_probe_is_unscored_and_its_facts_still_count(self, tmp_path: Path) -> None:
        measurement = measure(tmp_path / "a", Counted(), answerer=Silent("recall-error"))
        record = measurement.fixtures["small-debug"][0].probes["recall-error"]
        reason = "no answer: rate_limit: gave up after 6 tries"
        assert record.result == Unscored(code="rate_limit", missing="answer", reason=reason)
        assert record.retention == 1
        arm = make_arm(measurement).fixtures["small-debug"]
        assert (arm.score_cells, arm.planned_scores, arm.fact_cells) == (6, 8, 12)
        assert make_view(ReportData(measurement)).unscored == {record.result.reason: 2}


class Strict:
    """A judge of answers, as a model is; it grades by the same facts as the rules do."""

    def __init__(self) -> None:
        self._inner = FactJudge()

    @property
    def identity(self) -> dict[str, str]:
        return {"model": "strict"}

    async def grade(self, probe: Probe, answer: str, *, fixture: str, draw: Draw) -> Grade | Unscored:
        return await self._inner.grade(probe, answer, fixture=fixture, draw=draw)


class TestControls:
    def test_the_full_transcript_is_the_ceiling_and_nothing_the_floor(self, small_measurement: Measurement) -> None:
        for controls in small_measurement.controls.values():
            for control in controls.probes.values():
                assert (control.ceiling_facts, control.floor_facts, control.floor) == (1, 0, 0)
                assert control.ceiling is not None
                assert control.ceiling > 2
                assert control.quarantined is None

    def test_a_probe_whose_facts_the_session_lacks_is_quarantined(self) -> None:
        case = _asking("Why do zebras sleep?", "zebra_sleep_77")
        control = asyncio.run(measure_controls(case, ExtractiveAnswerer(), FactJudge())).probes["odd"]
        assert control.quarantined == "none of its facts is in the session"

    def test_offline_the_probe_is_looked_at_and_not_the_answerer(self) -> None:
        case = _asking("Why do zebras sleep?", "12 workers")
        control = asyncio.run(measure_controls(case, ExtractiveAnswerer(), FactJudge())).probes["odd"]
        assert (control.ceiling_facts, control.quarantined) == (1, None)

    def test_a_probe_that_a_judge_fails_on_the_full_transcript_is_quarantined(self) -> None:
        case = _asking("Why do zebras sleep?", "12 workers")
        control = asyncio.run(measure_controls(case, ExtractiveAnswerer(), Strict())).probes["odd"]
        assert control.quarantined == "the full transcript scores only 0.0"

    def test_a_probe_that_needs_no_context_is_quarantined(self) -> None:
        class Knowing(ExtractiveAnswerer):
            async def answer(
                self, state: list[Message], probe: Probe, *, fixture: str, draw: Draw
            ) -> Answer | Unscored:
                return Answer(text="shared by 12 workers, as everybody knows")

        case = _asking("How many workers?", "12 workers")
        control = asyncio.run(measure_controls(case, Knowing(), Strict())).probes["odd"]
        assert control.quarantined == "no context at all scores 5.0"

    def test_a_control_that_failed_quarantines_nobody(self) -> None:
        case = _asking("How many workers?", "12 workers")
        control = asyncio.run(measure_controls(case, Silent("odd"), FactJudge())).probes["odd"]
        assert (control.ceiling, control.floor, control.quarantined) == (None, None, None)

    def test_quarantined_probes_are_left_out_of_scores_and_misses_but_their_facts_count(self, tmp_path: Path) -> None:
        case = _asking("Why do zebras sleep?", "zebra_sleep_77")
        both = Case(
            case.fixture, case.bank.model_copy(update={"probes": [*case.bank.probes, *small.debug_bank().probes]})
        )
        with_bad = small.measure([both], tmp_path / "bad", "anchored")
        without = small.measure([Case(case.fixture, small.debug_bank())], tmp_path / "good", "anchored")
        assert quarantined(with_bad) == {("small-debug", "odd")}
        assert isinstance(with_bad.fixtures["small-debug"][0].probes["odd"].result, Grade)
        bad, good = make_view(ReportData(with_bad)), make_view(ReportData(without))
        assert bad.fixtures[0].cells == good.fixtures[0].cells
        assert bad.misses == good.misses
        assert bad.metrics[0] == good.metrics[0]
        assert any("odd" in line for line in bad.quarantined)
        arm = make_arm(with_bad, quarantined(with_bad)).fixtures["small-debug"]
        assert (arm.score_cells, arm.planned_scores, arm.fact_cells) == (4, 4, 5)

    def test_known_controls_are_not_measured_again(self, tmp_path: Path, small_measurement: Measurement) -> None:
        class Once(Silent):
            asked: list[int] = []

            async def answer(
                self, state: list[Message], probe: Probe, *, fixture: str, draw: Draw
            ) -> Answer | Unscored:
                self.asked.append(draw.run)
                return await super().answer(state, probe, fixture=fixture, draw=draw)

        answerer = Once("none")
        measured = measure(tmp_path / "a", Counted(), answerer=answerer, known_controls=small_measurement.controls)
        assert min(answerer.asked) == 0
        assert measured.controls == small_measurement.controls


def _asking(question: str, fact: str) -> Case:
    odd = small.probe([fact], question).model_copy(update={"id": "odd"})
    return Case(small.debug_fixture(), small.debug_bank().model_copy(update={"probes": [odd]}))


def test_a_record_on_disk_is_whole_and_says_what_became_of_each_fact(tmp_path: Path) -> None:
    measure(tmp_path / "a", Counted())
    body = json.loads((tmp_path / "a" / "small-debug-run-0.json").read_text(encoding="utf-8"))
    fact = body["probes"]["recall-error"]["facts"][0]
    assert fact == {
        "label": "401",
        "kept": True,
        "at_risk": True,
        "used": True,
        "evidence": [1, 3],
        "paraphrased": False,
        "shown": "",
    }
    assert body["summary"].startswith("[Summary of the earlier session]")
    assert body["verbatim"] == [0, *range(12, 17)]


def test_a_chained_session_is_compressed_at_each_of_its_cuts() -> None:
    found = asyncio.run(BuiltinSubject("anchored").compress(small.chained_fixture(), run=0, seed=0))
    assert len(found.steps) == 2
    assert found.steps[0].tokens_after < found.steps[0].tokens_before
    assert found.state == found.steps[1].messages


def test_a_state_that_is_hardly_shorter_is_not_scored() -> None:
    talk = [small.user("a short word"), small.say("another one")] * 4
    fixture = Fixture(name="short", messages=[small.SYSTEM, *talk])
    found = asyncio.run(BuiltinSubject("anchored").compress(fixture, run=0, seed=0))
    assert found.outcome is Outcome.NOT_COMPRESSED
    assert found.detail.endswith("of the tokens are still there")


def test_an_unknown_reference_compressor_gets_the_nearest_name() -> None:
    with pytest.raises(UserError, match=r"builtin:anchord: no such compressor; did you mean builtin:anchored\?"):
        BuiltinSubject("anchord")
