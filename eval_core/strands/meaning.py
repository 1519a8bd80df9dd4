"""Meaning: does the summary still say what the session established, or the opposite?

Each line of the fixture's ledger gets one state for each run. What is misread is misread on both sides: a line counts
only where it is read so in runs of the candidate and in none of the base, as invented values are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from eval_core.base.numbers import counted
from eval_core.domain.measurement import Measurement
from eval_core.domain.record import RunRecord
from eval_core.facts.ledger_reading import BAD, LedgerReader, LineState
from eval_core.strands.fact_changes import FalseValues, false_values
from eval_core.strands.findings import FalseValue, Finding, StrandState
from eval_core.strands.form import written_texts

if TYPE_CHECKING:
    from eval_core.strands.strand import SeenRun

_QUOTE = 160
_SAYS = {
    LineState.CONSENT: ("states consent that no message gives", "states consent {} times that no message gives"),
    LineState.INVENTED: ("states an order that no message gives", "states {} orders that no message gives"),
    LineState.NOT_LOST: ('a rule lost its "not"', '{} rules lost their "not"'),
    LineState.NOT_ADDED: ('a rule gained a "not"', '{} rules gained a "not"'),
    LineState.SUGGESTED: ("a rule became a suggestion", "{} rules became suggestions"),
    LineState.STRICTER: ("a permission became an order", "{} permissions became orders"),
    LineState.STATUS: ("an item has another status", "{} items have another status"),
    LineState.SPEAKER: ("words of others became the user's order", "words of others became {} orders of the user"),
    LineState.ORDER: ("a step comes before the one it follows", "{} steps come before those they follow"),
    LineState.REQUEST: ("an older request is stated as the active one", "{} older requests are stated as active"),
    LineState.LANGUAGE: ("a summary is in another language", "summaries of {} fixtures are in another language"),
}


def record_meaning(seen: SeenRun) -> Mapping[str, Any] | None:
    """Read the ledger of the session in what the compressor wrote."""
    if seen.ledger is None:
        return None
    total = len(seen.kept.original)
    kept_from = next((index + 1 for index in range(total - 1, -1, -1) if index not in seen.kept.indexes), 0)
    found = LedgerReader(seen.ledger, seen.fixture.messages).read(written_texts(seen.kept), kept_from)
    texts = seen.ledger.texts
    return {
        "ledger": seen.ledger.digest,
        "lines": {name: str(reading.state) for name, reading in found.items()},
        "misstated": {
            name: [str(reading.state), reading.quote[:_QUOTE], texts.get(name, "")]
            for name, reading in found.items()
            if reading.state in BAD
        },
    }


@dataclass(frozen=True)
class MeaningChange:
    """What the two sides say differently of what the sessions established."""

    strand: Finding | None = None
    """None where no fixture has a ledger."""
    misstated: FalseValues | None = None


def _read(runs: Collection[RunRecord]) -> set[str]:
    """Return the digests of the ledgers that these runs were read by."""
    return {str(run.strands["meaning"]["ledger"]) for run in runs if run.ok and "meaning" in run.strands}


def _only(measurement: Measurement, names: Collection[str]) -> Measurement:
    runs = {name: [run for run in measurement.fixtures[name] if "meaning" in run.strands] for name in names}
    return measurement.model_copy(update={"fixtures": runs})


def _says(named: Collection[FalseValue]) -> str:
    counts = Counter(item.value.rpartition(": ")[2] for item in named)
    said = [(counts[state], words) for state, words in _SAYS.items() if counts[state]]
    return "; ".join(one if number == 1 else many.format(number) for number, (one, many) in said)


def _side(measurement: Measurement) -> str:
    """Say in a few words how much of a side's ledgers is misstated."""
    read = [[run.strands["meaning"] for run in runs] for runs in measurement.fixtures.values()]
    lines = counted(sum(max(len(record["lines"]) for record in records) for records in read), "line")
    bad = sum(len({name for record in records for name in record["misstated"]}) for records in read)
    return f"{bad} misstated" if bad else f"none of {lines} misstated"


def compare_meaning(
    base: Measurement, candidate: Measurement, *, exact: bool, unread: Collection[str] = ()
) -> MeaningChange:
    """Compare what is said of each line; of the fixtures in `unread` the stand-in wrote the summaries."""
    ledgers = {name: _read(runs) for name, runs in candidate.fixtures.items()}
    if not any(ledgers.values()):
        return MeaningChange()
    same = [name for name, read in ledgers.items() if read and read == _read(base.fixtures.get(name, ()))]
    names = [name for name in same if name not in unread]
    if not names:
        state = StrandState.NOT_JUDGED if same else StrandState.NOT_RECORDED
        return MeaningChange(Finding(name="meaning", state=state))
    theirs, ours = _only(base, names), _only(candidate, names)
    worse = false_values(theirs, ours, "misstated", exact=exact)
    better = false_values(ours, theirs, "misstated", exact=exact)
    total = sum(len(runs[0].strands["meaning"]["lines"]) for runs in ours.fixtures.values())
    told = worse.named if worse.more else tuple(item for item in worse.named if item.in_all)
    state = StrandState.WORSE if worse.more else StrandState.CANNOT_TELL if told else StrandState.SAME
    if state is StrandState.SAME and better.more:
        state = StrandState.BETTER
    strand = Finding(
        name="meaning",
        state=state,
        base=_side(theirs),
        candidate=_side(ours),
        says=_says(told) if worse.more else "",
        details=tuple(item.words for item in told),
        loss=len(told) / total if worse.more else 0.0,
        gain=len(better.named) / total if better.more else 0.0,
    )
    return MeaningChange(strand, worse)
