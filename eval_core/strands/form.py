"""Form: the sections of what the compressor wrote, its length, and its standing sentences.

Which sections a summary has is learned from the base's runs. A model leaves a heading out now and then, so a fixed
share would not do: for each label the exact chance of so few runs is taken over all fixtures together, times the number
of labels looked at.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain, takewhile
from typing import Literal, get_args

from eval_core.base.numbers import counted, counted_range, listed, percent, quoted, tokens
from eval_core.base.tokens import count_text
from eval_core.domain.record import FormRecord, RunRecord, SectionRecord
from eval_core.facts.verbatim import Kept
from eval_core.statistics.exact import Counts, fewer_p, smallest_p
from eval_core.strands.asks import undated
from eval_core.strands.findings import Finding, Item, StrandState
from eval_core.strands.structure import changed_in_place, orders_reader
from eval_core.strands.writing import thinned

# What is recorded of a run.

_FENCE = re.compile(r"^\s*(?:```|~~~)")
# Chinese and Japanese need no space after the hashes, and no model writes "#2147" there.
_HEADING = re.compile(r"^\s{0,3}(#{1,6})(?:\s+|(?=[^\x00-\x7f]))(\S.{0,100}?)\s*#*\s*$")
_UNDERLINE = re.compile(r"^\s{0,3}(?:={3,}|-{3,})\s*$")
_BOLD = re.compile(r"^\s*(?:[-*]\s+)?\*\*([^*\n]{2,80}?)[:：]?\*\*(?::?(?=\s|$)|：)")
_TAG = re.compile(r"^\s*<([^\W\d][\w-]{1,60})>")
_NAMED_TAG = re.compile(
    r"^\s*<[^\W\d][\w-]{0,60}\s+(?:name|title|id|type|label)=[\"']([^\"'\n]{2,60})[\"'][^<>\n]{0,60}>"
)
_KEY = re.compile(r"^\s*\"([^\W\d][\w -]{1,60})\"\s*:")
_BRACKETS = re.compile(r"^\s*【([^】\n]{2,40})】[:：]?")
_NUMBER = r"(?:\d{1,2}[.)]\s+|\d{1,2}、\s*|[一二三四五六七八九十]{1,3}、\s*)"
_CAPITALS = re.compile(rf"^\s*{_NUMBER}?([^\W\d_][\w /&-]{{3,60}}):?\s*$")
_NUMBERED = re.compile(rf"^\s*{_NUMBER}([^\W\d_][\w /&'-]{{1,60}})[:：]?\s*$")
_LABEL = re.compile(r"^\s*([^\W\d_][\w /&'-]{1,40})(?::(?=\s|$)|：)")
# How deep a label lies: a section lasts until the next label that is no deeper.
_STYLES = (
    (_TAG, 7), (_NAMED_TAG, 7), (_KEY, 7), (_BOLD, 8), (_BRACKETS, 8), (_CAPITALS, 8), (_NUMBERED, 9), (_LABEL, 9),
)  # fmt: skip
_LONGEST = 6  # words of a label; more is a sentence
_NOT_WORDS = re.compile(r"[^\w ]+|_")
_NOTHING = re.compile(
    r"\W*(?:none|n/?a|nothing(?: \w+){0,3}|no \w+(?: \w+){0,2}|unknown|empty|null|tbd"
    r"|keine?[nmrs]?(?: \w+){0,2}|nichts|aucune?(?: \w+)?|rien|ning[uú]n[ao]?(?: \w+)?|nada"
    r"|нет|无|暂无|没有|なし|없음)?\W*",
    re.I,
)


@dataclass(frozen=True)
class WrittenSection:
    """One labelled part of a text."""

    label: str
    text: str

    @property
    def empty(self) -> bool:
        """Whether it says nothing."""
        return _NOTHING.fullmatch(self.text) is not None


def label_key(label: str) -> str:
    """Return the form in which labels are compared; empty for what is a sentence, not a label."""
    words = _NOT_WORDS.sub(" ", label).lower().split()
    while words and words[0].isdigit():
        words.pop(0)
    return " ".join(words) if 0 < len(words) <= _LONGEST else ""


def _label(line: str) -> tuple[str, int, str] | None:
    """Return the label that a line begins with, its depth, and what follows on the line."""
    if match := _HEADING.match(line):
        name = label_key(match[2])
        return (name, len(match[1]), "") if name else None
    for pattern, depth in _STYLES:
        if (match := pattern.match(line)) and _titled(pattern, match[1]):
            name = label_key(match[1])
            return (name, depth, line[match.end() :]) if name else None
    return None


def _titled(pattern: re.Pattern[str], name: str) -> bool:
    """Tell whether words are written as a title, where nothing but that tells them from a sentence."""
    if pattern is _CAPITALS:
        return name.isupper()
    if pattern in (_NUMBERED, _LABEL):
        # A script without capitals has none to show, and needs fewer letters.
        return len(name) > 2 and name[0].isupper() if name[0].lower() != name[0].upper() else True
    return True


def _lines(text: str) -> list[str]:
    """Return the lines of a text, with a line for each key where the text is JSON on a single line."""
    lines: list[str] = []
    for line in text.splitlines():
        # JSON that is most of the text is its form; any other is quoted in it.
        if line.lstrip().startswith("{") and len(line) * 2 > len(text):
            with contextlib.suppress(ValueError, RecursionError):
                line = json.dumps(json.loads(line), indent=1, ensure_ascii=False)
        lines += line.splitlines() or [""]
    return lines


def _underlined(lines: Sequence[str], number: int) -> bool:
    """Tell whether a line is a title with a line of dashes under it, after an empty one."""
    under = number + 1 < len(lines) and _UNDERLINE.match(lines[number + 1]) is not None
    alone = number == 0 or not lines[number - 1].strip()
    return under and alone and lines[number][:1].isalpha() and bool(label_key(lines[number]))


@lru_cache(maxsize=128)  # many runs write the same, and each section is compared with each
def sections(text: str) -> tuple[WrittenSection, ...]:
    """Return the labelled parts of a text, in order; a part holds the deeper parts inside it."""
    lines = _lines(text)
    found: list[tuple[int, str, int, str]] = []
    fenced = False
    for number, line in enumerate(lines):
        if _FENCE.match(line):
            fenced = not fenced
        elif not fenced and (label := _label(line)) is not None:
            found.append((number, *label))
        elif not fenced and _underlined(lines, number):
            found.append((number, label_key(line), 1, ""))
    result = []
    later: dict[int, int] = {}
    # From the end, so that a text of a million headings is read once and not a million times.
    for number, name, depth, rest in reversed(found):
        end = min((line for level, line in later.items() if level <= depth), default=len(lines))
        later[depth] = number
        result.append(WrittenSection(name, "\n".join([rest, *lines[number + 1 : end]])))
    return tuple(result[::-1])


def labels(text: str, known_lines: Collection[str] = ()) -> list[str]:
    """Return the labels of a text, each once; those on lines that the session itself holds are not the text's own."""
    found = (_label(line) for line in text.splitlines() if line.strip() not in known_lines)
    return list(dict.fromkeys(label[0] for label in found if label is not None))


def written_texts(kept: Kept) -> list[str]:
    """Return what the compressor wrote itself, without the messages that it only shortened."""
    changed = changed_in_place(kept)
    own = [at for at in range(len(kept.compressed)) if at not in kept.alignment.kept]
    return [text for at, text in zip(own, kept.own_texts, strict=True) if at not in changed]


def read_form(texts: Sequence[str]) -> FormRecord:
    """Record the sections of what a compressor wrote."""
    found: dict[str, SectionRecord] = {}
    for text in texts:
        for section in sections(text):
            if section.label not in found or found[section.label].tokens == 0:
                tokens = 0 if section.empty else count_text(section.text)
                found[section.label] = SectionRecord(label=section.label, tokens=tokens)
    return FormRecord(sections=list(found.values()), tokens=sum(count_text(text) for text in texts))


# What a difference between two sides means, and its words.

Runs = Mapping[str, Sequence[RunRecord]]

USUAL = 0.5
"""A label belongs to the form if it is in this share of the base's runs, in two fixtures or in the only one."""
ALPHA = 0.01
HALVED = 0.5
SAME_WORDS = 0.4
LENGTH = (0.85, 1.15)
"""The own text's mean length against the base's; unchanged compressors stay between 0.93 and 1.07."""
STUB = 0.25
"""A run with at most this share of the base's sections, and of its shortest own text, is a refusal or garbage."""
MOVED = 0.5
"""A section that came out empty was moved, not lost, if this share of the words that only it held is still written."""
MERGED = 0.8
"""A section whose heading is gone was merged into another if that one holds this share of those words."""
UNTESTED_ALPHA = 0.05
"""A label that no run has any more is told, and keeps the verdict open, below this chance for it alone."""
STANDING = 0.9
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
_WORD = re.compile(r"[^\W\d_]{3,}")
_DIGITS = re.compile(r"\d+")
_SHORTEST = 25


@dataclass(frozen=True)
class FormChange:
    """What became of the summaries' form."""

    recorded: bool
    labels: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    emptied: tuple[str, ...] = ()
    moved: tuple[str, ...] = ()
    """Sections that came out empty while what they held is written elsewhere."""
    merged: tuple[str, ...] = ()
    """Sections whose heading is gone while what they held is written elsewhere."""
    missing: tuple[str, ...] = ()
    """Sections that no run has any more, where there are too few runs to call them gone."""
    runs: int = 0
    """Of the candidate."""
    unlabelled: bool = False
    """The summaries have hardly any sections and are as long as before: they are written in another form."""
    renamed: tuple[tuple[str, str], ...] = ()
    new: tuple[str, ...] = ()
    accepted: tuple[str, ...] = ()
    base_sections: tuple[int, int] = (0, 0)
    candidate_sections: tuple[int, int] = (0, 0)
    """The fewest and the most of a run."""
    length: float = 1.0
    base_tokens: float = 0.0
    candidate_tokens: float = 0.0
    """Of the compressor's own text, over all runs."""
    sentences_gone: tuple[str, ...] = ()
    sentences_new: tuple[str, ...] = ()
    other_opening: bool = False
    """Whether those before the first heading are others: they tell the reader what the summary is."""
    orders: tuple[str, ...] = ()
    """New standing sentences that order the reader about."""
    thinned: Mapping[str, float] = field(default_factory=dict)
    """What the text has hardly any more, and the share of it that is left."""
    reachable: bool = True


def _recorded(runs: Runs) -> dict[str, list[RunRecord]]:
    return {name: found for name, records in runs.items() if (found := [run for run in records if run.ok and run.form])}


def _labels(run: RunRecord, *, filled: bool) -> set[str]:
    return {item.label for item in run.form.sections if item.tokens or not filled} if run.form else set()


def _usual(runs: Runs, *, filled: bool = False) -> set[str]:
    """Return the labels that belong to the form of one side."""
    fixtures: Counter[str] = Counter()
    for records in runs.values():
        found = Counter(label for run in records for label in _labels(run, filled=filled))
        fixtures.update(label for label, count in found.items() if count >= USUAL * len(records))
    return {label for label, count in fixtures.items() if count >= min(2, len(runs))}


def _counts(base: Runs, candidate: Runs, label: str, *, filled: bool, exact: bool) -> list[Counts]:
    counts = []
    for name in base.keys() & candidate.keys():
        before = sum(label in _labels(run, filled=filled) for run in base[name])
        now = sum(label in _labels(run, filled=filled) for run in candidate[name])
        size, other = len(base[name]), len(candidate[name])
        # Equal runs are one observation, however many copies there are.
        counts.append(Counts(int(before > 0), 1, int(now > 0), 1) if exact else Counts(before, size, now, other))
    return counts


def _dropped(counts: Sequence[Counts], tests: int, *, exact: bool) -> bool:
    before = sum(item.base for item in counts) / max(sum(item.base_runs for item in counts), 1)
    now = sum(item.candidate for item in counts) / max(sum(item.candidate_runs for item in counts), 1)
    if not before or now > HALVED * before:
        return False
    if exact:
        # Counted over fixtures: most of them must have lost it. One may have nothing left to say under a heading.
        return now < HALVED * before
    return fewer_p(counts) * tests < ALPHA


def _in_no_run(counts: Sequence[Counts]) -> bool:
    return not any(item.candidate for item in counts) and fewer_p(counts) <= UNTESTED_ALPHA + 1e-9


def _frequent(texts: Sequence[str]) -> set[str]:
    """Return the words that at least half of the texts hold."""
    found = Counter(word for text in texts for word in set(_WORD.findall(text.lower())))
    return {word for word, count in found.items() if count * 2 >= len(texts)}


def _words(runs: Sequence[RunRecord], label: str, *, inside: bool = True) -> set[str]:
    """Return the words that the section holds in at least half of the runs, or all others together."""
    return _frequent(
        [" ".join(item.text for item in sections(run.summary) if (item.label == label) is inside) for run in runs]
    )


def _is_merged(base: Runs, candidate: Runs, label: str) -> bool:
    """Tell whether one section of the candidate holds the words that only this one of the base held.

    Lines that a model now writes under this heading and then under that are not where a reader looks for them.
    """
    held, kept = 0, Counter[str]()
    for name in base.keys() & candidate.keys():
        own = _words(base[name], label) - _words(base[name], label, inside=False)
        held += len(own)
        kept.update({other: len(own & _words(candidate[name], other)) for other in _usual({name: candidate[name]})})
    return held > 0 and max(kept.values(), default=0) >= MERGED * held


def _is_elsewhere(base: Runs, candidate: Runs, label: str) -> bool:
    """Tell whether most of the words that only this section of the base held are still in the summaries."""
    held = kept = 0
    for name in base.keys() & candidate.keys():
        own = _words(base[name], label) - _words(base[name], label, inside=False)
        held += len(own)
        kept += len(own & _frequent([run.summary for run in candidate[name]]))
    return held > 0 and kept >= MOVED * held


def _similarity(base: Runs, candidate: Runs, old: str, new: str) -> float:
    shares = []
    for name in base.keys() & candidate.keys():
        before, now = _words(base[name], old), _words(candidate[name], new)
        if before or now:
            shares.append(len(before & now) / len(before | now))
    return sum(shares) / len(shares) if shares else 0.0


def _opening(summary: str) -> str:
    """Return what stands before the first heading, without dates and numbers."""
    return _DIGITS.sub("#", undated("\n".join(takewhile(lambda line: not line.startswith("#"), summary.split("\n")))))


def _standing(runs: Runs, read: Callable[[str], str] = str) -> set[str]:
    """Return the sentences that nearly all runs of all fixtures have: the compressor's own, not the session's."""
    kept: set[str] | None = None
    for records in runs.values():
        found = Counter(
            sentence
            for run in records
            for sentence in {" ".join(part.split()) for part in _SENTENCE.split(read(run.summary))}
            if len(sentence) >= _SHORTEST
        )
        usual = {sentence for sentence, count in found.items() if count >= STANDING * len(records)}
        kept = usual if kept is None else kept & usual
    return kept or set()


_What = Literal["merged", "gone", "missing", "moved", "emptied"]


def _what(base: Runs, candidate: Runs, label: str, tests: int, *, exact: bool) -> _What | None:
    """Return what became of a section of the base, None where it is there as before."""
    named = _counts(base, candidate, label, filled=False, exact=exact)
    dropped = _dropped(named, tests, exact=exact)
    if dropped or (not exact and _in_no_run(named)):
        if _is_merged(base, candidate, label):
            return "merged" if dropped else None
        return "gone" if dropped else "missing"
    if _dropped(_counts(base, candidate, label, filled=True, exact=exact), tests, exact=exact):
        return "moved" if _is_elsewhere(base, candidate, label) else "emptied"
    return None


def compare_form(
    base_runs: Runs, candidate_runs: Runs, accepted: Collection[str] = (), *, exact: bool = False
) -> FormChange:
    """Compare the form of the two sides' summaries."""
    base, candidate = _recorded(base_runs), _recorded(candidate_runs)
    names = base.keys() & candidate.keys()
    base, candidate = {name: base[name] for name in sorted(names)}, {name: candidate[name] for name in sorted(names)}
    if not names:
        return FormChange(recorded=False)
    usual = sorted(_usual(base))
    allowed = {label_key(label) for label in accepted}
    fresh = sorted(_usual(candidate) - set(usual))
    found: dict[_What, list[str]] = {what: [] for what in get_args(_What)}
    renamed: list[tuple[str, str]] = []
    for label in usual:
        what = _what(base, candidate, label, len(usual), exact=exact)
        match = max(fresh, key=lambda new: _similarity(base, candidate, label, new), default="") if what else ""
        if what is None:
            continue
        if match and what in ("merged", "gone", "missing") and _similarity(base, candidate, label, match) > SAME_WORDS:
            renamed += [(label, match)] if what != "missing" else []
        else:
            found[what].append(label)
    gone, emptied = found["gone"], found["emptied"]
    before, now = list(chain(*base.values())), list(chain(*candidate.values()))
    lengths = [
        (sum(_tokens(run) for run in candidate[name]) / len(candidate[name]))
        / max(sum(_tokens(run) for run in base[name]) / len(base[name]), 1)
        for name in names
    ]
    said, says = _standing(base), _standing(candidate)
    length = sum(lengths) / len(lengths)
    typical = sum(len(_labels(run, filled=False) & set(usual)) for run in before) / len(before)
    left = sum(len(_labels(run, filled=False) & {*usual, *fresh}) for run in now) / len(now)
    unlabelled = bool(gone or found["merged"]) and left <= STUB * typical and length >= LENGTH[0]
    if unlabelled:
        gone = found["merged"] = []
    everywhere = [_counts(base, candidate, label, filled=False, exact=False) for label in usual[:1]]
    return FormChange(
        recorded=True,
        labels=tuple(usual),
        gone=tuple(label for label in gone if label not in allowed),
        emptied=tuple(label for label in emptied if label not in allowed),
        moved=tuple(found["moved"]),
        merged=tuple(found["merged"]),
        missing=tuple(label for label in found["missing"] if label not in allowed),
        runs=len(now),
        unlabelled=unlabelled,
        renamed=tuple(renamed),
        new=tuple(label for label in fresh if label not in dict(renamed).values()),
        accepted=tuple(label for label in [*gone, *emptied] if label in allowed),
        base_sections=_fewest_and_most(before, set(usual)),
        candidate_sections=_fewest_and_most(now, {*usual, *fresh}),
        length=length,
        base_tokens=sum(map(_tokens, before)) / len(before),
        candidate_tokens=sum(map(_tokens, now)) / len(now),
        sentences_gone=tuple(sorted(said - says))[:6],
        sentences_new=tuple(sorted(says - said))[:6],
        other_opening=len(names) > 1 and _standing(base, _opening) != _standing(candidate, _opening),
        orders=tuple(sentence for sentence in sorted(says - said) if orders_reader(sentence))[:6],
        thinned=thinned(_bodies(base), _bodies(candidate)),
        reachable=exact or not everywhere or smallest_p(everywhere[0]) * len(usual) < ALPHA,
    )


def _bodies(runs: Runs) -> dict[str, list[str]]:
    """Return what is written below the labels."""
    return {name: [_body(run.summary) for run in records] for name, records in runs.items()}


@lru_cache(maxsize=128)
def _body(text: str) -> str:
    return "\n".join(line for line in text.splitlines() if _label(line) is None)


def _tokens(run: RunRecord) -> int:
    return run.form.tokens if run.form else 0


def degenerate_runs(base_runs: Runs, candidate_runs: Runs) -> set[tuple[str, int]]:
    """Return the candidate's runs whose summary is a refusal or garbage: hardly any section and hardly any text.

    Both conditions are needed: a terse summary keeps its sections, and one in another form keeps its length.
    """
    base, candidate = _recorded(base_runs), _recorded(candidate_runs)
    usual, found = _usual(base), set()
    for name, runs in candidate.items():
        if name not in base or not usual:
            continue
        shortest = min(_tokens(run) for run in base[name])
        typical = sum(len(_labels(run, filled=False) & usual) for run in base[name]) / len(base[name])
        for run in runs:
            kept = len(_labels(run, filled=False))
            if typical and kept <= STUB * typical and _tokens(run) <= STUB * shortest:
                found.add((name, run.run))
    return found


def too_many(stubs: Collection[tuple[str, int]], base_runs: Runs, candidate_runs: Runs) -> bool:
    """Tell whether so many runs say nothing that it cannot be the model's mishap: the base's never did."""
    base, candidate = _recorded(base_runs), _recorded(candidate_runs)
    counts = [
        Counts(0, len(base[name]), sum(fixture == name for fixture, _ in stubs), len(runs))
        for name, runs in candidate.items()
        if name in base
    ]
    return bool(counts) and fewer_p([item.swapped for item in counts]) < ALPHA


def _fewest_and_most(runs: Sequence[RunRecord], labels: set[str]) -> tuple[int, int]:
    found = [len(_labels(run, filled=True) & labels) for run in runs]
    return min(found), max(found)


def _in_words(sections: tuple[int, int], length: float) -> str:
    return f"{counted_range(*sections, 'section')}, {tokens(length)} tokens"


def _state(change: FormChange, details: Sequence[str]) -> StrandState:
    if change.gone or change.emptied or change.orders or change.thinned:
        return StrandState.WORSE
    if change.missing or (change.labels and not change.reachable and not details):
        return StrandState.CANNOT_TELL
    if change.accepted:
        return StrandState.ACCEPTED
    return StrandState.CHANGED if details else StrandState.SAME


def _says(change: FormChange) -> Iterator[str]:
    def names(labels: Sequence[str]) -> str:
        return f"({listed(list(map(quoted, labels)))})"

    if change.gone:
        yield f"the summary lost {counted(len(change.gone), 'section')} {names(change.gone)}"
    if change.emptied:
        yield f"{counted(len(change.emptied), 'section')} came out empty {names(change.emptied)}"
    if change.missing:
        runs = counted(change.runs, "run")
        yield f"{counted(len(change.missing), 'section')} in none of {runs} {names(change.missing)}"
    if change.orders:
        yield "the summary gives its reader orders"
    if change.thinned:
        fewer = [f"{percent(1 - left)} fewer {kind}" for kind, left in change.thinned.items()]
        yield f"the summary has {listed(fewer)}"


def standing_sentences(change: FormChange) -> tuple[str, ...]:
    """Name the sentences of the compressor itself that are gone or new."""
    gone = (f"sentence gone: {sentence}" for sentence in change.sentences_gone)
    new = (f"new sentence: {sentence}" for sentence in change.sentences_new if sentence not in change.orders)
    return *gone, *new


def form_strand(change: FormChange) -> Finding:
    """Say what the form shows."""
    if not change.recorded:
        return Finding(name="form", state=StrandState.NOT_RECORDED)
    details = [f"section gone: {label}" for label in change.gone]
    details += [f"section emptied: {label}" for label in change.emptied]
    details += [f"section empty, its content is elsewhere: {label}" for label in change.moved]
    details += [f"section gone, its content is in another: {label}" for label in change.merged]
    details += [f"section in none of {counted(change.runs, 'run')}, too few to be tested: {x}" for x in change.missing]
    details += ["no sections any more, and as long as before"] if change.unlabelled else []
    details += [f"section renamed: {old} → {new}" for old, new in change.renamed]
    details += [f"new section: {label}" for label in change.new]
    details += [f"accepted: section {label}" for label in change.accepted]
    details += [f"gives its reader an order: {sentence}" for sentence in change.orders]
    details += standing_sentences(change)
    if not LENGTH[0] <= change.length <= LENGTH[1]:
        details.append(f"the compressor's own text is {percent(change.length)} as long")
    return Finding(
        name="form",
        state=_state(change, details),
        base=_in_words(change.base_sections, change.base_tokens),
        candidate=_in_words(change.candidate_sections, change.candidate_tokens),
        says="; ".join(_says(change)),
        code="emptied" if change.emptied and not change.gone and not change.orders else None,
        details=tuple(details),
        removed=tuple(map(Item, (*change.gone, *change.emptied))),
        accepted=tuple(map(Item, change.accepted)),
        loss=(len(change.gone) + len(change.emptied)) / max(len(change.labels), 1),
    )
