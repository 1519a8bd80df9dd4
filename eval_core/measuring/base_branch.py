"""The base branch in a comparison: is the stored baseline still of it, and what of it is measured in the same run?"""

from __future__ import annotations

import datetime
import io
import os
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from eval_core.base.errors import UserError
from eval_core.base.files import write_atomic
from eval_core.base.globs import matches, watched_digest
from eval_core.base.numbers import counted
from eval_core.base.tar_files import open_folder, write_member
from eval_core.comparing.compare import compare_measurements
from eval_core.comparing.verdict import exit_code
from eval_core.domain.fingerprint import Fingerprint
from eval_core.domain.measurement import Measurement
from eval_core.storage.baselines import Reference, dump_baseline, load_side

# The base of a checkout: where its branch left the default branch.

_DEFAULT_BRANCHES = ("origin/HEAD", "origin/main", "origin/master", "main", "master")


@dataclass(frozen=True)
class BranchPoint:
    """The last commit that a branch shares with the branch it is to be merged into."""

    sha: str
    branch: str
    tip: str | None = None
    """Digest of the watched files that the branch has now, where it has changed some since."""
    both: tuple[str, ...] = ()
    """Watched files that both sides have changed since."""


def _git(tree: Path, *words: str) -> bytes | None:
    """Return what git prints; None where it fails, or there is no git."""
    try:
        done = subprocess.run(["git", "-C", str(tree), *words], capture_output=True, check=False)
    except OSError:
        return None
    return done.stdout if done.returncode == 0 else None


def branch_point(tree: Path, watch: Sequence[str]) -> BranchPoint | None:
    """Return where a checkout left the default branch; None if it changed no watched file since."""
    for branch in _DEFAULT_BRANCHES:
        found = _git(tree, "merge-base", "HEAD", branch)
        if found is None:
            continue
        sha = found.decode().strip()
        mine = _changed(tree, watch, sha)
        theirs = _changed(tree, watch, sha, branch) if mine else None
        if not theirs:
            return BranchPoint(sha, branch) if mine else None
        with exported(tree, branch) as there:
            return BranchPoint(sha, branch, watched_digest(there, watch), tuple(sorted(mine & theirs)))
    return None


def _changed(tree: Path, watch: Sequence[str], *commits: str) -> set[str]:
    """Return the watched files below the tree that differ between two commits, or from one in the checkout."""
    names = _git(tree, "diff", "--name-only", "--no-renames", "--relative", "-z", *commits, "--", ".") or b""
    if len(commits) == 1:
        names += _git(tree, "ls-files", "--others", "--exclude-standard", "-z") or b""
    return {name for name in os.fsdecode(names).split("\0") if name and matches(name, watch)}


@contextmanager
def exported(tree: Path, sha: str) -> Iterator[Path]:
    """Write the files of a commit into a folder of their own; the checkout and its index are left alone."""
    archive = _git(tree, "archive", "--format=tar", sha)
    if archive is None:
        raise UserError(f"{tree}: git cannot export {sha[:12]}; give the tree of the base with --base-tree")
    with tempfile.TemporaryDirectory(prefix="compression-eval-base-") as folder:
        open_folder(Path(folder))  # a temporary folder is closed to others, whatever the umask is
        with tarfile.open(fileobj=io.BytesIO(archive)) as files:
            links = []
            for member in files:
                if member.issym():
                    links.append(member)
                else:
                    write_member(files, member, Path(folder, member.name), member.mtime)
            for link in links:  # last, so that no file is written through one
                Path(folder, link.name).symlink_to(link.linkname)
        yield Path(folder)


# Is the stored baseline still of the base, and what of the base is measured beside the candidate?

BaseInRun = Literal["nothing", "control", "whole"]
"""What of the base is measured in the candidate's run."""


@dataclass(frozen=True)
class BasePlan:
    """What of the base is measured beside a candidate, and what is known of it already."""

    in_run: BaseInRun = "nothing"
    digest: str | None = None
    """Of the watched files of the base."""
    stale: bool = False
    """Whether the base branch has left the stored baseline behind."""
    store: Path | None = None
    """Where the measurement of the whole base is kept for later runs."""
    known: Measurement | None = None
    """The whole base, as an earlier run measured it."""

    @property
    def own(self) -> bool:
        """Whether the candidate is compared with the base of this run and not with the stored baseline."""
        return self.in_run == "whole" or self.known is not None


def plan_base(
    reference: Reference | None,
    *,
    control: Literal["auto", "always", "never"],
    rerun: bool,
    required: bool,
    base_digest: str | None,
    base_known: bool,
    tip_digest: str | None,
    offline: bool,
    store: Path | None,
    runs: int,
) -> BasePlan:
    """Decide what of the base is measured beside the candidate.

    A baseline of other files than the base would blame the candidate for what others did, and none at all is no reason
    not to compare, unless that very one is `required`. One of the same files may still be from another day; runs
    without models know no days. A baseline of the files that the base branch has now is not stale: the candidate's
    base is older.
    """
    a_control: BaseInRun = "nothing" if offline else "control"
    if rerun:
        return BasePlan("whole", base_digest, store=store)
    if not base_known or control == "never":
        return BasePlan()
    stored = reference.measurement if reference is not None and reference.comparable else None
    others = stored is not None and stored.provenance.watched not in (None, base_digest)
    if control != "always" and stored is not None and not others:
        return BasePlan(a_control, base_digest)
    if required and stored is None:
        return BasePlan("nothing", base_digest)
    known = _measured_base(store, runs) if store is not None else None
    at_tip = stored is not None and stored.provenance.watched == tip_digest
    return BasePlan("whole" if known is None else a_control, base_digest, others and not at_tip, store, known)


def base_store(results: Path, digest: str, fingerprint: Fingerprint) -> Path:
    """Return where the measurement of a base tree is kept, so that it is paid for once."""
    return results / "bases" / f"{digest[:16]}-{fingerprint.digest[:16]}.json"


def _measured_base(path: Path, runs: int) -> Measurement | None:
    """Return a base tree that was measured before with at least so many runs, if it can be read."""
    try:
        found = load_side(path) if path.exists() else None
    except UserError:
        return None  # torn or of another version: measured again
    return found if found is not None and found.planned_runs >= runs and not found.stopped else None


def keep_base(path: Path, measurement: Measurement) -> None:
    """Keep the measurement of a base tree for the next pull requests; one that was cut short is not kept."""
    if not measurement.stopped:
        write_atomic(path, dump_baseline(measurement, {}))


def _age(base: Measurement, candidate: Measurement) -> str:
    try:
        then, now = (datetime.datetime.fromisoformat(item.provenance.date) for item in (base, candidate))
    except ValueError:
        return "at an unknown time"
    days = (now - then).days
    return "today" if days <= 0 else f"{counted(days, 'day')} ago"


def _commits_behind(sha: str | None, root: Path, base: str | None = None) -> str:
    """Return how many commits the base branch has had since, as far as the history is at hand."""
    if sha is None:
        return ""
    found = (_git(root, "rev-list", "--count", f"{sha}..{base or 'HEAD'}") or b"").strip()
    count = int(found) if found.isdigit() else 0
    return f", {counted(count, 'commit')} behind the base branch" if count else ""


def name_of(base: Measurement, unknown: str = "the base branch") -> str:
    """Return the branch and the commit of a base that was measured in the same run, as far as they are known."""
    sha = base.provenance.source_sha
    return f"{base.extra.branch or unknown}{f' at {sha[:12]}' if sha else ''}"


def other_environment(base: Measurement, candidate: Measurement) -> str:
    """Name what the two sides ran on where it is not the same; empty where it is, or was not recorded."""
    then, now = base.provenance.environment, candidate.provenance.environment
    changed = [
        f"{name} ({then.get(name, 'none')} -> {now.get(name, 'none')})"
        for name in {**then, **now}
        if then.get(name) != now.get(name)
    ]
    if not then or not now or not changed:
        return ""
    more = f" and {len(changed) - _MOST_NAMED} more" if len(changed) > _MOST_NAMED else ""
    return f" The two sides ran in different environments: {', '.join(changed[:_MOST_NAMED])}{more}."


_MOST_NAMED = 5


def base_note(base: Measurement, candidate: Measurement, *, path: Path, in_run: bool, root: Path) -> str:
    """Say which base it is, and how old."""
    sha = base.provenance.source_sha
    at = f" at {sha[:12]}" if sha else ""
    if in_run:
        return f"Base: {name_of(base)}, measured {_age(base, candidate)} and not taken from a stored baseline."
    shown = os.path.relpath(path, root) if path.is_relative_to(root) else str(path)
    measured = f"measured {_age(base, candidate)}{at}{_commits_behind(sha, root)}"
    return f"Base: the stored baseline {shown}, {measured}.{other_environment(base, candidate)}"


def stale_note(base: Measurement, candidate: Measurement, *, left_behind: Reference, root: Path) -> tuple[str, bool]:
    """Say that the base branch has left a stored baseline behind, and what it lost since; tell whether it lost."""
    stored = left_behind.measurement
    verdict, _ = compare_measurements(stored, base)
    lost = exit_code(verdict, "regressed") == 1
    behind = _commits_behind(stored.provenance.source_sha, root, base.provenance.source_sha)
    others = "This change did not cause that. Look into it on the base branch, then renew the baseline"
    note = (
        f"The stored baseline {os.path.relpath(left_behind.path, root)} is stale: it was measured "
        f"{_age(stored, candidate)} from other files than the base branch has now{behind}. "
        f"{name_of(base, 'The base branch')} against it: {verdict.headline} "
        f"{others if lost else 'Renew it'} with `compression-eval baseline update`."
    )
    return note, lost
