"""Asks: what the compressor says to its model apart from the session, and how it changed, line by line."""

from __future__ import annotations

import difflib
import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from eval_core.base.messages import Message, said
from eval_core.base.numbers import counted, listed
from eval_core.domain.compression import ModelRequest, Step
from eval_core.domain.measurement import Measurement
from eval_core.domain.record import AsksRecord, RunRecord
from eval_core.domain.session_text import SessionText
from eval_core.strands.findings import Finding, StrandState

# What is recorded of a run.

SESSION = "[...]"
"""Where the session's text was."""
_DAY, _TIME = r"\d{4}-\d\d-\d\d", r"\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?"
_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*\.?"
_WEEKDAY = r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,? "
_FRESH = re.compile(
    rf"{_DAY}(?:[T ]{_TIME})?|\b{_TIME}\b|\b\d{{1,2}}/\d{{1,2}}/\d{{4}}\b"
    rf"|(?:{_WEEKDAY})?(?:\d{{1,2}}\.? {_MONTH}|{_MONTH} \d{{1,2}}(?:st|nd|rd|th)?),? \d{{4}}"
    r"|\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b|\b(?=[a-f]*\d)[0-9a-f]{12,}\b|\b1[6-9]\d{8}(?:\d{3})?\b"
)
"""Dates, times and ids: they tell when and where a request was made."""
_LONGEST_LINE = 6_000
_MOST_LINES = 600


def _digest(texts: Iterable[str]) -> str:
    return hashlib.sha256("\0".join(texts).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def undated(text: str) -> str:
    """Return a text without what tells when it was written, which is another every day."""
    return _FRESH.sub("<...>", text)


def _short(line: str) -> str:
    """Cut what is too long to be kept, so that a change behind the cut is still a change."""
    line = undated(line)
    return line if len(line) <= _LONGEST_LINE else f"{line[:_LONGEST_LINE]} ... ({_digest([line])})"


def _message_lines(message: Message, known: SessionText, shown: list[str]) -> list[str]:
    """Return the instructions in one message, and add the session's text to what was shown."""
    lines: dict[tuple[int, int], list[str]] = {}
    for number, text in enumerate(said(message).texts):
        for part in known.parts(text):
            parts = lines.setdefault((number, part.line), [])
            if part.session:
                shown.append(part.text)
            if not part.session or parts[-1:] != [SESSION]:
                parts.append(SESSION if part.session else " ".join(part.text.split()))
    written = [" ".join(parts) for parts in lines.values()]
    own = any(line != SESSION for line in written)
    return [f"({message.get('role')})", *written] if own else written


def _step(requests: Sequence[ModelRequest], step: int, known: SessionText) -> AsksRecord:
    shown: list[str] = []
    lines: dict[str, None] = {}
    for request in requests:
        found = [line for message in request.messages for line in _message_lines(message, known, shown)]
        for line in (*found, *(f"({setting})" for setting in request.settings)):
            lines.setdefault(_short(line))
        known.add([request.reply])
    kept = list(lines)
    if len(kept) > _MOST_LINES:
        kept = [*kept[:_MOST_LINES], f"... ({_digest(kept)})"]
    asked_for = sorted({name for request in requests for name in request.asked_for})
    return AsksRecord(step=step, text="\n".join(kept), session=_digest(shown), asked_for=asked_for)


def read_asks(requests: Sequence[ModelRequest], steps: Sequence[Step], session: SessionText) -> list[AsksRecord]:
    """Record the instructions of each step in which the model was asked.

    What the model replied, and what an earlier step made of the session, comes back in later requests and is no
    instruction either.
    """
    known = SessionText(others=session)
    found = []
    for number in sorted({request.step for request in requests}):
        mine = [request for request in requests if request.step == number]
        if 0 < number <= len(steps):
            known.add(text for message in steps[number - 1].messages for text in said(message).texts)
        found.append(_step(mine, number, known))
    return found


# What a difference between two sides means, and its words.

Unit = tuple[str, int]
"""A fixture and a step of it."""
_SHARED = 2
_WIDE, _AROUND = 160, 50
_NAME = re.compile(r"[^\w./:+ -]+")
_LONGEST_NAME = 60
_NUMBERED = re.compile(r"\b(?=[^\W\d]*\d)\w+\b")


@dataclass(frozen=True)
class AsksChange:
    """What became of the instructions."""

    strand: Finding
    sessions: frozenset[str] = frozenset()
    """Fixtures of which the model was shown other text of the session in some step."""
    other_text: bool = False
    """Whether the first compression of a session is shown one text of it on each side, and the two differ."""
    instructions: str = ""
    """What became of the instructions, as a clause; empty where they are the same."""
    other_model: str = ""
    """Which other model, or how much thought, is asked for, as a clause; empty where both sides ask for the same."""

    @property
    def changed(self) -> bool:
        """Whether the model is told something else."""
        return self.strand.state is StrandState.CHANGED

    @property
    def unknown(self) -> bool:
        """Whether the model was asked, and nobody wrote down what."""
        return self.strand.state is StrandState.NOT_RECORDED


def _mask(line: str) -> str:
    """Return a line without its numbers and ids: what it says where these differ from run to run."""
    return _NUMBERED.sub("#", line)


@dataclass(frozen=True)
class _Asked:
    """One step of one fixture on one side: the lines of each run."""

    runs: tuple[tuple[str, ...], ...]
    sessions: frozenset[str]

    @cached_property
    def forms(self) -> list[dict[str, str]]:
        """For each run every line, as it is and without its numbers, with the line to show."""
        return [{form: line for line in run for form in (_mask(line), line)} for run in self.runs]

    @cached_property
    def stable(self) -> dict[str, str]:
        """What every run has."""
        return {form: line for form, line in self.forms[0].items() if all(form in other for other in self.forms[1:])}

    @cached_property
    def any(self) -> frozenset[str]:
        """What some run has."""
        return frozenset(form for run in self.forms for form in run)

    @cached_property
    def varying(self) -> frozenset[str]:
        """Lines without their numbers where these differ from run to run."""
        sets = [frozenset(run) for run in self.runs]
        return frozenset(_mask(line) for run in sets for line in run if not all(line in other for other in sets))


Units = Mapping[Unit, _Asked]


def _lines(record: AsksRecord) -> tuple[str, ...]:
    return tuple(record.text.split("\n"))


def _asking(runs: Sequence[RunRecord]) -> list[list[AsksRecord]]:
    """Return what was asked in each run that came to its end, or failed after it had asked."""
    return [run.asks for run in runs if run.asks is not None and (run.ok or run.asks)]


def _units(measurement: Measurement) -> dict[Unit, _Asked]:
    found: dict[Unit, list[AsksRecord]] = {}
    for name, runs in measurement.fixtures.items():
        for asks in _asking(runs):
            for record in asks:
                found.setdefault((name, record.step), []).append(record)
    return {
        unit: _Asked(tuple(map(_lines, records)), frozenset(record.session for record in records))
        for unit, records in found.items()
    }


def _template(units: Units) -> frozenset[str]:
    """Return what more than one fixture or step has, or all there is of a single one."""
    seen = Counter(form for asked in units.values() for form in asked.any)
    return frozenset(form for form, times in seen.items() if times >= min(_SHARED, len(units)))


@dataclass(frozen=True)
class _Diff:
    removed: Mapping[str, str]
    added: Mapping[str, str]
    """What is compared, with the line to show."""
    moved: bool

    def __bool__(self) -> bool:
        return bool(self.removed or self.added or self.moved)


def _gone(old: _Asked, new: _Asked, template: frozenset[str], *, same_session: bool) -> dict[str, str]:
    """Return the instructions of one side that the other has not."""
    by_itself = same_session and len(old.runs) >= _SHARED
    vary = old.varying | new.varying
    found = {
        form: line
        for form, line in old.stable.items()
        if form not in new.any
        and line != SESSION
        and (by_itself or form in template)
        and not (form == line and _mask(line) in vary and _mask(line) in new.any)
    }
    return {form: line for form, line in found.items() if form == line or line not in found}


def _diff(theirs: _Asked, ours: _Asked, templates: tuple[frozenset[str], frozenset[str]]) -> _Diff:
    same_session = bool(theirs.sessions & ours.sessions)
    removed = _gone(theirs, ours, templates[0], same_session=same_session)
    added = _gone(ours, theirs, templates[1], same_session=same_session)
    return _Diff(removed, added, moved=same_session and _moved(theirs, ours))


def _moved(theirs: _Asked, ours: _Asked) -> bool:
    """Tell whether the lines that both have are in another order, which no run of either side has by itself."""
    common = theirs.stable.keys() & ours.stable.keys()
    orders = [{tuple(line for line in run if line in common) for run in side.runs} for side in (theirs, ours)]
    return not orders[0] & orders[1]


def _excerpts(old: str, new: str) -> tuple[str, str]:
    """Cut two long lines down to where they differ."""
    if max(len(old), len(new)) <= _WIDE:
        return old, new
    start = next((at for at, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
    end = 0
    while end < min(len(old), len(new)) - start and old[-1 - end] == new[-1 - end]:
        end += 1

    def cut(line: str) -> str:
        first, last = max(0, start - _AROUND), min(len(line), len(line) - end + _AROUND)
        return f"{'... ' if first else ''}{line[first:last][: 2 * _WIDE]}{' ...' if last < len(line) else ''}"

    return cut(old), cut(new)


def _shown(removed: Sequence[str], added: Sequence[str]) -> Iterator[str]:
    """Yield the changed lines in their order, old before new, each where it is like the other as a pair."""
    for _, low, high, first, last in difflib.SequenceMatcher(None, removed, added, autojunk=False).get_opcodes():
        olds, news = list(removed[low:high]), list(added[first:last])
        for at, old in enumerate(olds):
            close = difflib.get_close_matches(old, news, n=1, cutoff=0.5) if len(old) > _WIDE else []
            if close:
                olds[at], news[news.index(close[0])] = _excerpts(old, close[0])
        yield from (f"- {line}" for line in olds)
        yield from (f"+ {line}" for line in news)


def _places(units: Sequence[Unit], every: Sequence[Unit]) -> str:
    """Say in which steps and fixtures, where it is not in all of them."""
    if set(units) == set(every):
        return ""
    steps = sorted({step for _, step in units})
    if {unit for unit in every if unit[1] in steps} == set(units):
        return f"only in step {listed([str(step + 1) for step in steps])}"
    return f"only in {listed([f'{name}, step {step + 1}' for name, step in units])}"


def _strand(state: StrandState, base: str = "", candidate: str = "", says: str = "", *details: str) -> Finding:
    return Finding(name="asks", state=state, base=base, candidate=candidate, says=says, details=details)


def _length(units: Units) -> str:
    """Say how many lines of instructions a step has, as most steps have."""
    if not units:
        return "no model is asked"
    template = _template(units)
    counts = Counter(
        len({line for form, line in asked.stable.items() if form in template} - {SESSION}) for asked in units.values()
    )
    return counted(counts.most_common(1)[0][0], "line")


def _unrecorded(measurement: Measurement) -> bool:
    """Tell whether the compressor asked a model in a run of which nobody wrote down what."""
    runs = [run for runs in measurement.fixtures.values() for run in runs if run.ok or run.asks]
    return any(run.asks is None for run in runs)


def _finished(measurement: Measurement) -> set[str]:
    return {name for name, runs in measurement.fixtures.items() if any(run.ok for run in runs)}


def _asked_for(measurement: Measurement) -> tuple[set[str], set[str]] | None:
    """Return what every run asks for, and what some run does; None where it was not written down."""
    runs = [asks for runs in measurement.fixtures.values() for asks in _asking(runs) if asks]
    if not runs or any(record.asked_for is None for asks in runs for record in asks):
        return None
    each = [{name for record in asks for name in record.asked_for or ()} for asks in runs]
    return set.intersection(*each), set.union(*each)


def _other_model(base: Measurement, candidate: Measurement) -> str:
    """Say which models the two sides ask for, where these differ in every run: a call may go to a second choice."""
    theirs, ours = _asked_for(base), _asked_for(candidate)
    if theirs is None or ours is None:
        return ""
    gone, new = (
        listed([" ".join(_NAME.sub(" ", name).split())[:_LONGEST_NAME] for name in sorted(names)])
        for names in (theirs[0] - ours[1], ours[0] - theirs[1])
    )
    if gone and new:
        return f"the compressor asks for the model {new} instead of {gone}"
    verb, names = ("asks", new) if new else ("no longer asks", gone)
    return f"the compressor {verb} for the model {names}" if names else ""


def compare_asks(base: Measurement, candidate: Measurement) -> AsksChange:
    """Compare the instructions of every step that both sides came to."""
    if _unrecorded(base) or _unrecorded(candidate):
        # Words about the steps that are known would be read as if they were about all.
        return AsksChange(_strand(StrandState.NOT_RECORDED))
    theirs, ours = _units(base), _units(candidate)
    sides, templates = (_length(theirs), _length(ours)), (_template(theirs), _template(ours))
    both = [unit for unit in theirs if unit in ours]
    finished = _finished(base) & _finished(candidate)
    one_sided = [unit for unit in [*theirs, *ours] if unit not in both and unit[0] in finished]
    found = {unit: diff for unit in both if (diff := _diff(theirs[unit], ours[unit], templates))}
    sessions = frozenset(name for name, _ in one_sided)
    sessions |= {unit[0] for unit in both if not theirs[unit].sessions & ours[unit].sessions}
    # Later steps are shown what the compressor wrote before, which may hold a date.
    texts = [(theirs[unit].sessions, ours[unit].sessions) for unit in both if unit[1] == 0]
    other_text = any(len(before) == len(now) == 1 and before != now for before, now in texts)
    other = _other_model(base, candidate)
    if not (found or one_sided or other):
        return AsksChange(_strand(StrandState.SAME, *sides), sessions, other_text)
    removed = list({form: line for diff in found.values() for form, line in diff.removed.items()}.values())
    added = list({form: line for diff in found.values() for form, line in diff.added.items()}.values())
    what = [f"{counted(len(removed), 'line')} removed"] if removed else []
    what += [f"{counted(len(added), 'line')} added"] if added else []
    what += ["the same lines in another order"] if found and not what else []
    what += ["a model is asked in other steps"] if one_sided else []
    where = _places(list(found), both) if found else ""
    details = [*([where] if where else []), *_shown(removed, added)]
    for name, step in one_sided:
        now = "the model is asked now" if (name, step) in ours else "the model is no longer asked"
        details.append(f"{name}, step {step + 1}: {now}")
    instructions = f"the instructions to the compressor's model changed ({', '.join(what)})" if what else ""
    says = "; ".join(filter(None, [instructions, other]))
    details = [*details, *([other] if other else [])]
    return AsksChange(_strand(StrandState.CHANGED, *sides, says, *details), sessions, other_text, instructions, other)
