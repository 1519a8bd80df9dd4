"""`compression-eval probe`: check, propose and list the questions that are put to a compressed session."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from eval_core.base.errors import UserError
from eval_core.cli.entry import CommandGroup

if TYPE_CHECKING:
    from eval_core.domain.fixture import Fixture
    from eval_core.domain.probe import ProbeBank

__all__ = ["probe"]

_PATH = click.Path(path_type=Path)
_SUFFIX = ".probes.json"
_SHOWN = 3
_fixtures_dir = click.option(
    "--fixtures-dir", type=_PATH, default=Path("fixtures"), show_default=True, help="Folder of the fixtures."
)
_probes_dir = click.option(
    "--probes-dir", type=_PATH, default=Path("probes"), show_default=True, help="Folder of the probe banks."
)


@click.group(cls=CommandGroup)
def probe() -> None:
    """Check, propose or list probes."""


def _bank_names(folder: Path, wanted: tuple[str, ...]) -> list[str]:
    if not folder.is_dir():
        raise UserError(f"{folder}: no such folder; give --probes-dir")
    known = sorted(path.name.removesuffix(_SUFFIX) for path in folder.glob(f"*{_SUFFIX}"))
    names = [Path(name).name.removesuffix(_SUFFIX).removesuffix(".json") for name in wanted] or known
    for name in names:
        if name not in known:
            raise UserError(f"{folder / (name + _SUFFIX)}: no such probe bank; there are: {', '.join(known) or 'none'}")
    return names


def _fixtures(folder: Path) -> dict[str, Fixture]:
    from eval_core.domain.fixture import fixture_files, load_fixture

    if not folder.is_dir():
        raise UserError(f"{folder}: no such folder; give --fixtures-dir")
    return {(session := load_fixture(path)).name: session for path in fixture_files(folder)}


def _left_verbatim(target: str, fixture: Fixture) -> frozenset[int]:
    """Compress once, offline, and tell which messages the target leaves as they are."""
    import asyncio

    from eval_core.evidence.verbatim import verbatim_indexes
    from eval_core.sandbox.targets import find_target

    found = find_target(target, target, Path())
    subject, _ = found.subject(complete=None, model=None, max_tokens=8_000, sandbox="auto", hidden=())
    compression = asyncio.run(subject.compress(fixture, run=0, seed=0))
    if not compression.steps:
        raise UserError(f"--target {target}: {fixture.name}: {compression.outcome}: {compression.detail}")
    return verbatim_indexes(fixture.messages, compression.state)


def _filled(bank: ProbeBank, fixture: Fixture, path: Path) -> ProbeBank:
    from eval_core.base.files import write_atomic
    from eval_core.domain.probe import dump_bank
    from eval_core.suite.lint import fill_evidence

    filled = fill_evidence(bank, fixture)
    if filled != bank:
        write_atomic(path, dump_bank(filled))
        click.echo(f"{path}: evidence filled in")
    return filled


@probe.command("lint")
@click.argument("names", nargs=-1)
@_fixtures_dir
@_probes_dir
@click.option("--fill", is_flag=True, help="Write the evidence of facts that lack it into the banks.")
@click.option("--all", "every", is_flag=True, help="List every finding; default: the first three of each rule.")
@click.option("--target", help="Warn of evidence that this compressor leaves verbatim: builtin:NAME or a target file.")
def lint_command(
    names: tuple[str, ...], fixtures_dir: Path, probes_dir: Path, fill: bool, every: bool, target: str | None
) -> None:
    """Check that every probe measures something; exit 2 if one does not.

    \b
    Examples:
      compression-eval probe lint
      compression-eval probe lint my-session --fill
      compression-eval probe lint --target builtin:anchored
    """
    from eval_core.domain.probe import load_bank
    from eval_core.suite.lint import grouped, lint

    fixtures = _fixtures(fixtures_dir)
    chosen = _bank_names(probes_dir, names)
    errors = warnings = probes = 0
    for name in chosen:
        path = probes_dir / f"{name}{_SUFFIX}"
        bank = load_bank(path)
        probes += len(bank.probes)
        if name not in fixtures:
            click.echo(f"{path}: there is no fixture {fixtures_dir / name}.json; add it or remove the bank")
            errors += 1
            continue
        if fill:
            bank = _filled(bank, fixtures[name], path)
        verbatim = _left_verbatim(target, fixtures[name]) if target else None
        findings = lint(bank, fixtures[name], others=fixtures, verbatim=verbatim)
        for line in grouped(findings, str(path), None if every else _SHOWN):
            click.echo(line)
        errors += sum(finding.level == "error" for finding in findings)
        warnings += sum(finding.level == "warning" for finding in findings)
    if not names:
        for name in sorted(set(fixtures) - set(chosen)):
            click.echo(f"{fixtures_dir / name}.json: warning: has no probe bank; draft one: probe propose {name}")
            warnings += 1
    click.echo(f"{len(chosen)} bank(s), {probes} probe(s): {errors} error(s), {warnings} warning(s)")
    if errors:
        raise SystemExit(2)


@probe.command("propose")
@click.argument("fixture")
@_fixtures_dir
@_probes_dir
@click.option("--output", type=click.Path(path_type=Path, allow_dash=True), metavar="FILE|-",
              help="Where to write the drafts, - for the screen; default: the fixture's bank.")  # fmt: skip
@click.option("--limit", type=click.IntRange(1), default=24, show_default=True, help="Propose at most so many.")
@click.option("--force", is_flag=True, help="Replace a bank that exists.")
def propose_command(
    fixture: str, fixtures_dir: Path, probes_dir: Path, output: Path | None, limit: int, force: bool
) -> None:
    """Draft probes from what a session's tools did; a person decides which of them stay.

    \b
    Examples:
      compression-eval probe propose my-session --output -
      compression-eval probe propose fixtures/my-session.json --limit 12
    """
    from eval_core.base.files import write_atomic
    from eval_core.domain.fixture import load_fixture, named_fixture
    from eval_core.domain.probe import dump_bank
    from eval_core.suite.propose import propose

    session = load_fixture(named_fixture(fixture, fixtures_dir))
    target = output or probes_dir / f"{session.name}{_SUFFIX}"
    screen = str(target) == "-"
    if not screen and target.exists() and not force:
        raise UserError(f"{target}: exists already; give another --output, - to print it, or --force to replace it")
    bank = propose(session, limit)
    if screen:
        click.echo(dump_bank(bank), nl=False)
        return
    write_atomic(target, dump_bank(bank))
    click.echo(f'{target}: {len(bank.probes)} drafts; keep the good ones, remove their "draft", then run probe lint')


@probe.command("manifest")
@_probes_dir
def manifest_command(probes_dir: Path) -> None:
    """Print every probe as fixture/probe: a sorted JSON list, in which one taken away shows as a line of a diff.

    Hermes' own runner takes it as its battery definition.

    \b
    Example:
      compression-eval probe manifest > battery.json
    """
    import json

    from eval_core.domain.probe import load_bank
    from eval_core.suite.lint import manifest

    banks = [load_bank(probes_dir / f"{name}{_SUFFIX}") for name in _bank_names(probes_dir, ())]
    click.echo(json.dumps(manifest(banks), indent=2))
