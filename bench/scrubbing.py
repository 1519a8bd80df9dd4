"""Measure what the scrubber finds and what it leaves.

python -m bench.scrubbing                  # whole sessions of agents, by the set they belong to
python -m bench.scrubbing --planted        # the planted templates, set by set; --planted eighth: one of them
python -m bench.scrubbing --ordinary DIR   # what is replaced in texts that hold next to nothing to replace
"""

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

from bench.planted import SETS, Kind, Plant, kinds, sessions
from eval_core.domain.fixture import Fixture
from eval_core.suite.scrub import Identities, ScrubOptions, scrub_fixture
from eval_core.suite.scrub.pipeline import message_texts
from eval_core.suite.scrub.replace import is_json, leaves, opens_like_json
from tests.suite.sessions import WholeSession, whole_sessions

_FACT = re.compile(
    r"(?<![\w./])(?:src|tests|relay|docs)/[\w/.:-]*\w|\b[0-9a-f]{7,40}\b|\bv\d+\.\d+\.\d+\b|#\d{2,5}\b"
    r"|\b[a-z]+(?:_[a-z0-9]+)+\b"
)


@dataclass
class Counted:
    """Of the values of one sort: how many there were, and how many went."""

    values: int = 0
    gone: int = 0
    wrong: list[str] = field(default_factory=list)
    """What should have gone and stayed, or the other way round."""

    @property
    def share(self) -> float:
        """The share that went, in percent."""
        return 100 * self.gone / max(1, self.values)


def readable(fixture: Fixture) -> list[str]:
    """Return the text of each message, with the JSON in it decoded."""
    return [
        "\n".join(piece for text in message_texts(message) for piece, _ in leaves(text)) for message in fixture.messages
    ]


def scrubbed(fixture: Fixture, known: Sequence[tuple[str, ...]]) -> Fixture:
    """Return a fixture scrubbed whole, with a list of known names."""
    options = ScrubOptions(Identities(groups=list(known)), keep_system=True, max_output=None)
    return scrub_fixture(fixture, options).fixture


# Whole sessions.


def measure_session(session: WholeSession, *, listed: bool) -> dict[str, Counted]:
    """Scrub one whole session and count what went, by sort: secrets, personal, keep, facts."""
    fixture = Fixture(name="whole", messages=session.messages)
    after = scrubbed(fixture, session.known if listed else ())
    return count_gone(session, *("\n".join(readable(one)) for one in (fixture, after)))


def count_gone(session: WholeSession, before: str, after: str) -> dict[str, Counted]:
    """Count by sort which values of a session are in the text before and not in the text after."""
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


def measure_sessions(only: str = "all") -> dict[str, dict[tuple[str, bool], Counted]]:
    """Measure all sessions or one set; count by set (and `together`), sort, and whether names were listed."""
    totals: dict[str, dict[tuple[str, bool], Counted]] = defaultdict(lambda: defaultdict(Counted))
    for session in whole_sessions():
        if only not in ("all", session.set):
            continue
        for listed in (False, True):
            for sort, counted in measure_session(session, listed=listed).items():
                for total in (totals[session.set][sort, listed], totals["together"][sort, listed]):
                    total.values += counted.values
                    total.gone += counted.gone
                    total.wrong += [f"{session.set}/{session.name}: {value}" for value in counted.wrong]
    return totals


_HEAD = (
    "| set | secrets removed | personal data, no list | with a list | look-alikes replaced | facts lost |",
    "|---|---:|---:|---:|---:|---:|",
)


def _row(name: str, *counts: Counted) -> str:
    return f"| {name} | " + " | ".join(f"{one.share:.1f} %" for one in counts) + " |"


def _print_sessions(only: str) -> None:
    totals = measure_sessions(only)
    print(*_HEAD, sep="\n")
    for name in (*sorted(set(totals) - {"together"}), "together"):
        columns = ("secrets", False), ("personal", False), ("personal", True), ("keep", False), ("facts", False)
        print(_row(name, *(totals[name][column] for column in columns)))
    for sort in ("secrets", "personal", "keep", "facts"):
        print(f"\nwrong, {sort}:", *totals["together"][sort, False].wrong, sep="\n  ")


# Planted templates.


@dataclass
class Measured:
    """What went of the planted values, by group (secret, personal, negative), and what broke."""

    groups: dict[str, Counted] = field(default_factory=lambda: defaultdict(Counted))
    facts: Counted = field(default_factory=Counted)
    broken_json: int = 0
    unstable: int = 0


def measure(planted: Sequence[Kind], seed: int = 1, rounds: int = 8, *, listed: bool = True) -> Measured:
    """Scrub sessions with these kinds planted and count; `listed` gives the list of names that a user would write."""
    measured = Measured()
    for fixture, plants in sessions(planted, seed, rounds):
        known = [plant.planted.aliases for plant in plants if plant.planted.aliases] if listed else []
        after = scrubbed(fixture, known)
        measured.unstable += scrubbed(after, known).messages != after.messages
        texts = readable(after)
        for plant in plants:
            _count_plant(measured.groups[plant.kind.group], plant, texts[plant.message])
        _count_facts(measured.facts, plants, readable(fixture), texts)
        for message, fresh in zip(fixture.messages, after.messages, strict=True):
            for before, now in zip(message_texts(message), message_texts(fresh), strict=True):
                measured.broken_json += opens_like_json(before) and is_json(before) and not is_json(now)
    return measured


def _count_plant(counted: Counted, plant: Plant, text: str) -> None:
    left = [value for value in plant.planted.values if value in text]
    counted.values += len(plant.planted.values)
    counted.gone += len(plant.planted.values) - len(left)
    if left if plant.kind.group != "negative" else len(left) < len(plant.planted.values):
        counted.wrong.append(plant.kind.name)


def _count_facts(counted: Counted, plants: Sequence[Plant], before: list[str], after: list[str]) -> None:
    values = [value for plant in plants if plant.kind.group != "negative" for value in plant.planted.values]
    values += [value for plant in plants for value in plant.planted.either]
    for index, text in enumerate(before):
        for fact in set(_FACT.findall(text)):
            if not any(fact in value or value in fact for value in values):
                counted.values += 1
                counted.gone += fact not in after[index]


def _print_planted(rounds: int, only: str) -> None:
    """Print what goes of the templates, set by set, and the kinds that are not as they should be."""
    found = {
        name: [measure(kinds(name), seed, rounds, listed=one) for one in (False, True)]
        for name, seed in SETS
        if only in ("all", name)
    }
    print(*_HEAD, sep="\n")
    for name, (bare, listed) in found.items():
        of, known = bare.groups, listed.groups
        print(_row(name, of["secret"], of["personal"], known["personal"], of["negative"], bare.facts))
    for name, (bare, _) in found.items():
        wrong = Counter(kind for counted in bare.groups.values() for kind in counted.wrong)
        print(f"\nnot as it should be, {name}: " + "; ".join(f"{kind} {count}" for kind, count in wrong.items()))
        print(f"JSON broken: {bare.broken_json}; sessions that a second scrub changes: {bare.unstable}")


# Ordinary texts.

_BATCH, _EXCERPT = 150_000, 20_000


def _ordinary_texts(paths: Sequence[Path], limit: int) -> Iterator[str]:
    """Yield the beginnings of the text files below these folders, in an order that mixes them, up to a limit."""
    files = sorted(file for path in paths for file in ([path] if path.is_file() else path.rglob("*")) if file.is_file())
    random.Random(3).shuffle(files)
    for file in files:
        try:
            body = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
            text = body.decode("utf-8")[:_EXCERPT]
        except (OSError, ValueError, EOFError):
            continue
        if len(text) >= 500 and "\0" not in text:
            if limit <= 0:
                return
            limit -= len(text)
            yield text


def _print_ordinary(paths: Sequence[Path], limit: int) -> None:
    """Print what is replaced in texts that hold next to nothing to replace, and the processor time, per megabyte."""
    found: Counter[str] = Counter()
    size, seconds, batch = 0, 0.0, list[str]()
    for text in (*_ordinary_texts(paths, limit), ""):
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


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--sessions", nargs="?", default="all", const="all", metavar="SET", help="one set of the whole sessions"
    )
    parser.add_argument("--planted", nargs="?", const="all", metavar="SET", help="measure the planted templates")
    parser.add_argument("--rounds", type=int, default=8, help="with --planted: how often each kind is planted")
    parser.add_argument("--ordinary", nargs="+", type=Path, metavar="DIR", help="read sources and manuals")
    parser.add_argument("--megabytes", type=float, default=0.7, help="with --ordinary: how much to read")
    arguments = parser.parse_args()
    if arguments.ordinary:
        _print_ordinary(arguments.ordinary, int(arguments.megabytes * 1_000_000))
    elif arguments.planted:
        _print_planted(arguments.rounds, arguments.planted)
    else:
        _print_sessions(arguments.sessions)


if __name__ == "__main__":
    main()
