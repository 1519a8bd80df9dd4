"""The evaluate job: what it fetches, what it takes up, what it refuses, and that it is always confined."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import adopted
import agent_tree
import pytest
import small
from bot_tickets import Bench, ticket_for

from bot.github.api_error import NotFound, Unavailable
from bot.github.repository import GitHub
from bot.github.rest import ApiRetries
from bot.pull_request.admission import check_target
from bot.pull_request.ticket import Ticket, evaluation_artifact, keep_error, read_error
from bot.steps.artifact import read_result
from bot.steps.evaluate import minutes_left, set_up
from bot.steps.fetch import ACCEPTED, BASE, EARLIER, SUBJECT
from bot.steps.reuse import PROMOTED, reuse_results
from eval_core.base.config import BaselineConfig, Config, load_config
from eval_core.base.errors import UserError
from eval_core.measuring.options import RunOptions
from eval_core.measuring.plan import make_plan
from eval_core.statistics.looks import runs_at
from eval_core.storage.results import ResultsFolder, read_measurement


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    tree = adopted.base_tree()
    github, _ = adopted.world(tree)
    with github:
        client = GitHub(
            adopted.REPO, github.job_token({"contents": "read", "actions": "read"}), api_url=github.url,
            retry=ApiRetries(timeout=5, sleep=lambda seconds: None),
        )  # fmt: skip
        root = adopted.on_disk(tree, tmp_path / "base")
        yield Bench(github, client, root, load_config(None, root))


@pytest.fixture(scope="module")
def evaluated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The results folder of one real evaluation, sandbox included."""
    tree = adopted.base_tree()
    github, _ = adopted.world(tree)
    root = adopted.on_disk(tree, tmp_path_factory.mktemp("base"))
    with github:
        bench = Bench(
            github, GitHub(adopted.REPO, github.job_token(), api_url=github.url), root, load_config(None, root)
        )
        ticket = ticket_for(github)
        bench.fetch(ticket)
        bench.evaluate(ticket)
        return bench.work / "results" / ticket.label


def test_an_evaluation_measures_the_pull_requests_compressor_in_a_sandbox(evaluated: Path) -> None:
    measurement = read_measurement(evaluated)
    assert measurement.provenance.target == "agent.context_compressor:ContextCompressor"
    assert measurement.provenance.sandbox.startswith(("bwrap", "docker"))
    lost = [fact for run in measurement.fixtures["small-plan"] for p in run.probes.values() for fact in p.facts]
    assert not all(fact.kept for fact in lost)
    assert {path.name for path in evaluated.iterdir()} >= {"summary.json", "report.html", "session.json"}


def test_a_rerun_of_the_same_commit_measures_nothing_twice(bench: Bench, evaluated: Path) -> None:
    ticket = ticket_for(bench.github)
    bench.leave_artifact(ticket.artifact, evaluated, error__txt=b"x")
    bench.fetch(ticket)
    note, taken = bench.reuse_results(ticket)
    assert note is not None
    assert len(taken) == 2 * adopted.RUNS
    # Neither the old verdict nor an old error may be taken for those of this run.
    assert not set(taken) & {"summary.json", "verdict.json", "error.txt", "session.json"}


def test_a_rerun_of_an_evaluation_that_died_half_way_takes_up_its_half(bench: Bench, evaluated: Path) -> None:
    ticket = ticket_for(bench.github)
    half = bench.root / "half"
    half.mkdir()
    for name in ("session.json", "small-debug-run-0.json", "small-plan-run-0.json"):
        (half / name).write_bytes((evaluated / name).read_bytes())
    bench.leave_artifact(ticket.artifact, half)
    bench.fetch(ticket)
    assert bench.reuse_results(ticket)[1] == ["small-debug-run-0.json", "small-plan-run-0.json"]


def test_results_under_other_conditions_are_measured_anew_and_no_error(bench: Bench, evaluated: Path) -> None:
    ticket = ticket_for(bench.github)
    bench.leave_artifact(ticket.artifact, evaluated)
    bench.fetch(ticket)
    bench.config = bench.config.model_copy(update={"focus_topic": "the quota"})
    assert bench.reuse_results(ticket) == (None, [])


@pytest.mark.parametrize(
    "files",
    [{"../escape.json": b"{}"}, {"session.json": b"{"}, {"session.json": b'{"target": 1}'}, {"other.txt": b""}],
    ids=["path", "broken", "schema", "nothing"],
)
def test_an_artifact_that_cannot_be_used_costs_only_its_reuse(
    bench: Bench, files: dict[str, bytes], capsys: pytest.CaptureFixture[str]
) -> None:
    ticket = ticket_for(bench.github)
    bench.github.artifact(bench.github.run("compression-eval.yml", "b" * 40).id, ticket.artifact, files)
    bench.fetch(ticket)
    assert bench.reuse_results(ticket) == (None, [])
    assert not (bench.root / "escape.json").exists()
    if "../escape.json" in files:
        assert "Earlier results are not reused" in capsys.readouterr().out


def test_an_artifact_of_a_run_that_a_fork_controls_is_not_looked_at(bench: Bench, evaluated: Path) -> None:
    ticket = ticket_for(bench.github)
    for event, workflow in (("pull_request", "compression-eval.yml"), ("workflow_dispatch", "other.yml")):
        run = bench.github.run(workflow, ticket.sha, event=event)
        bench.github.artifact(run.id, ticket.artifact, {"session.json": (evaluated / "session.json").read_bytes()})
    bench.fetch(ticket)
    assert not (bench.work / EARLIER).exists()


def test_thousands_of_runs_do_not_make_thousands_of_requests(bench: Bench) -> None:
    for _ in range(200):
        bench.github.run("compression-eval.yml", "b" * 40)
    bench.fetch(ticket_for(bench.github))
    assert len(bench.github.seen) < 10


def test_a_commit_that_was_collected_as_garbage_is_named_with_the_remedy(bench: Bench) -> None:
    ticket = ticket_for(bench.github)
    bench.github.forget_commit(ticket.sha)
    with pytest.raises(NotFound, match="force-push or its fork was deleted: push again"):
        bench.fetch(ticket)


def test_a_deleted_fork_is_evaluated_all_the_same(bench: Bench) -> None:
    bench.github.delete_fork(1)
    bench.fetch(ticket_for(bench.github))
    assert (bench.work / SUBJECT / adopted.COMPRESSOR).exists()


@pytest.mark.parametrize("status", [500, 502])
def test_an_outage_during_the_download_is_waited_for(bench: Bench, status: int) -> None:
    bench.github.fail("GET", "/tarball/", status, times=2)
    bench.github.fail("GET", "/artifacts", status, times=2)
    bench.fetch(ticket_for(bench.github))
    assert bench.github.faults.pending == 0


def test_an_outage_that_lasts_stops_the_job_before_money_is_spent(bench: Bench) -> None:
    bench.github.fail("GET", "/tarball/", 503, times=99)
    with pytest.raises(Unavailable, match="run this again"):
        bench.fetch(ticket_for(bench.github))


def baseline_ticket(bench: Bench, **changes: object) -> Ticket:
    return ticket_for(bench.github, mode="baseline", **changes)


def merged(bench: Bench, tree: adopted.Tree) -> None:
    """Let the measured tree be this one, as after a merge."""
    adopted.on_disk(tree, bench.root)
    bench.github.push("main", tree)


def test_a_baseline_is_measured_of_githubs_archive_as_a_pull_request_is(bench: Bench) -> None:
    # A checkout may hold more than the archive: files with export-ignore, or the content behind LFS pointers.
    (bench.root / adopted.COMPRESSOR).write_text("raise RuntimeError('the checkout was measured')\n", encoding="utf-8")
    ticket = baseline_ticket(bench, pr=None, sha=bench.github.state.refs["heads/main"], runs=1)
    bench.fetch(ticket)
    records = bench.evaluate(ticket)
    assert {record.outcome for record in records} == {"ok"}


def test_only_the_fixtures_that_were_asked_for_are_measured_and_compared(bench: Bench) -> None:
    ticket = ticket_for(bench.github, fixtures=["small-plan"], runs=1)
    bench.fetch(ticket)
    records = bench.evaluate(ticket)
    assert {record.fixture for record in records} == {"small-plan"}
    data = read_result(ticket, bench.config, bench.root, bench.work / "results" / ticket.label)
    assert list(data.candidate.fixtures) == ["small-plan"]
    assert data.verdict is not None
    with pytest.raises(UserError, match="other fixtures or probes"):
        read_result(ticket_for(bench.github), bench.config, bench.root, bench.work / "results" / ticket.label)


def test_a_baseline_takes_at_most_three_runs_of_the_accepted_evaluation(bench: Bench, evaluated: Path) -> None:
    merged(bench, adopted.worse_tree(adopted.base_tree()))
    ticket = baseline_ticket(bench)
    many = bench.root / "many"
    many.mkdir()
    for path in evaluated.glob("*.json"):
        (many / path.name).write_bytes(path.read_bytes())
    for run in range(adopted.RUNS, 9):
        record = (evaluated / "small-plan-run-0.json").read_text(encoding="utf-8").replace('"run": 0', f'"run": {run}')
        (many / f"small-plan-run-{run}.json").write_text(record, encoding="utf-8")
    bench.leave_artifact(evaluation_artifact(ticket.sha), many)
    bench.fetch(ticket)
    note, taken = bench.reuse_results(ticket)
    assert len(taken) == 2 * PROMOTED == 6
    assert note == "6 fixture-runs of the accepted pull request #1 are promoted; the rest is measured again."


@pytest.mark.parametrize("what", ["compressor", "fingerprint", "neighbour"])
def test_nothing_is_promoted_where_the_merged_tree_or_the_conditions_differ(
    bench: Bench, evaluated: Path, what: str
) -> None:
    tree = adopted.worse_tree(adopted.base_tree())
    if what == "compressor":
        tree = adopted.base_tree()
    elif what == "neighbour":
        tree = {**tree, "agent/summary.py": tree["agent/summary.py"] + b"\n# changed on the way in\n"}
    else:
        bench.config = bench.config.model_copy(update={"focus_topic": "the quota"})
    merged(bench, tree)
    ticket = baseline_ticket(bench)
    bench.leave_artifact(evaluation_artifact(ticket.sha), evaluated)
    bench.fetch(ticket)
    assert (bench.work / ACCEPTED).is_dir()
    assert bench.reuse_results(ticket) == (None, [])


def test_watching_a_pattern_anywhere_does_not_count_the_fetched_tree_itself(bench: Bench, evaluated: Path) -> None:
    merged(bench, adopted.worse_tree(adopted.base_tree()))
    bench.config = bench.config.model_copy(update={"watch": ["**/context_compressor.py"]})
    ticket = baseline_ticket(bench)
    bench.leave_artifact(evaluation_artifact(ticket.sha), evaluated)
    bench.fetch(ticket)
    assert bench.reuse_results(ticket)[0] is not None


def test_a_baseline_tops_up_what_was_promoted(bench: Bench, evaluated: Path) -> None:
    merged(bench, adopted.worse_tree(adopted.base_tree()))
    ticket = baseline_ticket(bench, runs=4)
    bench.leave_artifact(evaluation_artifact(ticket.sha), evaluated)
    bench.fetch(ticket)
    bench.evaluate(ticket)
    measurement = read_measurement(bench.work / "results" / ticket.label)
    assert measurement.planned_runs == 4
    assert "are promoted" in (measurement.extra.promoted or "")
    old = json.loads((evaluated / "small-plan-run-0.json").read_text(encoding="utf-8"))["seconds"]
    assert [run.seconds == old for run in measurement.fixtures["small-plan"]] == [True, False, False, False]


@pytest.mark.parametrize("target", ["builtin:anchored", "target.yml"])
def test_a_target_that_no_pull_request_can_change_is_refused(bench: Bench, target: str) -> None:
    small.write(bench.root / "target.yml", "target: builtin:opaque\n")
    config = bench.config.model_copy(update={"target": target})
    with pytest.raises(UserError, match=r"compression-eval's own code.*on the base branch"):
        check_target(config, bench.root)
    bench.config = config
    with pytest.raises(UserError, match="own code"):
        bench.evaluate(ticket_for(bench.github))
    assert not (bench.work / "results").exists()


def test_the_bot_has_no_way_to_run_without_a_sandbox(cli: small.Cli) -> None:
    assert "sandbox" not in cli("bot", "evaluate", "--help").out.lower().replace("sandboxed", "")
    assert cli("bot", "evaluate", "--sandbox", "none").code == 2
    assert "sandbox" not in Config.model_fields
    assert RunOptions(Config()).sandbox == "auto"


def test_a_setup_command_that_fails_is_named(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"setup: 'false \| cat' ended with 1"):
        set_up(Config(setup=["echo ready", "false | cat", "echo never"]), tmp_path)
    out = capfd.readouterr().out
    assert "ready" in out
    assert "never" not in out.replace("+ echo never", "")


def test_why_a_step_failed_is_left_for_the_comment(
    bench: Bench, cli: small.Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    ticket = ticket_for(bench.github)
    summary = bench.root / "page.md"
    bench.github.forget_commit(ticket.sha)
    monkeypatch.chdir(bench.root)
    for name, value in {
        "TICKET": ticket.model_dump_json(),
        "GITHUB_TOKEN": bench.github.job_token(),
        "GITHUB_API_URL": bench.github.url,
        "GITHUB_REPOSITORY": adopted.REPO,
        "GITHUB_STEP_SUMMARY": str(summary),
    }.items():
        monkeypatch.setenv(name, value)
    ran = cli("bot", "fetch")
    assert ran.code == 2
    assert "push again and ask for a new evaluation" in ran.err
    assert "push again and ask for a new evaluation" in summary.read_text(encoding="utf-8")
    assert "push again" in str(read_error(bench.work / "results" / ticket.label))


def test_an_error_file_that_is_not_ours_is_not_read(tmp_path: Path) -> None:
    keep_error(tmp_path, "x" * 100_000)
    assert len(str(read_error(tmp_path))) == 2_000
    (tmp_path / "error.txt").write_text("y" * 100_000, encoding="utf-8")
    assert read_error(tmp_path) is None
    (tmp_path / "error.txt").unlink()
    (tmp_path / "secret").write_text("key", encoding="utf-8")
    (tmp_path / "error.txt").symlink_to(tmp_path / "secret")
    assert read_error(tmp_path) is None


def test_the_base_branch_brings_interpreter_and_adapter_and_the_pull_request_only_the_code(tmp_path: Path) -> None:
    """With relative paths all through, as the workflow calls it."""
    base = agent_tree.write_agent(tmp_path / "base", environment=False)
    tree = {path.relative_to(base).as_posix(): path.read_bytes() for path in base.rglob("*") if path.is_file()}
    change = {
        **tree,
        "agent/shorten.py": tree["agent/shorten.py"].replace(b"base", b"the pull request"),
        "adapter.py": b"raise RuntimeError('a pull request must not bring what judges it')",
    }
    agent_tree.make_environment(base / ".venv")
    config = load_config(None, base).model_copy(update={"runs": 1, "compress_runs": 1})
    github, _ = adopted.world(tree, change)
    with github, contextlib.chdir(base):
        client = GitHub(adopted.REPO, github.job_token(), api_url=github.url)
        bench = Bench(github, client, Path(), config)
        ticket = ticket_for(github)
        bench.fetch(ticket)
        bench.evaluate(ticket)
        state = agent_tree.kept(bench.work / "results" / ticket.label)
    assert state == ["the pull request with the dependency", "through the adapter"]


def test_the_label_again_adds_runs_up_to_the_next_look_and_tests_them_with_what_alpha_is_left(bench: Bench) -> None:
    first = ticket_for(bench.github, looks=1)
    bench.fetch(first)
    bench.evaluate(first)
    folder = bench.work / "results" / first.label
    seen = read_measurement(folder)
    assert seen.planned_runs == bench.config.runs
    bench.leave_artifact(first.artifact, folder)
    shutil.rmtree(bench.work)
    second = ticket_for(bench.github, looks=2)
    bench.fetch(second)
    bench.evaluate(second)
    again = read_measurement(bench.work / "results" / second.label)
    assert again.planned_runs == runs_at(2, bench.config.runs) > seen.planned_runs
    assert [look.graded for look in again.extra.looks] == [seen.planned_runs]


def test_a_base_that_was_measured_beside_an_earlier_run_is_not_measured_twice(bench: Bench) -> None:
    config = bench.config.model_copy(update={"baseline": BaselineConfig(control="always")})
    bench = dataclasses.replace(bench, config=config)
    ticket = ticket_for(bench.github)
    bench.fetch(ticket)
    bench.evaluate(ticket)
    folder = bench.work / "results" / ticket.label
    runs = sorted(path.name for path in (folder / "base").glob("*-run-*.json"))
    assert len(runs) == 2 * adopted.RUNS
    files = {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    run = bench.github.run("compression-eval.yml", "b" * 40)
    bench.github.artifact(run.id, ticket.artifact, {name: data for name, data in files.items() if ".lock" not in name})
    shutil.rmtree(bench.work)
    bench.fetch(ticket)
    into = ResultsFolder(bench.root / "taken")
    into.path.mkdir()
    plan = make_plan(dataclasses.replace(bench.options(), base_tree=bench.work / BASE))
    assert reuse_results(ticket, plan, bench.work, into) is not None
    assert sorted(path.name for path in (into.path / "base").iterdir()) == runs


@pytest.mark.parametrize(
    ("deadline", "began", "left"),
    [(80, "1000", 60.0), (80, "", 80), (None, "1000", None), (10, "1000", 0.1), (80, "soon", 80)],
)
def test_the_deadline_counts_from_the_start_of_the_job(deadline: int | None, began: str, left: float | None) -> None:
    assert minutes_left(deadline, {"COMPRESSION_EVAL_JOB_STARTED": began}, 1000 + 20 * 60) == left
