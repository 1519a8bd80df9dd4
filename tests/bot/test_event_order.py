"""What happens on the base branch while a pull request is open is neither its merit nor its fault."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import adopted
import pytest
from bot_gate import PLAN, environment
from bot_tickets import Bench
from bot_world import publish
from loopback import LoopbackGitHub

from bot.demo.journey import label_event
from bot.github.repository import GitHub
from bot.github.rest import ApiRetries
from bot.pull_request.ticket import Ticket
from bot.steps.base_config import read_base_config
from bot.steps.gate import Admission, admit
from bot.steps.publish import Published
from eval_core.base.config import load_config
from eval_core.base.globs import watched_digest
from eval_core.storage.baselines import dump_baseline

GOOD = adopted.base_tree(baseline=False)
POOR = adopted.worse_tree(GOOD)
NOTHING_CHANGED = "No detectable change"


def documented(tree: adopted.Tree) -> adopted.Tree:
    """Change nothing but a comment of the compressor."""
    return {**tree, adopted.COMPRESSOR: tree[adopted.COMPRESSOR] + b"\n# Nothing but a comment.\n"}


def described(tree: adopted.Tree) -> adopted.Tree:
    """Change another watched file, and nothing that matters."""
    return {**tree, "agent/summary.py": tree["agent/summary.py"] + b"\n# Nothing but a comment.\n"}


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> adopted.Tree:
    """A baseline of GOOD that knows which files it is of."""
    root = adopted.on_disk(GOOD, tmp_path_factory.mktemp("good"))
    found = adopted.measured("anchored", 10)
    watched = watched_digest(root, load_config(None, root).watch)
    provenance = found.provenance.model_copy(
        update={"watched": watched, "target": "agent.context_compressor:ContextCompressor"}
    )
    found = found.model_copy(update={"provenance": provenance})
    return {"baselines/offline.json": dump_baseline(found, {}).encode()}


class Repository:
    """A repository on loopback with one labelled pull request, and the bot's jobs as the workflow runs them."""

    def __init__(self, github: LoopbackGitHub, folder: Path) -> None:
        self.github, self._folder, self._run = github, folder, 100

    def results(self, ticket: Ticket) -> Path:
        """The results folder of the newest run."""
        return self._folder / str(self._run) / ".compression-eval/results" / ticket.label

    def label(self, before_publishing: Callable[[], None] = lambda: None) -> tuple[Ticket, Published, str]:
        """Add the label and let every job run; return the ticket, what was posted, and the comment."""
        self._run += 1
        github = self.github
        github.label(1, adopted.LABEL)
        client = GitHub(adopted.REPO, github.job_token(), api_url=github.url, retry=ApiRetries(timeout=5))
        event = label_event(adopted.REPO, github.state.pulls[1], "maintainer")
        found = admit(
            client,
            "pull_request_target",
            event,
            environment(self._run),
            read_config=read_base_config,
            describe=lambda _: PLAN,
        )
        assert isinstance(found, Admission), found
        ticket = found.ticket
        # The jobs check out the tip of the base branch, and take what judges from there.
        root = adopted.on_disk(dict(github.state.history.commits[ticket.base_sha].tree), self._folder / str(self._run))
        bench = Bench(github, client, root, load_config(None, root))
        bench.fetch(ticket)
        bench.evaluate(ticket)
        folder = self.results(ticket)
        before_publishing()
        posted = publish(client, ticket, bench.config, root=root, folder=folder, result="success")
        assert posted.troubles == ()
        return ticket, posted, github.comments(1)[-1].body


OpenPull = Callable[[adopted.Tree, adopted.Tree], Repository]


@pytest.fixture
def open_pull(tmp_path: Path) -> Iterator[OpenPull]:
    """Return a function that opens a repository with this base and this pull request."""
    with ExitStack() as stack:

        def opened(base: adopted.Tree, head: adopted.Tree) -> Repository:
            return Repository(stack.enter_context(adopted.world(base, head)[0]), tmp_path)

        yield opened


def measured_base(repository: Repository, ticket: Ticket) -> bool:
    """Tell whether the base was measured in the newest run."""
    return (repository.results(ticket) / "base").exists()


def test_the_base_improves_after_the_branch_point(open_pull: OpenPull, measured: adopted.Tree) -> None:
    """With the baseline of the improvement, which the pull request has nothing to do with."""
    repository = open_pull(POOR, described(POOR))
    fork = repository.github.state.refs["heads/main"]
    tip = repository.github.push("main", {**GOOD, **measured})
    ticket, posted, comment = repository.label()
    assert (ticket.compared_sha, ticket.base_sha, ticket.behind) == (fork, tip, 1)
    assert posted.title.startswith(NOTHING_CHANGED)
    assert "**Next step:** Nothing to do." in comment
    assert "is stale" not in comment
    assert f"compared with `main` at `{fork[:7]}`, 1 commit behind its tip" in comment


def test_the_base_loses_after_the_branch_point(open_pull: OpenPull, measured: adopted.Tree) -> None:
    base = {**GOOD, **measured}
    repository = open_pull(base, described(base))
    repository.github.push("main", {**POOR, **measured})
    ticket, posted, comment = repository.label()
    assert posted.title.startswith(NOTHING_CHANGED)
    assert "by its stored baseline" in comment
    assert not measured_base(repository, ticket), "the stored baseline is of what it branched from"


def test_the_same_loss_on_both_sides_is_still_the_pull_requests_own(open_pull: OpenPull) -> None:
    repository = open_pull(GOOD, documented(POOR))
    repository.github.push("main", POOR)
    _, posted, comment = repository.label()
    assert posted.title.startswith("Regressed")
    assert f"`main` has changed `{adopted.COMPRESSOR}` as well since this pull request left it." in comment


@pytest.mark.parametrize("fork", [True, False], ids=["from a fork", "from a branch"])
def test_the_first_label_in_a_fresh_repository_needs_no_baseline(open_pull: OpenPull, fork: bool) -> None:
    repository = open_pull(GOOD, POOR)
    if not fork:
        pull = repository.github.state.pulls[1]
        pull.head_repo, pull.head_owner = adopted.REPO, adopted.REPO.split("/")[0]
    ticket, posted, comment = repository.label()
    assert posted.title.startswith("Regressed")
    assert measured_base(repository, ticket)
    assert f"compared with `main` at `{ticket.base_sha[:7]}`" in comment
    assert "No baseline is stored" in comment


def test_a_baseline_of_the_very_files_is_taken_as_it_is(open_pull: OpenPull, measured: adopted.Tree) -> None:
    base = {**GOOD, **measured}
    repository = open_pull(base, {**POOR, **measured})
    ticket, posted, comment = repository.label()
    assert posted.title.startswith("Regressed")
    assert not measured_base(repository, ticket)
    assert f"compared with `main` at `{ticket.base_sha[:7]}`, by its stored baseline" in comment


def test_a_stale_baseline_blames_nobody_and_the_next_step_says_what_is_left_to_do(
    open_pull: OpenPull, measured: adopted.Tree
) -> None:
    base = {**POOR, **measured}
    repository = open_pull(base, described(base))
    ticket, posted, comment = repository.label()
    assert posted.title.startswith(NOTHING_CHANGED)
    assert measured_base(repository, ticket)
    assert f"main at `{ticket.base_sha[:12]}` against it: Regressed" in comment
    assert "**Next step:** Nothing to do in this change; look into what the base branch lost" in comment
    assert "Nothing to do." not in comment


def test_a_retargeted_pull_request_is_measured_for_its_new_base(open_pull: OpenPull) -> None:
    repository = open_pull(GOOD, documented(POOR))
    github = repository.github
    fork = github.state.refs["heads/main"]
    first, posted, _ = repository.label()
    assert (first.base_ref, first.compared_sha) == ("main", fork)
    assert posted.title.startswith("Regressed")
    release = github.state.refs["heads/release"] = github.commit(POOR, (fork,))
    github.push_to_pull(1, documented(POOR), onto=(release,))
    github.retarget(1, "release")
    second, posted, comment = repository.label()
    assert (second.base_ref, second.compared_sha) == ("release", release)
    assert posted.title.startswith(NOTHING_CHANGED)
    assert f"compared with `release` at `{release[:7]}`" in comment


def test_a_base_that_changes_while_the_jobs_run_is_told(open_pull: OpenPull) -> None:
    repository = open_pull(GOOD, described(GOOD))
    github = repository.github
    github.state.refs["heads/release"] = github.state.refs["heads/main"]
    _, _, comment = repository.label(before_publishing=lambda: github.retarget(1, "release"))
    assert "The pull request is meant for `release` now. This was measured for `main`; add the label again." in comment


def test_a_renamed_compressor_is_measured_where_the_pull_request_has_it(open_pull: OpenPull) -> None:
    moved = {("agent/memory.py" if path == adopted.COMPRESSOR else path): content for path, content in POOR.items()}
    config, place = ".compression-eval.yml", b"agent.context_compressor:ContextCompressor"
    assert place in moved[config]
    moved = {
        path: content.replace(place, b"agent.memory:ContextCompressor").replace(b".context_compressor", b".memory")
        for path, content in moved.items()
    }
    repository = open_pull(GOOD, moved)
    _, posted, comment = repository.label()
    assert posted.title.startswith("Regressed"), comment
    assert "`agent.memory:ContextCompressor` was measured" in comment
    assert "On the base it is `agent.context_compressor:ContextCompressor`." in comment


def test_a_compressor_that_is_gone_from_its_place_says_what_to_do(open_pull: OpenPull) -> None:
    moved = {f"src/{path}" if path.startswith("agent/") else path: content for path, content in GOOD.items()}
    config = ".compression-eval.yml"
    moved[config] = moved[config].replace(b"pythonpath:\n  - .", b"pythonpath:\n  - src")
    assert moved[config] != GOOD[config]
    _, posted, comment = open_pull(GOOD, moved).label()
    assert posted.title.startswith("Broken")
    assert "merge a change of that file that fits both places first" in comment


def test_a_rebased_head_is_measured_against_what_it_stands_on_now(open_pull: OpenPull) -> None:
    repository = open_pull(GOOD, documented(GOOD))
    github = repository.github
    tip = github.push("main", POOR)
    old, posted, _ = repository.label()
    assert old.behind == 1
    assert posted.title.startswith(NOTHING_CHANGED)
    github.push_to_pull(1, documented(POOR), onto=(tip,))
    new, posted, comment = repository.label()
    assert (new.compared_sha, new.behind, new.warnings) == (tip, 0, [])
    assert posted.title.startswith(NOTHING_CHANGED)
    assert "behind its tip" not in comment


def test_the_pull_request_that_brings_the_compressor_is_told_so_in_one_sentence(open_pull: OpenPull) -> None:
    without = {path: content for path, content in GOOD.items() if not path.startswith("agent/")}
    repository = open_pull(without, GOOD)
    ticket, posted, comment = repository.label()
    assert posted.title == (
        f"First result: there is no compressor in main at {ticket.base_sha[:12]} yet (no file that `watch` names), so "
        "there is nothing to compare with."
    )
    assert "First result · " in comment
    assert "`compression-eval baseline update` makes it the baseline" in comment
    assert "compared with" not in comment


def test_githubs_test_merge_stays_that_of_an_old_tip(open_pull: OpenPull) -> None:
    """It is why no verdict may be built on it: GitHub tries a new head, and not a base that moves on."""
    repository = open_pull(GOOD, described(GOOD))
    github = repository.github
    client = GitHub(adopted.REPO, github.job_token(), api_url=github.url)

    def tried() -> str:
        return str(client._transport.get(f"/repos/{adopted.REPO}/pulls/1", "pull request")["merge_commit_sha"])

    before, old_tip = tried(), github.state.refs["heads/main"]
    github.push("main", documented(GOOD))
    assert tried() == before
    assert old_tip in client.commit(before).parents
    github.push_to_pull(1, described(documented(GOOD)))
    assert github.state.refs["heads/main"] in client.commit(tried()).parents


def test_a_comparison_says_where_two_commits_parted_and_what_the_later_one_changed_since(open_pull: OpenPull) -> None:
    repository = open_pull(GOOD, described(GOOD))
    github = repository.github
    client = GitHub(adopted.REPO, github.job_token(), api_url=github.url)
    fork, head = github.state.refs["heads/main"], github.state.pulls[1].head_sha
    moved = {path: content for path, content in GOOD.items() if path != "agent/summary.py"}
    tip = github.push("main", {**moved, "agent/other.py": GOOD["agent/summary.py"]})
    found = client.compare(head, tip)
    assert (found.ahead, found.behind, found.merge_base) == (1, 1, fork)
    assert found.files == ("agent/other.py", "agent/summary.py"), "a renamed file by both of its names"
    many = {f"docs/{number:04}.md": b"x" for number in range(400)}
    assert len(client.compare(head, github.push("main", {**GOOD, **many})).files) == 300
