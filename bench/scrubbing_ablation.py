"""What each source of hits brings in the whole sessions: `python -m bench.scrubbing_ablation`.

    nice -n 15 python -m bench.scrubbing_ablation --sample 10      # ten sessions at random, about three minutes
    nice -n 15 python -m bench.scrubbing_ablation --without weighed --without phones

A source is a detector and the pattern behind its hit. All hits are found once and kept; each ablation then only learns
and replaces again without the hits of one source, in the sessions where it fired. `--without` takes out sources whose
name begins like this, all of them together.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from types import FrameType, GeneratorType
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.scrubbing import Counted, count_gone, readable, scrubbed
from eval_core.domain.fixture import Fixture
from eval_core.suite.scrub import detect, identities, replace
from eval_core.suite.scrub.hits import Hit
from tests.suite.sessions import WholeSession, whole_sessions

SORTS = ("secrets", "personal", "keep", "facts")


class Ablation:
    """Stands between the detectors and the replacer, and leaves out the hits of some sources."""

    def __init__(self) -> None:
        self.off: Callable[[str], bool] = lambda _: False
        self.fired: defaultdict[str, set[str]] = defaultdict(set)
        """The sessions in which each source fired."""
        self.session = ""
        self._kept: dict[tuple[str, str | None], list[tuple[Hit, str]]] = {}
        beside = replace.numbers_near_people
        replace.context_hits = identities.context_hits = self._context_hits  # type: ignore[attr-defined,assignment]
        replace.numbers_near_people = lambda text: self._passed(  # type: ignore[attr-defined]
            _traced("beside", beside(text))
        )

    def _passed(self, hits: Iterable[tuple[Any, str]]) -> Iterator[Any]:
        for hit, source in hits:
            self.fired[source].add(self.session)
            if not self.off(source):
                yield hit

    def _context_hits(self, text: str, key: str | None) -> tuple[Hit, ...]:
        if (text, key) not in self._kept:
            shown = detect.without_rule_names(text)
            found = [one for each in detect.DETECTORS for one in _traced(each.__name__, each(shown, key))]
            self._kept[text, key] = [(hit, source) for hit, source in found if not detect.is_spared(hit, shown)]
        return tuple(self._passed(self._kept[text, key]))

    def measure(self, session: WholeSession) -> dict[str, Counted]:
        """Scrub one session without a list of names and count what went."""
        self.session = session.name
        fixture = Fixture(name="whole", messages=session.messages)
        return count_gone(session, *("\n".join(readable(one)) for one in (fixture, scrubbed(fixture, ()))))


def _traced(name: str, hits: Iterable[Hit]) -> Iterator[tuple[Hit, str]]:
    """Yield hits with the detector and the pattern that they come from."""
    for hit in hits:
        inner: Any = hits
        while isinstance(getattr(inner, "gi_yieldfrom", None), GeneratorType):
            inner = inner.gi_yieldfrom
        yield hit, f"{name}/{_pattern(inner.gi_frame, hit) if isinstance(inner, GeneratorType) else hit.rule}"


def _pattern(frame: FrameType | None, hit: Hit) -> str:
    match = next((one for one in (frame.f_locals if frame else {}).values() if isinstance(one, re.Match)), None)
    if frame is None or match is None or hit.rule.endswith(("-token", "-key")):
        return hit.rule
    for name, value in frame.f_globals.items():
        if value is match.re or (isinstance(value, tuple) and match.re in value):
            at = f"[{value.index(match.re)}]" if isinstance(value, tuple) else ""
            return f"{name}{at}.{match.lastgroup}"
    return hit.rule


def _lost(before: dict[str, Counted], after: dict[str, Counted]) -> dict[str, list[str]]:
    """Return by sort which values turned out differently."""
    changed = {}
    for sort in SORTS:
        wrong = set(before[sort].wrong) ^ set(after[sort].wrong)
        if wrong:
            changed[sort] = [f"{'+' if value in before[sort].wrong else '-'}{value}" for value in sorted(wrong)]
    return changed


def _print_sources(ablation: Ablation, sessions: Sequence[WholeSession], base: dict[str, dict[str, Counted]]) -> None:
    for source, fired in sorted(ablation.fired.copy().items(), key=lambda item: (len(item[1]), item[0])):
        ablation.off = lambda name, source=source: name == source
        changed = [_lost(base[one.name], ablation.measure(one)) for one in sessions if one.name in fired]
        values = {sort: [value for each in changed for value in each.get(sort, [])] for sort in SORTS}
        print(
            f"{source}, in {len(fired)} sessions: {({k: v for k, v in values.items() if v}) or 'nothing'}", flush=True
        )


def _print_total(name: str, found: Iterable[dict[str, Counted]]) -> None:
    all_of = list(found)
    shares = {sort: (sum(one[sort].gone for one in all_of), sum(one[sort].values for one in all_of)) for sort in SORTS}
    print(f"{name}: " + ", ".join(f"{sort} {100 * gone / of:.2f} % of {of}" for sort, (gone, of) in shares.items()))


def main() -> None:
    """Print what changes without each source, or without some of them together."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sample", type=int, metavar="N", help="only N sessions, drawn at random")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--without", action="append", default=[], metavar="SOURCE", help="repeat for several")
    arguments = parser.parse_args()
    sessions = list(whole_sessions())
    if arguments.sample:
        sessions = random.Random(arguments.seed).sample(sessions, arguments.sample)
    ablation = Ablation()
    base = {one.name: ablation.measure(one) for one in sessions}
    _print_total("with all sources", base.values())
    if arguments.without:
        ablation.off = lambda name: name.startswith(tuple(arguments.without))
        _print_total(f"without {', '.join(arguments.without)}", map(ablation.measure, sessions))
    else:
        _print_sources(ablation, sessions, base)


if __name__ == "__main__":
    main()
