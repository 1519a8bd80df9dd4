"""Measure what the scrubber finds and what it leaves: `python -m bench.scrubbing`."""

from __future__ import annotations

import argparse
import gzip
import random
import re
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from eval_core.domain.fixture import Fixture, dump_fixture, load_fixture
from eval_core.suite.audit import audit_fixture, fixture_paths
from eval_core.suite.audit_rules import doubts
from eval_core.suite.importers import import_session
from eval_core.suite.scrub import Identities, ScrubOptions, scrub_fixture
from eval_core.suite.scrub.pipeline import message_texts
from eval_core.suite.scrub.replace import is_json, leaves, opens_like_json
from tests.suite.broad_secrets import BROAD, RULED, split
from tests.suite.corpus import Kind, Plant, sessions
from tests.suite.corpus_held_out import HELD_OUT
from tests.suite.corpus_later import LATER
from tests.suite.corpus_negatives import NEGATIVES
from tests.suite.corpus_people import PEOPLE
from tests.suite.corpus_secrets import SECRETS
from tests.suite.planted import SETS, WholeSession, whole_sessions
from tests.suite.planted import kinds as planted_kinds

_PIECE = 8  # this many characters of a secret in a row are a part of it
_FACT = re.compile(
    r"(?<![\w./])(?:src|tests|relay|docs)/[\w/.:-]*\w|\b[0-9a-f]{7,40}\b|\bv\d+\.\d+\.\d+\b|#\d{2,5}\b"
    r"|\b[a-z]+(?:_[a-z0-9]+)+\b"
)


@dataclass
class Tally:
    """Counts for one kind."""

    kind: Kind
    planted: int = 0
    gone: int = 0
    """Of the blocks: those of which everything went; of look-alikes: those of which anything did."""
    values: int = 0
    values_gone: int = 0
    partial: int = 0
    named: int = 0
    """How many of those that were left the audit names; of look-alikes, how many it names for nothing."""


@dataclass
class Measured:
    """Counts for a whole corpus."""

    kinds: dict[str, Tally] = field(default_factory=dict)
    facts: int = 0
    facts_kept: int = 0
    broken_json: int = 0
    unstable: int = 0

    def share(self, group: str, held_out: bool | None = None) -> float:
        """Return the share of planted things of a group that went."""
        rows = [t for t in self.kinds.values() if t.kind.group == group and held_out in (None, t.kind.held_out)]
        planted = sum(row.planted for row in rows)
        return sum(row.gone for row in rows) / planted if planted else 1.0

    def value_share(self, group: str) -> float:
        """Return the share of the single values of a group that went."""
        rows = [row for row in self.kinds.values() if row.kind.group == group]
        values = sum(row.values for row in rows)
        return sum(row.values_gone for row in rows) / values if values else 1.0

    def audit_share(self) -> float:
        """Return the share of what was left that the audit names."""
        rows = [row for row in self.kinds.values() if row.kind.group != "negative"]
        return sum(row.named for row in rows) / max(1, sum(row.planted - row.gone for row in rows))


def _readable(fixture: Fixture, index: int) -> str:
    pieces = (piece for text in message_texts(fixture.messages[index]) for piece, _ in leaves(text))
    return "\n".join(pieces)


def _partial(value: str, text: str) -> bool:
    return len(value) >= 12 and any(value[at : at + _PIECE] in text for at in range(len(value) - _PIECE + 1))


def _covered(value: str, doubted: set[str]) -> bool:
    return any(value in one or (one in value and 2 * len(one) >= len(value) - 1) for one in doubted)


def _doubted(fixture: Fixture, index: int) -> set[str]:
    """Return what the audit's second look names in one message."""
    pieces = (leaf for text in message_texts(fixture.messages[index]) for leaf in leaves(text))
    return {piece[one.start : one.end] for piece, key in pieces for one in doubts(piece, key)}


def _judge(measured: Measured, plant: Plant, text: str, doubted: set[str]) -> None:
    tally = measured.kinds.setdefault(plant.kind.name, Tally(plant.kind))
    tally.planted += 1
    left = [value for value in plant.planted.values if value in text]
    tally.values += len(plant.planted.values)
    tally.values_gone += len(plant.planted.values) - len(left)
    tally.gone += len(left) < len(plant.planted.values) if plant.kind.group == "negative" else not left
    if plant.kind.group == "negative":
        tally.named += bool(doubted)
    else:
        tally.named += bool(left) and all(_covered(value, doubted) for value in left)
    if plant.kind.group == "secret" and not left:
        tally.partial += any(_partial(value, text) for value in plant.planted.values)


def measure(kinds: Sequence[Kind], seed: int = 1, rounds: int = 8, *, listed: bool = True) -> Measured:
    """Scrub sessions with these kinds planted and count; `listed` gives the list of names that a user would write."""
    measured = Measured()
    for fixture, plants in sessions(kinds, seed, rounds):
        groups = [plant.planted.aliases for plant in plants if plant.planted.aliases] if listed else []
        options = ScrubOptions(Identities(groups=groups), keep_system=True, max_output=None)
        scrubbed = scrub_fixture(fixture, options).fixture
        again = scrub_fixture(scrubbed, options).fixture
        measured.unstable += again.messages != scrubbed.messages
        for plant in plants:
            _judge(measured, plant, _readable(scrubbed, plant.message), _doubted(scrubbed, plant.message))
        values = [value for plant in plants if plant.kind.group != "negative" for value in plant.planted.values]
        values += [value for plant in plants for value in plant.planted.either]
        for index, message in enumerate(fixture.messages):
            after = _readable(scrubbed, index)
            for fact in set(_FACT.findall(_readable(fixture, index))):
                if not any(fact in value or value in fact for value in values):
                    measured.facts += 1
                    measured.facts_kept += fact in after
            for before, now in zip(message_texts(message), message_texts(scrubbed.messages[index]), strict=True):
                measured.broken_json += opens_like_json(before) and is_json(before) and not is_json(now)
    return measured


def _print_split(seed: int, rounds: int, *, held_out: bool) -> None:
    """Print the broad kinds by half; the held-out half is measured only when it is asked for."""
    halves = dict(zip(("development", "held out"), split(BROAD), strict=True))
    halves["held out, no rule of its own"] = [kind for kind in halves["held out"] if kind.name not in RULED]
    if not held_out:
        halves = {"development": halves["development"]}
    found = {
        half: [measure(kinds, seed, rounds, listed=listed) for listed in (False, True)]
        for half, kinds in halves.items()
    }
    print("| measure | " + " | ".join(halves) + " |", "|---|" + "---:|" * len(halves), sep="\n")
    for what, group, listed in (
        ("secrets removed", "secret", False),
        ("personal data removed, no list", "personal", False),
        ("personal data removed, with a list", "personal", True),
        ("look-alikes replaced by mistake", "negative", False),
    ):
        print(f"| {what} | " + " | ".join(f"{100 * found[half][listed].share(group):.1f} %" for half in halves) + " |")
    kept = [f"{100 * one.facts_kept / max(1, one.facts):.2f} %" for one, _ in found.values()]
    print("| facts that survive | " + " | ".join(kept) + " |")
    print("| kinds | " + " | ".join(str(len(kinds)) for kinds in halves.values()) + " |")
    if not held_out:
        print("", *table(found["development"][0]), sep="\n")


def _print_fresh(rounds: int, only: str) -> None:
    """Print the sets that were written before they were measured, with today's rules, and what is left by kind."""
    found = {
        name: [measure(planted_kinds(name), seed, rounds, listed=one) for one in (False, True)]
        for name, seed in SETS
        if only in ("all", name)
    }
    print("| measure | " + " | ".join(found) + " |", "|---|" + "---:|" * len(found), sep="\n")
    for what, group, listed in (
        ("secrets removed", "secret", False),
        ("personal data removed, no list", "personal", False),
        ("personal data removed, with a list", "personal", True),
        ("look-alikes replaced by mistake", "negative", False),
    ):
        shares = [f"{100 * both[listed].value_share(group):.1f} %" for both in found.values()]
        print(f"| {what} | " + " | ".join(shares) + " |")
    kept = [f"{100 * one.facts_kept / max(1, one.facts):.2f} %" for one, _ in found.values()]
    print("| facts that survive | " + " | ".join(kept) + " |")
    for what, group, listed in (
        ("blocks without any secret", "secret", False),
        ("blocks without any personal data, no list", "personal", False),
        ("blocks without any personal data, with a list", "personal", True),
    ):
        shares = [f"{100 * both[listed].share(group):.1f} %" for both in found.values()]
        print(f"| {what} | " + " | ".join(shares) + " |")
    for what, group in (("secrets", "secret"), ("personal data", "personal")):
        named = [_named(bare, group) for bare, _ in found.values()]
        print(f"| of the {what} left, the audit named | " + " | ".join(f"{x} of {y}" for x, y in named) + " |")
    falsely = [[row for row in bare.kinds.values() if row.kind.group == "negative"] for bare, _ in found.values()]
    shares = [sum(row.named for row in rows) / max(1, sum(row.planted for row in rows)) for rows in falsely]
    print("| look-alikes that the audit named | " + " | ".join(f"{100 * share:.1f} %" for share in shares) + " |")
    sizes = [[sum(kind.group == group for kind in planted_kinds(name)) for group in _GROUPS] for name in found]
    print(
        "| kinds (secrets, personal data, look-alikes) | "
        + " | ".join(", ".join(map(str, one)) for one in sizes)
        + " |"
    )
    print(f"\nthe audit's findings in the shipped fixtures and docs/examples: {_shipped()}")
    for name, (bare, _) in found.items():
        rows = [
            row
            for row in bare.kinds.values()
            if (row.gone > 0 if row.kind.group == "negative" else row.gone < row.planted)
        ]
        unnamed = [row for row in bare.kinds.values() if _is_unnamed(row)]
        print(f"\nthe audit is wrong, {name}: " + "; ".join(f"{row.kind.name} {row.named}" for row in unnamed))
        print(
            f"\nnot as it should be, {name}: " + "; ".join(f"{row.kind.name} {row.gone}/{row.planted}" for row in rows)
        )


def _named(measured: Measured, group: str) -> tuple[int, int]:
    rows = [row for row in measured.kinds.values() if row.kind.group == group]
    return sum(row.named for row in rows), sum(row.planted - row.gone for row in rows)


def _is_unnamed(row: Tally) -> bool:
    return row.named > 0 if row.kind.group == "negative" else row.named < row.planted - row.gone


def _shipped() -> int:
    """Count what the audit finds where nothing is to be found."""
    root = Path(__file__).resolve().parent.parent
    findings = [one for path in fixture_paths([root / "fixtures"]) for one in audit_fixture(load_fixture(path))]
    example = import_session(root / "docs" / "examples" / "session.jsonl", "auto", name="example")
    options = ScrubOptions(keep_system=True, max_output=None)
    return len(findings) + len(audit_fixture(scrub_fixture(example, options).fixture))


_GROUPS = ("secret", "personal", "negative")


@dataclass
class Counted:
    """Of the values of one sort in whole sessions: how many there were, and how many went."""

    values: int = 0
    gone: int = 0
    wrong: list[str] = field(default_factory=list)
    """What should have gone and stayed, or the other way round."""


def measure_session(session: WholeSession, *, listed: bool) -> dict[str, Counted]:
    """Scrub one whole session and count what went, by sort: secrets, personal, keep, facts."""
    fixture = Fixture(name="whole", messages=session.messages)
    groups = session.known if listed else []
    options = ScrubOptions(Identities(groups=groups), keep_system=True, max_output=None)
    before, after = (
        "\n".join(_readable(one, index) for index in range(len(one.messages)))
        for one in (fixture, scrub_fixture(fixture, options).fixture)
    )
    found = {}
    for sort, values in session.values.items():
        counted = found[sort] = Counted()
        for value in dict.fromkeys(values):
            if value in before:
                gone = not _occurs(value, after, whole_word=sort == "personal")
                counted.values += 1
                counted.gone += gone
                if gone == (sort in ("keep", "facts")):
                    counted.wrong.append(value)
    return found


def _occurs(value: str, text: str, *, whole_word: bool) -> bool:
    """Tell whether a value is in a text; a name is not in a longer word."""
    if whole_word and value.replace(" ", "").isalpha():
        return re.search(rf"(?<![^\W_]){re.escape(value)}(?![^\W_])", text) is not None
    return value in text


def _print_sessions(only: str) -> None:
    """Print what is found in whole sessions, by the set that they were written in, and in all of them."""
    print(
        "| set | secrets removed | personal data, no list | with a list | look-alikes replaced | facts that survive |"
    )
    print("|---|---:|---:|---:|---:|---:|")
    wrong: list[str] = []
    totals: defaultdict[str, defaultdict[tuple[str, bool], Counted]] = defaultdict(lambda: defaultdict(Counted))
    for session in whole_sessions():
        if only not in ("all", session.set):
            continue
        for listed in (False, True):
            for sort, counted in measure_session(session, listed=listed).items():
                for total in (totals[session.set][sort, listed], totals["together"][sort, listed]):
                    total.values += counted.values
                    total.gone += counted.gone
                if not listed and counted.wrong:
                    wrong.append(f"{session.set}, {session.name}, {sort}: {'; '.join(counted.wrong)}")
    for name in (*sorted(set(totals) - {"together"}), "together"):
        gone = {key: 100 * one.gone / max(1, one.values) for key, one in totals[name].items()}
        print(
            f"| {name} | {gone['secrets', False]:.1f} % | {gone['personal', False]:.1f} % "
            f"| {gone['personal', True]:.1f} % | {gone['keep', False]:.1f} % | {100 - gone['facts', False]:.1f} % |"
        )
    print("", *wrong, sep="\n")


def _speed(kinds: Sequence[Kind]) -> tuple[int, float]:
    fixture = next(iter(sessions(kinds, 7, rounds=14, size=10_000)))[0]
    for end in range(4, len(fixture.messages), 2):
        shorter = fixture.model_copy(update={"messages": fixture.messages[:end]})
        if len(dump_fixture(shorter).encode()) > 150_000:
            fixture = shorter
            break
    started = time.process_time()
    scrub_fixture(fixture, ScrubOptions(keep_system=True, max_output=None))
    return len(dump_fixture(fixture).encode()), time.process_time() - started


_BATCH, _EXCERPT = 150_000, 20_000


def _ordinary_texts(paths: Sequence[Path]) -> Iterator[str]:
    """Yield the beginnings of the text files below these folders, in an order that mixes them."""
    files = sorted(file for path in paths for file in ([path] if path.is_file() else path.rglob("*")) if file.is_file())
    random.Random(3).shuffle(files)
    for file in files:
        try:
            body = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
            text = body.decode("utf-8")[:_EXCERPT]
        except (OSError, ValueError, EOFError):
            continue
        if len(text) >= 500 and "\0" not in text:
            yield text


def _print_ordinary(paths: Sequence[Path], limit: int) -> None:
    """Print what is replaced in texts that hold next to nothing to replace, and the processor time, per megabyte."""
    found: Counter[str] = Counter()
    size, seconds, batch = 0, 0.0, list[str]()
    for text in (*_within(_ordinary_texts(paths), limit), ""):
        if text:
            batch.append(text)
        if batch and (not text or sum(map(len, batch)) > _BATCH):
            messages = [{"role": "user", "content": one} for one in batch]
            started = time.process_time()
            report = scrub_fixture(
                Fixture(name="ordinary", messages=messages), ScrubOptions(keep_system=True, max_output=None)
            ).report
            seconds += time.process_time() - started
            size += sum(map(len, batch))
            for change in report.changes:
                found[re.sub(r"\d+.*|-\d+$", "", change.placeholder)] += change.count
            batch = []
    per = 1_000_000 / max(1, size)
    print(f"{size / 1e6:.2f} MB, {seconds * per:.1f} s of processor time per MB; replaced per MB:")
    for placeholder, count in found.most_common():
        print(f"  {placeholder:<32} {count * per:6.0f}")


def _within(texts: Iterator[str], limit: int) -> Iterator[str]:
    for text in texts:
        if limit <= 0:
            return
        limit -= len(text)
        yield text


def table(measured: Measured) -> list[str]:
    """Return the rows by kind as a Markdown table."""
    lines = ["| kind | group | held out | planted | gone | partly left |", "|---|---|---|---:|---:|---:|"]
    by_group: defaultdict[str, list[Tally]] = defaultdict(list)
    for tally in measured.kinds.values():
        by_group[tally.kind.group].append(tally)
    for group in ("secret", "personal", "negative"):
        for row in sorted(by_group[group], key=lambda item: (item.kind.held_out, item.kind.name)):
            held = "yes" if row.kind.held_out else ""
            share = f"{100 * row.gone / row.planted:.0f} %"
            lines.append(f"| {row.kind.name} | {group} | {held} | {row.planted} | {share} | {row.partial or ''} |")
    return lines


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--split", action="store_true", help="measure the broad kinds: the development half, by kind")
    parser.add_argument("--held-out", action="store_true", help="with --split: both halves, without the rows by kind")
    parser.add_argument(
        "--fresh",
        nargs="?",
        const="all",
        metavar="SET",
        help="measure the sets that were written before they were measured",
    )
    parser.add_argument(
        "--sessions", nargs="?", const="all", metavar="SET", help="measure whole sessions, by the set they belong to"
    )
    parser.add_argument(
        "--ordinary",
        nargs="+",
        type=Path,
        metavar="FOLDER",
        help="count what is replaced in ordinary texts, such as sources and manuals",
    )
    parser.add_argument("--megabytes", type=float, default=0.7, help="with --ordinary: how much to read")
    arguments = parser.parse_args()
    if arguments.ordinary:
        _print_ordinary(arguments.ordinary, int(arguments.megabytes * 1_000_000))
        return
    if arguments.sessions:
        _print_sessions(arguments.sessions)
        return
    if arguments.fresh:
        _print_fresh(arguments.rounds, arguments.fresh)
        return
    if arguments.split:
        _print_split(arguments.seed, arguments.rounds, held_out=arguments.held_out)
        return
    kinds = (*SECRETS, *PEOPLE, *LATER, *NEGATIVES, *HELD_OUT)
    measured = measure(kinds, arguments.seed, arguments.rounds)
    print("| measure | looked at | held out |", "|---|---:|---:|", sep="\n")
    for group, what in (
        ("secret", "secrets removed"),
        ("personal", "personal data removed"),
        ("negative", "look-alikes replaced by mistake"),
    ):
        shares = [f"{100 * measured.share(group, held):.1f} %" for held in (False, True)]
        print(f"| {what} | {shares[0]} | {shares[1]} |")
    partial = sum(row.partial for row in measured.kinds.values())
    size, seconds = _speed(kinds)
    print(f"\npartial masks: {partial}; facts that survive: {measured.facts_kept} of {measured.facts} "
          f"({100 * measured.facts_kept / max(1, measured.facts):.2f} %); JSON broken: {measured.broken_json}; "
          f"sessions that a second scrub changes: {measured.unstable}; "
          f"{size:,} bytes in {seconds:.2f} s CPU\n")  # fmt: skip
    print("\n".join(table(measured)))


if __name__ == "__main__":
    main()
