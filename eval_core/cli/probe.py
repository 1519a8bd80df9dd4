"""`compression-eval probe`: check, propose, list and encrypt probes."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from eval_core.base.errors import UserError
from eval_core.base.numbers import counted
from eval_core.cli.entry import CONFIGURED, CommandGroup, as_json, configured, print_json

if TYPE_CHECKING:
    from eval_core.base.sealing import SealingKey
    from eval_core.domain.fixture import Fixture
    from eval_core.domain.probe import ProbeBank

_PATH = click.Path(path_type=Path)
_SUFFIX = ".probes.json"
_SHOWN = 3
_fixtures_dir = click.option(
    "--fixtures-dir", type=_PATH, default=lambda: configured("fixtures"), show_default=CONFIGURED,
    help="Folder of the fixtures.",
)  # fmt: skip
_probes_dir = click.option(
    "--probes-dir", type=_PATH, default=lambda: configured("probes"), show_default=CONFIGURED,
    help="Folder of the probe banks.",
)  # fmt: skip


@click.group(cls=CommandGroup)
def probe() -> None:
    """Check, propose, list or encrypt probes."""


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

    from eval_core.facts.verbatim import verbatim_indexes
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
        click.echo(f"{path}: evidence filled in", err=True)
    return filled


@probe.command("lint")
@click.argument("names", nargs=-1)
@_fixtures_dir
@_probes_dir
@click.option("--fill", is_flag=True, help="Write the evidence of facts that lack it into the banks.")
@click.option("--all", "every", is_flag=True, help="List every finding; default: the first three of each rule.")
@click.option("--target", help="Warn about evidence that this target keeps verbatim: builtin:NAME or a target file.")
@as_json
def lint_command(
    names: tuple[str, ...],
    fixtures_dir: Path,
    probes_dir: Path,
    fill: bool,
    every: bool,
    target: str | None,
    as_json: bool,
) -> None:
    """Check that every probe measures something and every ledger line is said; exit 2 if not.

    \b
    Examples:
      compression-eval probe lint
      compression-eval probe lint my-session --fill
      compression-eval probe lint --target builtin:anchored
    """
    from eval_core.domain.case import ledger_of, ledger_path
    from eval_core.domain.probe import load_bank
    from eval_core.suite.ledger_lint import lint_ledger
    from eval_core.suite.lint import LintFinding, grouped, lint

    fixtures = _fixtures(fixtures_dir)
    chosen = _bank_names(probes_dir, names)
    found: dict[str, list[LintFinding]] = {}
    probes = 0
    for name in chosen:
        path = probes_dir / f"{name}{_SUFFIX}"
        bank = load_bank(path)
        probes += len(bank.probes)
        if name not in fixtures:
            why = f"there is no fixture {fixtures_dir / name}.json; add it or remove the bank"
            found[str(path)] = [LintFinding("error", None, "no-fixture", why)]
            continue
        if fill:
            bank = _filled(bank, fixtures[name], path)
        verbatim = _left_verbatim(target, fixtures[name]) if target else None
        found[str(path)] = list(lint(bank, fixtures[name], others=fixtures, verbatim=verbatim))
        if (ledger := ledger_of(probes_dir, fixtures[name])) is not None:
            found[str(ledger_path(probes_dir, name))] = list(lint_ledger(ledger, fixtures[name]))
    for name in sorted(set(fixtures) - set(chosen)) if not names else ():
        why = f"has no probe bank; draft one: probe propose {name}"
        found[f"{fixtures_dir / name}.json"] = [LintFinding("warning", None, "no-bank", why)]
    levels = [finding.level for findings in found.values() for finding in findings]
    if as_json:
        print_json([{"file": file, **asdict(finding)} for file, findings in found.items() for finding in findings])
    else:
        for file, findings in found.items():
            for line in grouped(findings, file, None if every else _SHOWN):
                click.echo(line)
        judged = f"{counted(levels.count('error'), 'error')}, {counted(levels.count('warning'), 'warning')}"
        click.echo(f"{counted(len(chosen), 'bank')}, {counted(probes, 'probe')}: {judged}")
    if "error" in levels:
        raise SystemExit(2)


@probe.command("propose")
@click.argument("fixture")
@_fixtures_dir
@_probes_dir
@click.option("--output", type=click.Path(path_type=Path, allow_dash=True), metavar="FILE|-",
              help="Where to write the drafts, - for the screen; default: the fixture's bank.")  # fmt: skip
@click.option("--limit", type=click.IntRange(1), default=24, show_default=True, help="Maximum number of drafts.")
@click.option("--force", is_flag=True, help="Replace a bank that exists.")
@click.option("--ledger", is_flag=True, help="Draft the ledger: rules, items of work, approvals and requests.")
def propose_command(
    fixture: str, fixtures_dir: Path, probes_dir: Path, output: Path | None, limit: int, force: bool, ledger: bool
) -> None:
    """Draft probes, or a ledger, from what a session's tools did; a person decides what stays.

    \b
    Examples:
      compression-eval probe propose my-session --output -
      compression-eval probe propose fixtures/my-session.json --limit 12
      compression-eval probe propose my-session --ledger
    """
    from eval_core.base.files import write_atomic
    from eval_core.domain.case import ledger_path
    from eval_core.domain.fixture import load_fixture, named_fixture
    from eval_core.domain.probe import dump_bank
    from eval_core.domain.session_ledger import dump_ledger
    from eval_core.suite.propose import propose
    from eval_core.suite.propose_ledger import propose_ledger

    session = load_fixture(named_fixture(fixture, fixtures_dir))
    target = output or (ledger_path(probes_dir, session.name) if ledger else probes_dir / f"{session.name}{_SUFFIX}")
    screen = str(target) == "-"
    if not screen and target.exists() and not force:
        raise UserError(f"{target}: exists already; give another --output, - to print it, or --force to replace it")
    if ledger:
        drafted = propose_ledger(session)
        text, number = dump_ledger(drafted), len(drafted.lines)
    else:
        bank = propose(session, limit)
        text, number = dump_bank(bank), len(bank.probes)
    if screen:
        click.echo(text, nl=False)
        return
    write_atomic(target, text)
    drafts = counted(number, "draft")
    click.echo(f"{target}: {drafts}; `compression-eval probe review {session.name}` keeps, edits or drops each one")


@probe.command("review")
@click.argument("fixture")
@_fixtures_dir
@_probes_dir
def review_command(fixture: str, fixtures_dir: Path, probes_dir: Path) -> None:
    """Go through the drafts of a session, probes and ledger lines: keep, edit or drop each one.

    Every answer is stored at once, so that you can stop with q and go on later.

    \b
    Example:
      compression-eval probe review my-session
    """
    from eval_core.domain.case import ledger_of, ledger_path
    from eval_core.domain.fixture import load_fixture, named_fixture
    from eval_core.domain.probe import dump_bank, load_bank
    from eval_core.domain.session_ledger import dump_ledger
    from eval_core.suite.review import review

    session = load_fixture(named_fixture(fixture, fixtures_dir))
    path = probes_dir / f"{session.name}{_SUFFIX}"
    ledger = ledger_of(probes_dir, session)
    left = 0
    if path.exists():
        left += review(load_bank(path), "probes", path, session, dump_bank)
    if ledger is not None and not left:
        left += review(ledger, "lines", ledger_path(probes_dir, session.name), session, dump_ledger)
    if not path.exists() and ledger is None:
        raise UserError(f"{path}: no such bank; `compression-eval probe propose {session.name}` drafts one")
    done = f"no draft is left; `compression-eval probe lint {session.name}` checks them"
    click.echo(f"{session.name}: {counted(left, 'draft') + ' left' if left else done}")


_DEFAULT_KEY = "COMPRESSION_EVAL_PROBES_KEY"
_key_env = click.option(
    "--key-env", default=_DEFAULT_KEY, show_default=True, help="Environment variable that holds the key."
)


def _sealing_key(name: str) -> SealingKey:
    import os

    from eval_core.base.sealing import SealingKey

    key = SealingKey.of_environment(name, os.environ)
    if key is None:
        raise UserError(f"{name}: not set; it holds the key, and `compression-eval probe seal --new-key` makes one")
    return key


@probe.command("seal")
@click.argument("banks", nargs=-1, type=_PATH)
@_fixtures_dir
@_probes_dir
@click.option("--output", type=_PATH, default=Path("probes/private.sealed.json"), show_default=True,
              help="The file to write; commit it.")  # fmt: skip
@_key_env
@click.option("--new-key", is_flag=True, help="Print a new key and do nothing else.")
def seal_command(
    banks: tuple[Path, ...], fixtures_dir: Path, probes_dir: Path, output: Path, key_env: str, new_key: bool
) -> None:
    """Encrypt probe banks into one file that can be committed: only the evaluation can read them.

    The banks have the usual format, one for each fixture, and are kept outside the repository. Fixture names, probe ids
    and probe types are not encrypted, so choose ids that give nothing away.

    \b
    Examples:
      compression-eval probe seal --new-key
      compression-eval probe seal ../private/my-session.probes.json
      compression-eval probe seal ../private/*.probes.json --output probes/private.sealed.json
    """
    from eval_core.base.files import pretty, write_atomic
    from eval_core.base.sealing import SealingKey
    from eval_core.domain.private_probes import seal_banks
    from eval_core.domain.probe import load_bank
    from eval_core.suite.lint import grouped, lint

    if new_key:
        click.echo(SealingKey.new()[1])
        return
    if not banks:
        raise UserError("no bank given; name the files to seal, e.g. ../private/my-session.probes.json")
    key, fixtures = _sealing_key(key_env), _fixtures(fixtures_dir)
    loaded: dict[str, ProbeBank] = {}
    errors = 0
    for path in banks:
        bank = load_bank(path)
        if bank.fixture not in fixtures:
            raise UserError(f"{path}: there is no fixture {fixtures_dir / bank.fixture}.json; give --fixtures-dir")
        if bank.fixture in loaded:
            raise UserError(f"{path}: a second bank for {bank.fixture}; put its probes into one file")
        public = probes_dir / f"{bank.fixture}{_SUFFIX}"
        taken = {item.id for item in load_bank(public).probes} if public.exists() else set()
        if twice := sorted(taken & {item.id for item in bank.probes}):
            raise UserError(f"{path}: {twice[0]!r} is the id of a public probe too; rename the private one")
        # A private bank adds to a public one, so it need not have a probe of every type.
        findings = [
            item
            for item in lint(bank, fixtures[bank.fixture], others=fixtures, verbatim=None)
            if item.level == "error" and item.rule != "type-missing"
        ]
        for line in grouped(findings, str(path), None):
            click.echo(line)
        errors += len(findings)
        loaded[bank.fixture] = bank
    if errors:
        raise UserError(f"{counted(errors, 'error')} in the banks; nothing was sealed")
    write_atomic(output, pretty(seal_banks(list(loaded.values()), key).model_dump(mode="json")))
    count = sum(len(bank.probes) for bank in loaded.values())
    click.echo(
        f"{output}: {counted(count, 'probe')} of {counted(len(loaded), 'fixture')}, sealed with the key in {key_env}"
    )


@probe.command("unseal")
@click.argument("sealed", type=_PATH)
@click.option("--output", type=_PATH, required=True, help="Folder for the banks; keep it out of the repository.")
@_key_env
@click.option("--force", is_flag=True, help="Replace banks that exist.")
def unseal_command(sealed: Path, output: Path, key_env: str, force: bool) -> None:
    """Decrypt sealed banks into a folder, to change them and seal them again.

    \b
    Example:
      compression-eval probe unseal probes/private.sealed.json --output ../private
    """
    from eval_core.base.files import write_atomic
    from eval_core.domain.private_probes import open_banks, read_sealed
    from eval_core.domain.probe import dump_bank

    opened = open_banks(read_sealed(sealed), _sealing_key(key_env), str(sealed))
    paths = {name: output / f"{name}{_SUFFIX}" for name in opened}
    for path in paths.values():
        if path.exists() and not force:
            raise UserError(f"{path}: exists already; give another --output, or --force to replace it")
    output.mkdir(parents=True, exist_ok=True)
    for name, bank in opened.items():
        write_atomic(paths[name], dump_bank(bank))
        click.echo(f"{paths[name]}: {counted(len(bank.probes), 'probe')}")


@probe.command("manifest")
@_probes_dir
def manifest_command(probes_dir: Path) -> None:
    """Print every probe as fixture/probe in a sorted JSON list, so that a removed probe shows up in a diff.

    Hermes' own runner accepts it as its battery definition.

    \b
    Example:
      compression-eval probe manifest > battery.json
    """
    import json

    from eval_core.domain.probe import load_bank
    from eval_core.suite.lint import manifest

    banks = [load_bank(probes_dir / f"{name}{_SUFFIX}") for name in _bank_names(probes_dir, ())]
    click.echo(json.dumps(manifest(banks), indent=2))
