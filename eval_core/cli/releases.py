"""`compression-eval releases`: published versions of an agent, installed side by side and compared."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click
import yaml

from eval_core.base.errors import UserError
from eval_core.base.files import write_atomic
from eval_core.base.numbers import listed
from eval_core.cli.options import config_option, results_option

if TYPE_CHECKING:
    from eval_core.domain.package import Package
    from eval_core.sandbox.installs import Installed
    from eval_core.strands.findings import Verdict

_SHOWN = 5
_UNDRIVEN = ("setup_error", "target_error", "not_exercised")
"""Outcomes of an agent that the target file does not know how to drive."""


@click.command()
@click.argument("target", required=False)
@click.argument("versions", metavar="OLD NEW [NEW ...]", nargs=-1)
@click.option("--bisect", is_flag=True, help="Find the first release between OLD and NEW that is worse than OLD.")
@click.option("--fixtures", help="Comma-separated fixture names; default: all.")
@click.option("--runs", type=click.IntRange(1, 50), help="Graded runs of each fixture.")
@click.option("--model", help="Model for all three roles; without one everything runs offline.")
@click.option("--judge", help="Model that grades, or offline.")
@click.option("--budget-usd", type=float, help="Spend no more than this for each version.")
@config_option
@click.option("--label", help="Folder below the results; the target and its version are added.")
@results_option
@click.option("--sandbox", type=click.Choice(["auto", "bwrap", "docker", "none"]), default="auto")
@click.option("--set", "settings", metavar="KEY=VALUE", multiple=True, help="Set a key of the configuration.")
@click.option("--install-only", is_flag=True, help="Install, say what differs, and measure nothing.")
@click.option("--prune", "pruning", is_flag=True, help="Remove every installed release, and do nothing else.")
def releases(
    target: str | None, versions: tuple[str, ...], *, bisect: bool, install_only: bool, pruning: bool, **options: object
) -> None:
    """Compare published releases of an agent: each NEW with OLD.

    TARGET is a target file with `package:`, or the name of a shipped one: aider, claude_code, codex, gemini_cli,
    headroom, hermes, inspect_ai, langchain, opencode, openhands, pi, strands. Releases are installed once, below
    ~/.cache/compression-eval, and run in the sandbox, without a network. Installing runs the package's own
    installation with your permissions, as pip and npm do.

    \b
    Examples:
      compression-eval releases langchain 1.3.14 1.3.15
      compression-eval releases strands 1.30.0 1.34.0 --bisect
      compression-eval releases my-agent.yml 0.9.1 0.10.0 --fixtures deploy --model anthropic/claude-sonnet-4-5
      compression-eval releases --prune
    """
    from eval_core.domain.package import read_package
    from eval_core.sandbox.installs import cache_folder, prune

    if pruning:
        count, size = prune()
        click.echo(f"{count} releases removed from {cache_folder()}, {size / 1e9:.1f} GB")
        return
    if target is None or len(versions) < 2:
        raise UserError("releases: give a target and two versions, for example `releases langchain 1.3.14 1.3.15`")
    if len(set(versions)) < len(versions):
        raise UserError(f"releases: {listed(versions)}: a version is given twice")
    file = _target_file(target)
    package = read_package(file)
    if bisect:
        if len(versions) > 2:
            raise UserError("releases --bisect takes two versions: one that is right, and a later one that is worse")
        _Bisection(file, package, options).run(*versions)
        return
    installed = _install_all(package, versions)
    _say_what_differs(installed)
    if not install_only:
        _measure(file, installed, options)


def _target_file(named: str) -> Path:
    """Return the target's file: a path, or the name of a shipped one."""
    from eval_core.sandbox.targets import SHIPPED_TARGETS

    path = Path(named)
    if path.is_file():
        return path.resolve()
    shipped = SHIPPED_TARGETS / f"{named.replace('-', '_')}.yml"
    if shipped.is_file():
        return shipped
    known = sorted(file.stem for file in SHIPPED_TARGETS.glob("*.yml"))
    raise UserError(f"{named}: neither a target file nor a shipped target; shipped are {', '.join(known)}")


def _install_all(package: Package, versions: Sequence[str]) -> list[Installed]:
    from eval_core.sandbox.installs import install

    found: list[Installed] = []
    for version in versions:
        click.echo(f"{package.name} {version}: installing ...", err=True)
        began = time.monotonic()
        found.append(install(package, version, like=found[0] if found else None))
        click.echo(f"{package.name} {version}: ready after {time.monotonic() - began:.0f} s", err=True)
    return found


def _say_what_differs(installed: Sequence[Installed]) -> None:
    """Say of each pair whether the compaction code differs, and which other packages do."""
    first = installed[0]
    for other in installed[1:]:
        pair = f"{first.version} and {other.version}"
        if first.compaction is not None:
            same = first.compaction == other.compaction
            click.echo(f"The compaction code of {pair} is {'the same' if same else 'not the same'}.")
        before, now = first.versions, other.versions
        drift = [
            f"{name} {before.get(name, 'none')} → {now.get(name, 'none')}"
            for name in sorted({*before, *now} - {first.package.name})
            if before.get(name) != now.get(name)
        ]
        if drift:
            click.echo(f"Other packages that differ between {pair}: {listed(drift, _SHOWN)}.")


def _described(file: Path, installed: Installed) -> Path:
    """Write the target file of a release beside what was installed, with the adapter, and return it."""
    value = yaml.safe_load(file.read_text(encoding="utf-8"))
    spec = dict(value["target"])
    tree = installed.folder / "tree"
    tree.mkdir(exist_ok=True)
    if adapter := spec.get("adapter"):
        source = file.parent / adapter
        if not source.is_file():
            raise UserError(f"{file}: adapter: {source} does not exist")
        write_atomic(tree / source.name, source.read_text(encoding="utf-8"))
        spec["adapter"] = source.name
    if installed.package.index == "npm":
        spec["runtime"] = str(installed.environment)
    else:
        spec["python"] = str(installed.environment / "bin" / "python")
    path = tree / f"{file.stem}-{installed.version}.yml"
    write_atomic(path, yaml.safe_dump({"target": spec}, sort_keys=False, allow_unicode=True))
    return path


def _measure(file: Path, installed: Sequence[Installed], options: dict[str, object]) -> None:
    """Run all releases on the same plan and compare each with the first."""
    from eval_core.cli.run import run

    options = {**options, "label": options["label"] or time.strftime("%Y-%m-%d_%H-%M-%S")}
    words = [word for item in installed for word in ("--target", str(_described(file, item)))]
    for name, value in options.items():
        given = value if isinstance(value, tuple) else () if value is None else (value,)
        for one in given:
            flag = "--set" if name == "settings" else f"--{name.replace('_', '-')}"
            words += [flag] if one is True else [flag, str(one)]
    try:
        run.main(args=words, prog_name="compression-eval run", standalone_mode=False)
    finally:
        _expect_driven(file, installed[0], options)


def _expect_driven(file: Path, first: Installed, options: dict[str, object]) -> None:
    """End with a message where the first release never compressed: nothing that is compared with it says anything."""
    from eval_core.storage.results import read_measurement

    folder = Path(str(options.get("results") or "results")) / f"{options['label']}-{file.stem}-{first.version}"
    if not folder.is_dir():
        return
    runs = [run for runs in read_measurement(folder).fixtures.values() for run in runs]
    if runs and all(run.outcome in _UNDRIVEN for run in runs):
        named = f"{first.package.name} {first.version} never compressed through {file.name}"
        raise UserError(f"{named}, so nothing can be compared with it: {runs[0].detail or runs[0].outcome}")


@dataclass(frozen=True)
class _Bisection:
    """The search for the first release that is worse than the first one."""

    file: Path
    package: Package
    options: dict[str, object]

    def run(self, good: str, bad: str) -> None:
        from eval_core.sandbox.installs import published

        known = published(self.package)
        for version in (good, bad):
            if version not in known:
                raise UserError(f"{self.package.name} {version}: not among the {len(known)} releases of its index")
        between = known[known.index(good) : known.index(bad) + 1]
        if len(between) < 2:
            raise UserError(f"--bisect: {bad} is not later than {good}")
        low, high = 0, len(between) - 1
        if not self._worse(good, between[high]):
            click.echo(f"{bad} is not worse than {good}: there is nothing to look for.")
            sys.exit(3)
        while high - low > 1:
            middle = (low + high) // 2
            click.echo(f"{high - low - 1} releases are left between {between[low]} and {between[high]}.", err=True)
            low, high = (low, middle) if self._worse(good, between[middle]) else (middle, high)
        click.echo(f"{between[high]} is the first release that is worse than {good}; {between[low]} is not.")

    def _worse(self, good: str, version: str) -> bool:
        installed = _install_all(self.package, [good, version])
        label = f"{self.options.get('label') or 'bisect'}-{version}"
        verdict = _verdict_of(self.file, installed, {**self.options, "label": label})
        click.echo(f"{version}: {verdict.headline}", err=True)
        return verdict.harmful


def _verdict_of(file: Path, installed: Sequence[Installed], options: dict[str, object]) -> Verdict:
    """Measure a pair and return what it came to."""
    from eval_core.comparing.compare import compare_measurements
    from eval_core.storage.results import read_measurement

    try:
        _measure(file, installed, {**options, "quiet": True, "resume": True})
    except SystemExit as exc:
        if exc.code:
            raise
    folder = Path(str(options.get("results") or "results"))
    names = [f"{options['label']}-{_described(file, item).stem}" for item in installed]
    return compare_measurements(*(read_measurement(folder / name) for name in names))[0]
