"""Recovery: what an agent finds again that the state has lost, if it can search what was removed. Never added to it."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from eval_core.base.numbers import percent, tokens
from eval_core.domain.record import RecoveryRecord
from eval_core.domain.session_ledger import LedgerLine
from eval_core.facts.archive import Archive
from eval_core.facts.fact_text import Haystack
from eval_core.facts.haystack import holds
from eval_core.strands.evidence import Evidence
from eval_core.strands.findings import Finding, StrandState
from eval_core.strands.strand import SeenRun

_FEWEST = 5
"""Lost facts of all sessions; of fewer, a share says little."""
_CHARS_PER_TOKEN = 4


def _topic(line: LedgerLine) -> str:
    """Return what a person would ask for who has forgotten it: never the fact's own words."""
    if line.topic:
        return line.topic
    text = line.text
    for anchor in line.anchors:
        text = text.replace(anchor, " ")
    return text


def _there(line: LedgerLine, text: str) -> bool:
    """Tell whether a text holds a line; most stand there as they are, and reading takes its time."""
    low = text.lower()
    return all(anchor.lower() in low for anchor in line.anchors) or holds(line.fact, Haystack.of(text))


def read_recovery(seen: SeenRun) -> RecoveryRecord | None:
    """Ask an archive of the removed messages for every fact that holds and that the state has lost."""
    if seen.ledger is None or seen.compression.opaque is not None:
        return None
    messages = seen.fixture.messages
    state = Haystack.of_messages(seen.kept.compressed)
    live = [line for line in seen.ledger.lines if line.live(len(messages))]
    lost = [line for line in live if not holds(line.fact, state)]
    removed = (message for at, message in enumerate(messages) if at not in seen.kept.indexes)
    archive = Archive(removed, "\n".join(seen.kept.own_texts))
    try:
        by_index, by_text, read = 0, 0, list[int]()
        for line in lost:
            hits = archive.search(_topic(line))
            by_index += _there(line, "\n".join(hits))
            by_text += _there(line, "\n".join(archive.grep(_topic(line))))
            read.append(sum(map(len, hits)) // _CHARS_PER_TOKEN)
    finally:
        archive.close()
    return RecoveryRecord(
        live=len(live), lost=len(lost), searched=by_index, plain=by_text, tokens=round(fmean(read)) if read else 0
    )


def _words(records: Sequence[RecoveryRecord]) -> str:
    lost = sum(record.lost for record in records)
    searched, plain = (sum(getattr(record, name) for record in records) / lost for name in ("searched", "plain"))
    read = sum(record.tokens * record.lost for record in records) / lost
    return f"{percent(searched)} by an index, {percent(plain)} by plain text; {tokens(read)} tokens a question"


def compare_recovery(evidence: Evidence) -> Finding | None:
    """Tell what a search would bring back on both sides; it decides nothing."""
    beside = evidence.recorded.played_rounds if evidence.recorded is not None else None
    if beside is None:
        return None
    base, candidate = (
        [run.recovery for run in side if run.recovery is not None] for side in (beside.base, beside.candidate)
    )
    if sum(record.lost for record in candidate) < _FEWEST:
        return None
    if sum(record.lost for record in base) < _FEWEST:
        return Finding(name="recovery", state=StrandState.NOT_RECORDED, candidate=_words(candidate))
    return Finding(name="recovery", state=StrandState.SAME, base=_words(base), candidate=_words(candidate))
