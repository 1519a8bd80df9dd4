"""`compression-eval fixture`: import, scrub, audit, list and show recorded sessions."""

from __future__ import annotations

import re
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from eval_core.base.errors import UserError
from eval_core.base.numbers import counted
from eval_core.cli.entry import CONFIGURED, CommandGroup, as_json, configured, print_json
from eval_core.cli.progress import show_waiting

if TYPE_CHECKING:
    from collections.abc import Callable

    from eval_core.domain.fixture import Fixture
    from eval_core.suite.audit import AuditFinding
    from eval_core.suite.scrub import Identities

_FORMATS = ("auto", "openai", "hermes", "claude-code", "codex")
_PATH = click.Path(path_type=Path)
_OUTPUT, _LONG = 4_000, 100_000
"""Characters of a tool output that are kept, and tokens of a session above which all are."""


def _scrub_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that import and scrub share."""
    options = (
        click.option("--identities", type=_PATH, help="File of names to remove, one person per line; !word keeps a "
                                                      "word."),
        click.option("--yes", is_flag=True, help="Remove every likely name without asking; keep doubtful ones."),
        click.option("--first-user", metavar="TEXT", help="Replace the first user turn with this text."),
        click.option("--keep-system", is_flag=True, help="Keep the recorded system prompt."),
        click.option("--max-output", type=click.IntRange(0),
                     help="Shorten tool outputs longer than this many characters; 0: never.  [default: 4000; 0 for "
                          "sessions of more than 100,000 tokens]"),
        click.option("--allow", type=_PATH, help="Allow list of the audit; default: allow.json beside the fixture."),
    )  # fmt: skip
    for option in reversed(options):
        command = option(command)
    return command


@click.group(cls=CommandGroup)
def fixture() -> None:
    """Import, scrub, audit, list or show recorded sessions."""


@fixture.command("import")
@click.argument("source", type=_PATH)
@click.option("--format", "wanted", type=click.Choice(_FORMATS), default="auto", show_default=True)
@click.option("--name", help="Name of the fixture; default: session- and the start of its hash.")
@click.option(
    "--output", type=_PATH, default=lambda: configured("fixtures"), show_default=CONFIGURED, help="Folder to write to."
)
@click.option("--force", is_flag=True, help="Replace a fixture of the same name.")
@click.option("--truncate-to", type=click.IntRange(4), metavar="N", help="Keep the first N messages.")
@click.option("--session", "session_id", metavar="ID", help="Which session of a state.db; default: the latest.")
@click.option("--redact-findings", is_flag=True, help="Replace what the audit still finds, and list it.")
@_scrub_options
def import_command(
    source: Path,
    wanted: str,
    name: str | None,
    output: Path,
    force: bool,
    truncate_to: int | None,
    session_id: str | None,
    redact_findings: bool,
    **scrub: Any,
) -> None:
    """Turn a session log into a fixture: read, scrubbed, audited, and only then written.

    \b
    Examples:
      compression-eval fixture import session.jsonl --name fix-login-timeout
      compression-eval fixture import ~/.claude/projects      # lists the newest sessions there
      compression-eval fixture import ~/.codex/sessions
      compression-eval fixture import state.db --format hermes --session 20260101_120000 --yes
    """
    from eval_core.domain.fixture import NAME_PATTERN, find_fixture
    from eval_core.suite.importers import import_session

    if name is not None and not re.fullmatch(NAME_PATTERN, name):
        raise UserError(f"--name {name!r}: use up to 80 lower-case letters, digits, dots, dashes and underscores")
    source = _picked(source) if source.is_dir() else source
    recorded = import_session(source, wanted, name=name, truncate_to=truncate_to, session_id=session_id)
    earlier = find_fixture(output, recorded.name)
    if earlier is not None and (earlier.is_symlink() or not force):
        raise UserError(f"{earlier}: exists already; choose another --name or give --force")
    scrubbed, _, identities = _scrub(recorded, None, **scrub)
    allow = scrub["allow"] or output / "allow.json"
    if redact_findings:
        scrubbed = _redact(scrubbed, identities, allow)
    _gate(scrubbed, identities, allow, "nothing was written")
    target = _store(output, scrubbed)
    click.echo(f"{target}: {counted(len(scrubbed.messages), 'message')}. {scrubbed.notes}")
    show, propose = (f"`compression-eval {words} {recorded.name}`" for words in ("fixture show", "probe propose"))
    click.echo(
        f"Read the file before you share it ({show} lists its messages), then draft probes with {propose}.", err=True
    )


@fixture.command("generate")
@click.argument("name")
@click.option("--seed", type=int, default=1, show_default=True, help="Another seed makes another session.")
@click.option("--tokens", type=int, default=90_000, show_default=True, help="Length of the session.")
@click.option("--window", type=int, default=16_000, show_default=True, help="The model's window: it is compressed each "
              "time 70 % of it are new.")  # fmt: skip
@click.option("--restated", type=float, default=0.1, show_default=True, help="How often old things are said again, 0 "
              "to 1.")  # fmt: skip
@click.option("--density", type=float, default=2.2, show_default=True, help="Facts in a thousand tokens.")
@click.option("--largest", type=int, help="Tokens of the largest tool output.  [default: a quarter of the window]")
@click.option("--tree", type=_PATH, help="Folder whose files the session reads.  [default: modules of this program]")
@click.option("--digest", help="The digest that the session must have; another one is an error.")
@click.option("--force", is_flag=True, help="Replace a fixture of the same name.")
def generate_command(name: str, tree: Path | None, digest: str | None, force: bool, **plan: Any) -> None:
    """Write a generated session with its probes and its ledger; the same options always give the same.

    \b
    Examples:
      compression-eval fixture generate long-session --tokens 90000 --window 16000
      compression-eval fixture generate own-tree --tree ../my-agent --seed 2
    """
    from eval_core.base.files import write_atomic
    from eval_core.domain.case import bank_path, ledger_path
    from eval_core.domain.fixture import NAME_PATTERN, find_fixture
    from eval_core.domain.probe import dump_bank
    from eval_core.domain.session_ledger import dump_ledger
    from eval_core.suite.generate import SESSION_TREE, SessionPlan, generate, read_tree
    from eval_core.suite.sizes import check_digest

    if not re.fullmatch(NAME_PATTERN, name):
        raise UserError(f"{name!r}: use up to 80 lower-case letters, digits, dots, dashes and underscores")
    folder, probes = configured("fixtures"), configured("probes")
    earlier = find_fixture(folder, name)
    if earlier is not None and not force:
        raise UserError(f"{earlier}: exists already; choose another name or give --force")
    made = generate(SessionPlan(name, **plan), read_tree(tree or SESSION_TREE))
    check_digest(made, digest)
    target = _store(folder, made.fixture)
    write_atomic(bank_path(probes, name), dump_bank(made.bank))
    if made.ledger is not None:
        write_atomic(ledger_path(probes, name), dump_ledger(made.ledger))
    rounds = counted(len(made.fixture.cuts), "compression")
    click.echo(f"{target}: {made.fixture.description} {rounds}. Digest {made.fixture.digest}")


_NEWEST = 15


def _picked(folder: Path) -> Path:
    """Let the user choose one of the newest logs below a folder, such as the home of an agent program."""
    from datetime import datetime

    logs = sorted(folder.rglob("*.jsonl"), key=lambda path: path.stat().st_mtime, reverse=True)[:_NEWEST]
    if not logs:
        raise UserError(
            f"{folder}: no .jsonl file in it; give a session log, or the folder that a program keeps them in"
        )
    if not sys.stdin.isatty():
        raise UserError(f"{folder}: is a folder; give one session log, such as its newest, {logs[0]}")
    for number, path in enumerate(logs, 1):
        about = path.stat()
        when = datetime.fromtimestamp(about.st_mtime).astimezone()
        click.echo(f"{number:>3}. {when:%Y-%m-%d %H:%M}  {about.st_size:>11,} bytes  {path.relative_to(folder)}")
    return logs[click.prompt("Number", type=click.IntRange(1, len(logs)), default=1) - 1]


@fixture.command("scrub")
@click.argument("path", type=_PATH)
@click.option("--probes", type=_PATH, help="Probe bank to rewrite with the same placeholders.")
@click.option("--output", type=_PATH, help="File to write instead, with the same name in another folder.")
@click.option("--dry-run", is_flag=True, help="Show what would change; write nothing.")
@_scrub_options
def scrub_command(path: Path, probes: Path | None, output: Path | None, dry_run: bool, **scrub: Any) -> None:
    """Replace secrets and personal data in a fixture, and in its probes with the same placeholders.

    \b
    Example:
      compression-eval fixture scrub fixtures/my-session.json --probes probes/my-session.probes.json
    """
    from eval_core.base.files import write_atomic
    from eval_core.domain.fixture import fixture_name, load_fixture
    from eval_core.domain.probe import dump_bank, load_bank

    recorded = load_fixture(path)
    target = output or path
    if fixture_name(target) != recorded.name:
        raise UserError(f"--output {target}: the file must be named {recorded.name}.json, as the fixture is")
    scrubbed, bank, identities = _scrub(recorded, load_bank(probes) if probes else None, **scrub)
    if dry_run:
        return
    _gate(scrubbed, identities, scrub["allow"] or target.parent / "allow.json", "nothing was written")
    click.echo(f"{_store(target.parent, scrubbed)}: written")
    if probes is not None:
        write_atomic(probes, dump_bank(bank))
        click.echo(f"{probes}: written")


@fixture.command("audit")
@click.argument("paths", nargs=-1, type=_PATH)
@click.option("--identities", type=_PATH, help="Names that must not appear, not even inside words.")
@click.option("--allow", type=_PATH, help="Allow list; default: allow.json beside the first fixture.")
def audit_command(paths: tuple[Path, ...], identities: Path | None, allow: Path | None) -> None:
    """Check fixtures before they are shared; exit 1 if anything is found that is not allow-listed.

    Every detector of the scrubber runs again and must find nothing, listed names must be gone, JSON must parse, and a
    second scrub must change nothing.

    \b
    Examples:
      compression-eval fixture audit
      compression-eval fixture audit fixtures/my-session.json --identities people.txt
    """
    from eval_core.suite.audit import ALLOW_FILE, CANNOT_KNOW, audit_files, fixture_paths, load_allow
    from eval_core.suite.scrub import load_identities

    paths = paths or (configured("fixtures"),)
    files = fixture_paths(paths)
    if not files:
        raise UserError(f"{', '.join(map(str, paths))}: no fixture there to audit")
    known = load_identities(identities) if identities else None
    with show_waiting(f"Auditing {counted(len(files), 'fixture')}"):
        findings = audit_files(files, known, load_allow(allow or files[0].parent / ALLOW_FILE))
    _report(findings)
    open_findings = [finding for finding in findings if finding.open]
    size = sum(file.stat().st_size for file in files)
    click.echo(f"{counted(len(files), 'fixture')}, {size:,} bytes, {counted(len(open_findings), 'finding')}")
    click.echo(CANNOT_KNOW, err=True)
    if open_findings:
        raise SystemExit(1)


@fixture.command("list")
@click.option(
    "--fixtures",
    type=_PATH,
    default=lambda: configured("fixtures"),
    show_default=CONFIGURED,
    help="Folder of the fixtures.",
)
@as_json
def list_command(fixtures: Path, as_json: bool) -> None:
    """List the fixtures, plain or compressed, with their messages, tokens and bytes.

    \b
    Example:
      compression-eval fixture list
    """
    from eval_core.domain.fixture import fixture_files
    from eval_core.suite.show import fixture_file

    files = fixture_files(fixtures)
    if not files:
        raise UserError(f"{fixtures}: no fixture there; `compression-eval fixture import SESSION` makes one")
    found = map(fixture_file, files)
    if as_json:
        print_json([asdict(item) for item in found])
        return
    for item in found:
        click.echo(item)


@fixture.command("show")
@click.argument("name")
@click.option(
    "--fixtures",
    type=_PATH,
    default=lambda: configured("fixtures"),
    show_default=CONFIGURED,
    help="Folder of the fixtures.",
)
@click.option("--probes", type=_PATH, help="Probe bank whose evidence is mapped; default: the one in probes/.")
@click.option("--census", is_flag=True, help="List the facts in the session.")
def show_command(name: str, fixtures: Path, probes: Path | None, census: bool) -> None:
    """Show a session's messages by role, the tools it used, and where the evidence is.

    \b
    Examples:
      compression-eval fixture show my-session
      compression-eval fixture show my-session --census
    """
    from eval_core.domain.fixture import load_fixture, named_fixture
    from eval_core.domain.probe import load_bank
    from eval_core.suite.show import describe

    session = load_fixture(named_fixture(name, fixtures))
    if census:
        _census(session)
        return
    bank = probes or configured("probes") / f"{session.name}.probes.json"
    if probes is not None and not probes.exists():
        raise UserError(f"{probes}: no such file")
    for line in describe(session, load_bank(bank) if bank.exists() else None):
        click.echo(line)


def _census(session: Fixture) -> None:
    from eval_core.facts.census import census

    facts = census(session.messages)
    click.echo(f"{session.name}: {len(facts)} facts")
    for fact in facts:
        places = ", ".join(map(str, fact.messages))
        click.echo(f"  {fact.kind:<11} {fact.salience:>6.2f}  {fact.value}  in message {places}")


def _store(folder: Path, session: Fixture) -> Path:
    """Write a fixture; say so when it is too large for plain JSON."""
    from eval_core.base.gzip_files import PACKED_SUFFIX, PLAIN_LIMIT
    from eval_core.domain.fixture import write_fixture

    target = write_fixture(folder, session)
    if target.name.endswith(PACKED_SUFFIX):
        click.echo(
            f"Warning: more than {PLAIN_LIMIT:,} bytes of JSON: stored compressed, {target.stat().st_size:,} bytes. "
            "Reviewers read it with `compression-eval fixture show`.",
            err=True,
        )
    return target


def _scrub(recorded: Fixture, bank: Any, **options: Any) -> tuple[Fixture, Any, Identities]:
    from eval_core.suite.scrub import Identities, ScrubOptions, load_identities, scrub_fixture

    identities = load_identities(options["identities"]) if options["identities"] else Identities()
    _confirm(recorded, identities, options["yes"])
    chosen = ScrubOptions(
        identities, options["first_user"], options["keep_system"], _longest_output(recorded, options["max_output"])
    )
    with show_waiting(f"Scrubbing {counted(len(recorded.messages), 'message')}"):
        result = scrub_fixture(recorded, chosen, bank)
    for line in result.report.lines():
        click.echo(line, err=True)
    return result.fixture, result.bank, identities


def _confirm(recorded: Fixture, identities: Identities, yes: bool) -> None:
    """Show the names that were found and add those to the list that are to go."""
    from eval_core.suite.scrub import harvest, session_texts
    from eval_core.suite.scrub.replace import leaves

    with show_waiting("Looking for names"):
        found, _ = harvest(piece for text in session_texts(recorded) for piece in leaves(text))
    listed = {alias.lower() for alias in identities.aliases} | identities.spared
    candidates = [candidate for candidate in found if candidate.alias.lower() not in listed]
    if not candidates:
        return
    click.echo("Names found in the session:", err=True)
    for number, candidate in enumerate(candidates, 1):
        doubt = "  doubtful" if candidate.doubtful else ""
        click.echo(
            f"  {number:>3}. {candidate.alias}  ({', '.join(candidate.sources)}: {candidate.marked} x, "
            f"in other text: {candidate.loose} x){doubt}",
            err=True,
        )
    if yes:
        taken = [candidate for candidate in candidates if not candidate.doubtful]
    else:
        left = _numbers(len(candidates), [n for n, c in enumerate(candidates, 1) if c.doubtful])
        taken = [candidate for number, candidate in enumerate(candidates, 1) if number not in left]
    identities.groups.extend((candidate.alias,) for candidate in taken)
    # What is left in the text by choice must not be taken out because the session shows it at a name's place.
    identities.spared.update(candidate.alias.lower() for candidate in candidates if candidate not in taken)


def _numbers(count: int, doubtful: list[int]) -> set[int]:
    default = ",".join(map(str, doubtful)) or "none"
    try:
        answer = click.prompt(
            "Which numbers should stay in the text? Separate them with commas", default=default, err=True
        )
    except click.Abort:
        if sys.stdin.isatty():
            raise
        raise UserError(
            "there is no terminal to ask which of these names to keep: pass --yes to remove every likely one, or "
            "--identities FILE with the names to remove, one person per line, and !WORD for those to keep"
        ) from None
    if answer.strip() in ("none", ""):
        return set()
    try:
        numbers = {int(part) for part in answer.split(",") if part.strip()}
    except ValueError:
        raise UserError(f"{answer!r}: give numbers from 1 to {count} with commas, or none") from None
    if not numbers <= set(range(1, count + 1)):
        raise UserError(f"{answer!r}: give numbers from 1 to {count} with commas, or none")
    return numbers


def _redact(session: Fixture, identities: Identities, allow: Path) -> Fixture:
    """Replace what the audit still finds, and say where."""
    from eval_core.suite.audit import REDACTED, load_allow, redact_findings

    redacted, findings = redact_findings(session, identities, load_allow(allow))
    _report(findings)
    if findings:
        click.echo(f"{counted(len(findings), 'finding')} replaced by {REDACTED}.", err=True)
    return redacted


def _longest_output(recorded: Fixture, asked: int | None) -> int | None:
    """Return where tool outputs are cut; of a long session they are a large part of what a compressor has to read."""
    from eval_core.base.tokens import count_messages

    if asked is not None:
        return asked or None
    tokens = count_messages(recorded.messages)
    if tokens <= _LONG:
        return _OUTPUT
    click.echo(
        f"{tokens:,} tokens: tool outputs are kept whole; --max-output {_OUTPUT} shortens the long ones.", err=True
    )
    return None


def _gate(session: Fixture, identities: Identities, allow: Path, refusal: str) -> None:
    from eval_core.suite.audit import audit_fixture, judge, load_allow

    with show_waiting(f"Auditing {counted(len(session.messages), 'message')}"):
        findings = judge(audit_fixture(session, identities), load_allow(allow))
    _report(findings)
    open_findings = [finding for finding in findings if finding.open]
    if open_findings:
        click.echo(
            f"{counted(len(open_findings), 'finding')} after scrubbing: {refusal}. Name the people with --identities, "
            f"or allow a harmless text by its hash in {allow}",
            err=True,
        )
        raise SystemExit(1)


def _report(findings: list[AuditFinding]) -> None:
    for finding in findings:
        click.echo(str(finding), err=True)
