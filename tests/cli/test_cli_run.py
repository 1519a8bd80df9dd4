"""`compression-eval run`: exit codes, files, resuming, and one message for a user's mistake."""

from __future__ import annotations

import fcntl
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import small

from eval_core.domain.fixture import dump_fixture
from eval_core.domain.probe import dump_bank

FAST = ("--runs", "1", "--set", "compress_runs=1")


def command(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    code = "from bot.cli import main; main()"
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, cwd=cwd, check=False
    )


def test_a_run_writes_every_report_and_latest_points_to_it(project: Path, cli: small.Cli) -> None:
    ran = cli("run", "--label", "a", "--runs", "2", "--set", "compress_runs=3")
    assert ran.code == 0
    assert "No comparison: no baseline in baselines" in ran.out
    assert "offline: no model was called, so scores are advisory" in ran.out
    assert "9 of 9 fixture-runs" in ran.err
    folder = project / "results" / "a"
    expected = {"report.md", "report.html", "report.json", "run.json", "summary.json"}
    assert expected <= {path.name for path in folder.iterdir()}
    assert len(list(folder.glob("*-run-*.json"))) == 9
    assert (project / "results" / "latest").resolve() == folder
    assert "<html" in (folder / "report.html").read_text(encoding="utf-8")


def test_what_a_failing_compressor_printed_is_in_every_report(project: Path, cli: small.Cli) -> None:
    small.write(project / "fails.sh", "echo 'no frobnicator at line 12' >&2; exit 3\n")
    small.write(project / "fails.yml", "target: {command: [sh, fails.sh], llm: none}\n")
    ran = cli("run", *FAST, "--label", "a", "--target", "fails.yml", "--fixtures", "small-debug")
    assert "The compressor printed: no frobnicator at line 12" in ran.out
    folder = project / "results" / "a"
    assert "The compressor printed: no frobnicator at line 12" in (folder / "report.md").read_text(encoding="utf-8")
    stored = json.loads((folder / "small-debug-run-0.json").read_text(encoding="utf-8"))
    assert stored["output"] == "no frobnicator at line 12"


def test_the_same_seed_gives_the_same_scores(project: Path, cli: small.Cli) -> None:
    first, second = (
        json.loads(cli("run", *FAST, "--label", label, "--format", "json", "--quiet").out) for label in ("a", "b")
    )
    assert first["probe_scores"] == second["probe_scores"]
    assert first == second
    assert len(first["probe_scores"]) == 12


def test_json_alone_stands_on_stdout(project: Path, cli: small.Cli) -> None:
    ran = cli("run", *FAST, "--format", "json")
    assert json.loads(ran.out)["status"] == "pass"
    assert "No model configured" in ran.err


def test_quiet_says_nothing_on_stderr(project: Path, cli: small.Cli) -> None:
    assert cli("run", *FAST, "--quiet").err == ""


def test_fixtures_are_chosen_by_name(project: Path, cli: small.Cli) -> None:
    ran = cli("run", *FAST, "--fixtures", "small-plan, small-debug", "--format", "json", "--quiet")
    assert {name.partition("/")[0] for name in json.loads(ran.out)["probe_manifest"]} == {"small-debug", "small-plan"}


def test_an_interrupted_run_is_completed_and_finished_cells_are_kept(project: Path, cli: small.Cli) -> None:
    cli("run", "--label", "a", "--runs", "2", "--set", "compress_runs=2", "--quiet")
    folder = project / "results" / "a"
    (folder / "small-plan-run-1.json").unlink()
    (folder / "summary.json").unlink()
    kept = {path.name: path.stat().st_mtime_ns for path in folder.glob("*-run-*.json")}
    ran = cli("run", "--label", "a", "--runs", "2", "--set", "compress_runs=2", "--resume")
    assert ran.code == 0
    assert "6 of 6 fixture-runs" in ran.err
    after = {path.name: path.stat().st_mtime_ns for path in folder.glob("*-run-*.json")}
    assert after.pop("small-plan-run-1.json")
    assert after == kept


def test_resuming_with_another_target_is_refused(project: Path, cli: small.Cli) -> None:
    cli("run", *FAST, "--label", "a", "--quiet")
    ran = cli("run", *FAST, "--label", "a", "--resume", "--target", "builtin:opaque", "--quiet")
    assert ran.code == 2
    assert "target changed since it began" in ran.err


def test_a_label_with_results_is_left_alone(project: Path, cli: small.Cli) -> None:
    cli("run", *FAST, "--label", "a", "--quiet")
    before = {path.name: path.read_bytes() for path in (project / "results" / "a").iterdir()}
    ran = cli("run", *FAST, "--label", "a", "--quiet")
    assert ran.code == 2
    assert "has results already" in ran.err
    assert {path.name: path.read_bytes() for path in (project / "results" / "a").iterdir()} == before


def test_a_second_process_on_one_label_refuses(project: Path) -> None:
    lock = small.write(project / "results" / "a" / ".lock", "")
    with lock.open() as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        done = command("run", *FAST, "--label", "a", cwd=project)
    assert done.returncode == 2
    assert "Error: results/a: another run is writing here; wait for it or choose another --label" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_compressor_that_fails_where_the_base_never_did_is_broken(project: Path, cli: small.Cli) -> None:
    cli("baseline", "update", "--runs", "2", "--quiet")
    short = small.plan_fixture().model_copy(update={"messages": [small.user("ok"), small.say("ok")] * 9})
    cli("run", *FAST, "--label", "whole", "--quiet")
    summary = project / "results" / "whole" / "summary.json"

    def fail(body: Any) -> None:
        body["fixtures"]["small-plan"][0].update(outcome="target_error", detail="boom", probes={}, structure={})

    small.edit_json(summary, fail)
    ran = cli("compare", "baselines/offline.json", "results/whole")
    assert ran.code == 0
    said = "✖ Broken: the compressor ended in an error in 1 of 1 run of small-plan, in the base in 0 of "
    assert " ".join(ran.out.split()).startswith(said)
    assert cli("compare", "baselines/offline.json", "results/whole", "--fail-on", "regressed").code == 1
    assert "1 x the compressor ended in an error: boom" in ran.out
    small.write(project / "fixtures" / "small-plan.json", dump_fixture(short))
    ran = cli("run", *FAST, "--quiet", "--compare-to", "none", "--fail-on", "regressed")
    assert ran.code == 3
    assert "small-plan: 1 of 1 runs: not_compressed" in ran.out


def test_a_compressor_that_always_raises_does_not_pass_without_a_baseline(project: Path, cli: small.Cli) -> None:
    small.write(project / "raises.py", "def compress(messages):\n    raise ValueError('no')\n")
    small.write(project / "target.yml", "compressor: raises:compress\nllm: none\n")
    arguments = ("run", *FAST, "--quiet", "--target", "target.yml", "--sandbox", "none")
    ran = cli(*arguments, "--compare-to", "none", "--fail-on", "regressed")
    assert ran.code == 1
    assert ran.out.startswith("✖ Broken: the compressor ended in an error in 3 of 3 runs of ")
    cli("baseline", "update", "--runs", "2", "--quiet")
    ran = cli(*arguments, "--fail-on", "regressed", "--label", "second")
    assert (ran.code, ran.out.split(":")[0]) == (1, "✖ Broken")


def test_a_session_that_does_not_shrink_is_measured_and_stored(project: Path, cli: small.Cli) -> None:
    short = small.plan_fixture().model_copy(update={"messages": [small.user("ok"), small.say("ok")] * 9})
    small.write(project / "fixtures" / "small-plan.json", dump_fixture(short))
    assert cli("baseline", "update", "--runs", "2", "--quiet").code == 0
    ran = cli("run", "--runs", "2", "--quiet", "--fail-on", "regressed")
    assert ran.code == 0
    assert "not_compressed" in ran.out


def test_a_regression_is_found_and_fails_where_that_is_asked_for(project: Path, cli: small.Cli) -> None:
    cli("baseline", "update", "--runs", "4", "--quiet")
    ran = cli("run", "--runs", "3", "--target", "builtin:opaque", "--quiet", "--fail-on", "regressed")
    assert ran.code == 1
    assert ran.out.startswith("▼ Regressed: ")
    assert (project / "results" / "latest" / "verdict.json").exists()
    badge = json.loads((project / "results" / "latest" / "badge.json").read_text(encoding="utf-8"))
    assert badge == {"schemaVersion": 1, "label": "compression", "message": "regressed", "color": "red"}
    ran = cli("run", "--runs", "3", "--target", "builtin:opaque", "--quiet", "--label", "again")
    assert ran.code == 0
    ran = cli("run", "--quiet", "--fail-on", "inconclusive", "--label", "same")
    assert ran.code == 0
    assert ran.out.startswith("= No detectable change: ")


def test_a_part_of_the_suite_is_compared_with_that_part_of_the_baseline(project: Path, cli: small.Cli) -> None:
    cli("baseline", "update", "--runs", "4", "--quiet")
    ran = cli("run", "--fixtures", "small-debug", "--quiet")
    assert ran.out.startswith("= No detectable change: ")


def test_probes_that_changed_are_named_and_nothing_is_compared(project: Path, cli: small.Cli) -> None:
    cli("baseline", "update", "--runs", "1", "--quiet")
    bank = small.debug_bank()
    first, *rest = bank.probes
    edited = bank.model_copy(update={"probes": [first.model_copy(update={"question": "Which code?"}), *rest]})
    small.write(project / "probes" / "small-debug.probes.json", dump_bank(edited))
    ran = cli("run", *FAST, "--quiet", "--label", "a")
    assert ran.code == 0
    assert ran.out.startswith("≠ Not comparable: probes/small-debug.probes.json differs (")
    assert "Compared with the baseline" not in ran.out
    for gate in ("regressed", "inconclusive"):
        ran = cli("compare", "baselines/offline.json", "results/a", "--fail-on", gate)
        assert ran.code == 3
        assert "probes/small-debug.probes.json differs" in ran.out
        assert (
            f"--fail-on {gate} cannot be decided: not comparable. Measure the baseline with these settings" in ran.err
        )
        ran = cli("run", *FAST, "--quiet", "--label", gate, "--fail-on", gate)
        assert ran.code == 3
        assert "cannot be decided" in ran.err


Break = Callable[[Path], object]


def _json(path: str, change: Callable[[Any], object]) -> Break:
    return lambda root: small.edit_json(root / path, change)


MISTAKES: dict[str, tuple[Break, tuple[str, ...], str]] = {
    "unknown fixture": (
        lambda root: None,
        ("--fixtures", "small-debgu"),
        "small-debgu: no such fixture in fixtures; did you mean small-debug?",
    ),
    "misspelt type": (
        _json("probes/small-debug.probes.json", lambda b: b["probes"][3].update(type="recal")),
        (),
        (
            "probes/small-debug.probes.json: probes[3].type: 'recal' is not one of "
            "recall, artifact, continuation, decision"
        ),
    ),
    "duplicate id": (
        _json("probes/small-debug.probes.json", lambda b: b["probes"][1].update(id="recall-error")),
        (),
        "probes/small-debug.probes.json: probes[1].id: 'recall-error' is used twice; ids are unique in a bank",
    ),
    "another fixture's bank": (
        _json("probes/small-debug.probes.json", lambda b: b.update(fixture="small-plan")),
        (),
        "probes/small-debug.probes.json: fixture: 'small-plan' is another fixture's bank, 'small-debug' was expected",
    ),
    "no bank": (
        lambda root: (root / "probes/small-debug.probes.json").unlink(),
        (),
        (
            "probes/small-debug.probes.json: no probe bank for fixture small-debug; "
            "`compression-eval probe propose small-debug` drafts one"
        ),
    ),
    "broken JSON": (
        lambda root: small.write(root / "fixtures/small-debug.json", '{\n"name": small\n}'),
        (),
        "fixtures/small-debug.json: line 2, column 9: broken JSON: Expecting value",
    ),
    "not UTF-8": (
        lambda root: (root / "fixtures/small-debug.json").write_bytes(b'{"name": "\xff"}'),
        (),
        "fixtures/small-debug.json: not UTF-8 (byte 10); save the file as UTF-8",
    ),
    "orphan answer": (
        _json("fixtures/small-debug.json", lambda b: b["messages"].pop(2)),
        (),
        (
            "fixtures/small-debug.json: messages[2].tool_call_id: 'c1' answers no tool call before it; "
            "drop the message or restore the call"
        ),
    ),
    "no messages": (
        _json("fixtures/small-debug.json", lambda b: b["messages"].clear()),
        (),
        "fixtures/small-debug.json: messages: 0 messages are too few to compress; at least 4 are needed",
    ),
    "three messages": (
        _json("fixtures/small-debug.json", lambda b: b.update(messages=[small.user("x")] * 3)),
        (),
        "fixtures/small-debug.json: messages: 3 messages are too few to compress; at least 4 are needed",
    ),
    "no fixtures": (
        lambda root: (root / ".compression-eval.yml").write_text("fixtures: elsewhere\n"),
        (),
        "elsewhere: no such folder; `compression-eval fixture import SESSION` makes a fixture there",
    ),
    "label": (lambda root: None, ("--label", "../x"), "--label '../x': use letters, digits"),
    "results below a file": (
        lambda root: None,
        ("--results", "probes/small-debug.probes.json/r"),
        "probes/small-debug.probes.json/r/2",
    ),
    "configuration": (
        lambda root: small.write(root / ".compression-eval.yml", "runs: 0"),
        (),
        ".compression-eval.yml: runs: Input should be greater than or equal to 1 (got '0')",
    ),
    "missing configuration": (lambda root: None, ("--config", "my.yml"), "my.yml: no such file"),
    "unknown compressor": (
        lambda root: None,
        ("--target", "builtin:opaqe"),
        "builtin:opaqe: no such compressor; did you mean builtin:opaque?",
    ),
    "missing target": (lambda root: None, ("--target", "mine.yml"), "--target mine.yml: no such file"),
    "missing baseline": (
        lambda root: None,
        ("--compare-to", "baselines/none.json"),
        "baselines/none.json: no such results folder or baseline file",
    ),
    "old baseline": (
        lambda root: small.write(root / "baselines/offline.json", '{"schema_version": 0, "fixtures": {}, "texts": {}}'),
        (),
        (
            "baselines/offline.json: schema_version: 0, this program reads 1; measure it again with "
            "`compression-eval baseline update`"
        ),
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_one_message_and_exit_code_2(name: str, project: Path, cli: small.Cli) -> None:
    spoil, arguments, message = MISTAKES[name]
    earlier = small.write(project / "results" / "earlier" / "summary.json", "kept")
    spoil(project)
    ran = cli("run", *FAST, "--quiet", *arguments)
    assert ran.code == 2
    assert ran.out == ""
    assert ran.err.startswith(f"Error: {message}")
    assert ran.err.count("\n") == 1
    assert earlier.read_text() == "kept"
    assert not list((project / "results").rglob("*-run-*.json"))


@pytest.mark.parametrize("name", ["misspelt type", "results below a file"])
def test_the_real_command_shows_no_traceback(name: str, project: Path) -> None:
    spoil, arguments, message = MISTAKES[name]
    spoil(project)
    done = command("run", *FAST, "--quiet", *arguments, cwd=project)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"Error: {message}")
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("arguments", [("--runs", "0"), ("--frm", "x"), ("--format", "xml")])
def test_a_wrong_option_is_explained_with_exit_code_2(
    arguments: tuple[str, ...], project: Path, cli: small.Cli
) -> None:
    ran = cli("run", *arguments)
    assert ran.code == 2
    assert arguments[0] in ran.err
    assert "Usage: " in ran.err


def test_lists_of_parts_and_null_contents_run(project: Path, cli: small.Cli) -> None:
    def parts(body: Any) -> None:
        for message in body["messages"]:
            if message["role"] == "user":
                message["content"] = [{"type": "text", "text": message["content"]}]

    small.edit_json(project / "fixtures/small-debug.json", parts)
    ran = cli("run", *FAST, "--fixtures", "small-debug", "--quiet", "--format", "json")
    assert ran.code == 0
    assert json.loads(ran.out)["probe_scores"]["small-debug/recall-error"] > 3


def test_half_a_character_in_a_session_stops_nothing(project: Path, cli: small.Cli) -> None:
    """Logs that were cut in the middle of an emoji are common."""

    def cut(body: Any) -> None:
        for index in (1, 3, 7, 13):
            body["messages"][index]["content"] += " \ud83d"

    path = project / "fixtures/small-debug.json"
    body = json.loads(path.read_text(encoding="utf-8"))
    cut(body)
    path.write_text(json.dumps(body), encoding="utf-8")
    assert cli("run", *FAST, "--fixtures", "small-debug", "--quiet", "--label", "a").code == 0
    assert cli("report", "results/a", "--format", "html").code == 0
    assert cli("run", *FAST, "--fixtures", "small-debug", "--quiet", "--label", "a", "--resume").code == 0
    assert cli("baseline", "update", "--from", "results/a").code == 0
    assert cli("compare", "baselines/offline.json", "results/a").code == 0


@pytest.mark.parametrize("arguments", [("--help",), ("baseline", "update", "--help")])
def test_help_is_instant_because_it_imports_nothing_heavy(arguments: tuple[str, ...], tmp_path: Path) -> None:
    code = (
        "import sys\n"
        "from bot.cli import main\n"
        f"sys.argv = ['compression-eval', *{list(arguments)!r}]\n"
        "try:\n    main()\nexcept SystemExit as exc:\n    assert not exc.code\n"
        "heavy = {'litellm', 'tiktoken', 'numpy', 'pydantic', 'github', 'aiohttp', 'jinja2', 'rich'}\n"
        "heavy &= set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stderr
    assert "Usage: " in done.stdout
    assert "Example" in done.stdout or "Try it" in done.stdout


def test_a_long_session_runs(project: Path, cli: small.Cli) -> None:
    """About sixty thousand tokens; `bench/large_session.py` measures half a million."""
    middle = []
    for number in range(300):
        middle += [
            small.calls((f"x{number}", "terminal", {"command": f"check part {number}"})),
            small.result(
                f"x{number}", small.bulk(f"part {number}", 11) + f"\nfound ticket OPS-{number} in part_{number}.log"
            ),
        ]
    fixture = small.debug_fixture()
    messages = [*fixture.messages[:4], *middle, *fixture.messages[4:]]
    small.write(project / "fixtures/small-debug.json", dump_fixture(fixture.model_copy(update={"messages": messages})))
    ran = cli("run", *FAST, "--fixtures", "small-debug", "--quiet", "--format", "json")
    assert ran.code == 0
    body = json.loads(ran.out)
    assert body["baseline_tokens"] > 55_000
    assert body["compressed_tokens"] < 0.4 * body["baseline_tokens"]
    assert body["probe_scores"]["small-debug/recall-error"] > 3


def test_a_bank_of_drafts_is_announced_before_and_in_the_report(project: Path, cli: small.Cli) -> None:
    path = project / "probes" / "small-debug.probes.json"
    small.edit_json(path, lambda body: [probe.update(draft=True) for probe in body["probes"]])
    ran = cli("run", *FAST, "--compare-to", "none", "--quiet")
    assert ran.code == 0
    assert "Warning: small-debug: 4 probes not reviewed yet (marked as drafts)." in ran.err
    assert "4 of 4 probes are drafts that have not been reviewed" in " ".join(ran.out.split())
    assert json.loads((project / "results" / "latest" / "report.json").read_text())["draft_probes"] == 4
    assert "4 of 4 probes are drafts" in (project / "results" / "latest" / "report.md").read_text()
