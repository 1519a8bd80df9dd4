"""A pull request is compared with its base as it is, not with what the base was when a baseline was stored."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
import small

from eval_core.base.config import BaselineConfig, Config
from eval_core.base.globs import watched_digest
from eval_core.base.numbers import percent_change
from eval_core.comparing.compare import ReportData
from eval_core.measuring.base_branch import BranchPoint, branch_point, exported, other_environment
from eval_core.measuring.measure import Sinks, compare_run
from eval_core.measuring.measure import measure as measure_plan
from eval_core.measuring.options import RunOptions
from eval_core.measuring.plan import make_plan
from eval_core.reporting.markdown import render_markdown
from eval_core.reporting.view import make_view
from eval_core.sandbox.isolation import detect
from eval_core.storage.baselines import load_side, store_baseline
from eval_core.storage.results import open_results
from eval_core.strands.findings import Kind

KEEPS = """
class Compressor:
    def compress(self, messages, current_tokens=None):
        text = "\\n".join(str(message.get("content")) for message in messages[1:])
        return [messages[0], {"role": "user", "content": "Summary:\\n" + text[: len(text) * 6 // 7]}]
"""
LOSES = KEEPS.replace("* 6 // 7", "// 9")
DOCUMENTED = LOSES.replace("class Compressor:", 'class Compressor:\n    """Shortens."""\n')
CONFIG = {
    "target": {"compressor": "mini:Compressor", "llm": "none"},
    "watch": ["mini.py"],
    "runs": 2,
    "compress_runs": 4,
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A repository whose baseline was measured before its compressor lost something."""
    if not detect("auto").confined:
        pytest.skip("no sandbox on this machine")
    folder = tmp_path / "base"
    small.write_suite(folder, small.cases())
    small.write(folder / "mini.py", KEEPS)
    data = measure(RunOptions(Config.model_validate(CONFIG), root=folder, compare_to="none"), tmp_path / "first")
    assert store_baseline(data.candidate, folder / "baselines", "offline", noise={})
    return folder


def measure(options: RunOptions, results: Path, label: str = "a") -> ReportData:
    plan = make_plan(options, results)
    with open_results(results, label, resume=False) as folder:
        return compare_run(plan, measure_plan(plan, Sinks(folder)), folder)


def pull_request(root: Path, source: str, **settings: object) -> RunOptions:
    tree = root.parent / "head"
    small.write(tree / "mini.py", source)
    return RunOptions(Config.model_validate({**CONFIG, **settings}), root=root, tree=tree, base_tree=root)


def test_a_docstring_is_not_blamed_for_what_the_base_lost(root: Path, tmp_path: Path) -> None:
    small.write(root / "mini.py", LOSES)  # merged without a new baseline
    data = measure(pull_request(root, DOCUMENTED), tmp_path / "results")
    assert data.verdict is not None
    assert data.verdict.kind is Kind.NO_DETECTABLE_CHANGE
    (stale,) = [note for note in data.verdict.notes if "is stale" in note]
    assert "The base branch against it: Regressed" in stale
    assert "baselines/offline.json" in stale
    assert data.next_step == "Nothing to do in this change; look into what the base branch lost since its baseline."
    assert any(note.startswith("Base: the base branch, measured today and not taken") for note in data.verdict.notes)


def test_without_a_control_the_stale_baseline_blames_it(root: Path, tmp_path: Path) -> None:
    small.write(root / "mini.py", LOSES)
    job = pull_request(root, DOCUMENTED, baseline=BaselineConfig(control="never").model_dump())
    data = measure(job, tmp_path / "results")
    assert data.verdict is not None
    assert data.verdict.kind is Kind.REGRESSED


def test_without_a_baseline_the_base_is_measured_in_the_same_run(root: Path, tmp_path: Path) -> None:
    (root / "baselines/offline.json").unlink()
    data = measure(pull_request(root, LOSES), tmp_path / "results")
    assert data.verdict is not None
    assert data.verdict.kind is Kind.REGRESSED
    assert any(note.startswith("No baseline is stored; ") for note in data.verdict.notes)
    assert list((tmp_path / "results/a/base").glob("*-run-*.json"))
    again = measure(pull_request(root, KEEPS), tmp_path / "results", "b")
    assert again.verdict is not None
    assert again.verdict.kind is Kind.NO_DETECTABLE_CHANGE
    assert again.next_step == "Nothing to do."
    assert not list((tmp_path / "results/b/base").glob("*-run-*.json")), "measured once"


def test_a_baseline_of_other_conditions_is_no_obstacle_either(root: Path, tmp_path: Path) -> None:
    data = measure(pull_request(root, LOSES, focus_topic="the quota"), tmp_path / "results")
    assert data.verdict is not None
    assert data.verdict.kind is Kind.REGRESSED
    assert any("has other fixtures, probes, models or settings" in note for note in data.verdict.notes)


def test_a_baseline_that_was_asked_for_by_its_path_is_the_only_one(root: Path, tmp_path: Path) -> None:
    job = pull_request(root, LOSES, focus_topic="the quota")
    data = measure(replace(job, compare_to=str(root / "baselines/offline.json")), tmp_path / "results")
    assert data.verdict is not None
    assert data.verdict.kind is Kind.NOT_COMPARABLE
    assert not (tmp_path / "results/a/base").exists()


@pytest.mark.parametrize("suite", ["with a baseline", "without one"])
def test_a_change_that_brings_the_first_compressor_has_nothing_to_compare_with(
    root: Path, tmp_path: Path, suite: str
) -> None:
    if suite == "without one":
        (root / "baselines/offline.json").unlink()
    empty = tmp_path / "empty"
    empty.mkdir()
    point = BranchPoint("c" * 40, "main")
    job = replace(pull_request(root, LOSES), base_tree=empty, base_point=point)
    data = measure(job, tmp_path / "results")
    assert data.verdict is None
    assert data.first
    assert data.note == (
        f"there is no compressor in main at {'c' * 12} yet (no file that `watch` names), so there is nothing to "
        "compare with"
    )
    nowhere = replace(job, settings=job.settings.model_copy(update={"watch": ["elsewhere/*.py"]}))
    assert not measure(nowhere, tmp_path / "results", "nowhere").first, (
        "`watch` is wrong, and every change would be one"
    )


def test_a_base_whose_compressor_fails_in_every_run_does_not_blame_the_change(root: Path, tmp_path: Path) -> None:
    (root / "baselines/offline.json").unlink()
    broken = "import nothing_of_the_kind\n" + KEEPS
    small.write(root / "mini.py", broken)
    for label, source in (("mended", KEEPS), ("as-broken", broken + "# with a comment\n")):
        data = measure(pull_request(root, source), tmp_path / "results", label)
        assert data.verdict is None
        assert data.note == (
            "the compressor of the base branch could not be imported or constructed, in every run, so there is "
            "nothing to compare with"
        )


def test_a_baseline_of_the_tip_is_not_called_stale_where_the_base_is_older(root: Path, tmp_path: Path) -> None:
    older = tmp_path / "older"
    small.write(older / "mini.py", LOSES)
    tip = watched_digest(root, ["mini.py"])
    job = replace(pull_request(root, DOCUMENTED), base_tree=older, base_point=BranchPoint("c" * 40, "main", tip))
    data = measure(job, tmp_path / "results")
    assert data.verdict is not None
    assert data.verdict.kind is Kind.NO_DETECTABLE_CHANGE, "main has improved since; this change has done nothing"
    assert data.next_step == "Nothing to do."
    assert data.verdict.remarks == ()
    assert any(note.startswith(f"Base: main at {'c' * 12}, ") for note in data.verdict.notes)


def test_a_base_tree_is_measured_once(root: Path, tmp_path: Path) -> None:
    small.write(root / "mini.py", LOSES)
    first = measure(pull_request(root, DOCUMENTED), tmp_path / "results")
    again = measure(pull_request(root, DOCUMENTED), tmp_path / "results", "b")
    assert len(list((tmp_path / "results/bases").glob("*.json"))) == 1
    assert list((tmp_path / "results/a/base").glob("*-run-*.json"))
    assert not list((tmp_path / "results/b/base").glob("*-run-*.json"))
    assert again.verdict is not None
    assert first.verdict is not None
    assert again.verdict.kind is first.verdict.kind


def test_a_fresh_baseline_is_used_as_it_is_and_named_with_its_age(root: Path, tmp_path: Path) -> None:
    data = measure(pull_request(root, LOSES), tmp_path / "results")
    assert data.verdict is not None
    assert data.verdict.kind is Kind.REGRESSED
    assert not (tmp_path / "results/a/base").exists()
    assert any(
        note.startswith("Base: the stored baseline ") and "measured today" in note for note in data.verdict.notes
    )


def test_a_pull_request_is_compared_with_the_last_release_as_well(root: Path, tmp_path: Path) -> None:
    path = root / "baselines/history.jsonl"
    release = {**json.loads(path.read_text()), "source_sha": "e" * 40, "release": "v1.4.0"}
    path.write_text("".join(json.dumps(line) + "\n" for line in ({**release, "release": "v1.3.9"}, release)))
    small.write(root / "mini.py", LOSES)  # decayed since the release, so that the base hides it
    data = measure(pull_request(root, DOCUMENTED), tmp_path / "results")
    assert data.verdict is not None
    assert data.verdict.kind is Kind.NO_DETECTABLE_CHANGE
    (line,) = [remark for remark in data.verdict.remarks if "release" in remark]
    before, now = (
        measurement.facts_kept or 0 for measurement in (load_side(root / "baselines/offline.json"), data.candidate)
    )
    assert line.startswith("Compared with the last release v1.4.0: ")
    assert f"facts kept {percent_change(before, now)} (counted)." in line
    assert line in render_markdown(make_view(data))

    path.write_text(json.dumps({**release, "fingerprint": "other"}) + "\n")
    other = measure(pull_request(root, DOCUMENTED), tmp_path / "results", "b")
    assert other.verdict is not None
    assert not [remark for remark in other.verdict.remarks if "release" in remark]


def test_measuring_a_sandboxed_compressor_again_stores_nothing_new(root: Path, tmp_path: Path) -> None:
    again = measure(RunOptions(Config.model_validate(CONFIG), root=root, compare_to="none"), tmp_path / "again")
    assert store_baseline(again.candidate, root / "baselines", "offline", noise={}) is None


def test_an_update_after_a_docstring_says_that_the_baseline_is_of_the_new_files(
    root: Path, tmp_path: Path, cli: small.Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(root)
    small.write(root / ".compression-eval.yml", json.dumps(CONFIG))
    assert cli("baseline", "check").out == "baselines/offline.json: matches\n"
    small.write(root / "mini.py", KEEPS.replace("class Compressor:", 'class Compressor:\n    """Shortens."""\n'))
    changed = cli("baseline", "check")
    assert changed.code == 2
    assert changed.out == (
        "baselines/offline.json: out of date: watched files changed; `compression-eval baseline update offline`\n"
    )
    job = RunOptions(Config.model_validate(CONFIG), root=root, compare_to="none")
    assert store_baseline(measure(job, tmp_path / "again").candidate, root / "baselines", "offline", noise={})
    assert cli("baseline", "check").code == 0


def git(tree: Path, *words: str) -> str:
    name = ("-c", "user.name=n", "-c", "user.email=n@example.org")
    return subprocess.run(["git", "-C", tree, *name, *words], check=True, capture_output=True, text=True).stdout.strip()


def commit(tree: Path, source: str, message: str) -> str:
    small.write(tree / "mini.py", source)
    git(tree, "add", "-A")
    git(tree, "commit", "-qm", message)
    return git(tree, "rev-parse", "HEAD")


def test_on_the_command_line_the_base_is_where_the_branch_left_the_default_branch(
    root: Path, cli: small.Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(root)
    small.write(root / ".gitignore", "results/\n")
    small.write(root / ".compression-eval.yml", json.dumps(CONFIG))
    git(root, "init", "-q", "-b", "main")
    commit(root, KEEPS, "first")
    lost = commit(root, LOSES, "lose, without a new baseline")
    once = ("run", "--fixtures", small.cases()[0].fixture.name, "--fail-on", "regressed")
    on_main = cli(*once, "--quiet")
    assert on_main.code == 1, "main itself is compared with its baseline"
    git(root, "checkout", "-qb", "documented")
    commit(root, DOCUMENTED, "a docstring")
    git(root, "checkout", "-q", "main")
    commit(root, KEEPS.replace("6 // 7", "5 // 7"), "main goes on")
    git(root, "checkout", "-q", "documented")
    ran = cli(*once, "--label", "a")
    assert ran.code == 0
    assert ran.out.startswith("= No detectable change: ")
    assert f"Comparing with main at {lost[:12]}, where this branch left it" in ran.err
    assert "main has changed mini.py as well since; the two together are not measured." in ran.err
    assert f"main at {lost[:12]} against it: Regressed" in " ".join(ran.out.split())
    assert f"Base: main at `{lost[:12]}`, measured today" in (root / "results/a/report.md").read_text()


def test_on_the_command_line_no_baseline_is_needed_where_git_knows_the_base(
    root: Path, cli: small.Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(root)
    small.write(root / ".gitignore", "results/\nbaselines/\n")
    small.write(root / ".compression-eval.yml", json.dumps(CONFIG))
    (root / "baselines/offline.json").unlink()
    git(root, "init", "-q", "-b", "main")
    first = commit(root, KEEPS, "first")
    once = ("run", "--fixtures", small.cases()[0].fixture.name, "--fail-on", "regressed")
    on_main = cli(*once)
    assert on_main.code == 3, "nothing has changed, and nothing is stored"
    assert "`compression-eval baseline update` makes one" in on_main.err
    git(root, "checkout", "-qb", "work")
    commit(root, DOCUMENTED.replace("// 9", "* 6 // 7"), "a docstring")
    calm = cli(*once)
    assert calm.code == 0
    assert f"Comparing with main at {first[:12]}, where this branch left it" in calm.err
    small.write(root / "mini.py", LOSES)
    assert cli(*once, "--quiet").code == 1


def test_a_checkout_that_changed_no_watched_file_has_no_base_to_measure(tmp_path: Path) -> None:
    watch, sub = ("mini.py", "*.md"), tmp_path / "packages/agent"
    assert branch_point(tmp_path, watch) is None, "not a repository"
    git(tmp_path, "init", "-q", "-b", "main")
    small.write(tmp_path / "mini.py", "of another package")
    first = commit(sub, KEEPS, "first")
    assert branch_point(sub, watch) is None
    small.write(tmp_path / "mini.py", "changed in another package")
    small.write(sub / "notes.txt", "not watched")
    assert branch_point(sub, watch) is None
    small.write(sub / "mini.py", LOSES)
    found = branch_point(sub, watch)
    assert found is not None
    assert (found.sha, found.branch, found.tip) == (first, "main", None)
    with exported(sub, found.sha) as tree:
        assert [path.name for path in tree.iterdir()] == ["mini.py"]
        assert (tree / "mini.py").read_text() == KEEPS
    assert not tree.exists()
    small.write(sub / "mini.py", KEEPS)
    small.write(sub / "new.md", "not yet added")
    assert branch_point(sub, watch) == found
    git(tmp_path, "checkout", "-qb", "work")
    commit(sub, LOSES, "mine")
    git(tmp_path, "checkout", "-q", "main")
    small.write(sub / "theirs.md", "of others")
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-qm", "not mine")
    git(tmp_path, "checkout", "-q", "work")
    apart = branch_point(sub, watch)
    assert apart is not None
    assert (apart.sha, apart.both, apart.tip is None) == (first, (), False)


def test_an_environment_that_differs_from_the_baselines_is_named(root: Path, tmp_path: Path) -> None:
    found = measure(pull_request(root, DOCUMENTED), tmp_path / "results").candidate
    assert found.provenance.environment["Python"]
    assert other_environment(found, found) == ""
    then = {**found.provenance.environment, "Python": "3.0.0", "gone-since": "1.2.3"}
    old = found.model_copy(update={"provenance": found.provenance.model_copy(update={"environment": then})})
    now = found.provenance.environment["Python"]
    assert f"Python (3.0.0 -> {now}), gone-since (1.2.3 -> none)." in other_environment(old, found)
    unknown = old.model_copy(update={"provenance": old.provenance.model_copy(update={"environment": {}})})
    assert other_environment(unknown, found) == ""
