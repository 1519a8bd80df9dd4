"""Recovery: what an agent finds again that the state has lost, if it can search what was removed. Never added to it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from eval_core.base.messages import Message
from eval_core.base.numbers import percent, tokens
from eval_core.domain.compression import Recalled
from eval_core.domain.record import RecoveryRecord
from eval_core.domain.session_ledger import LedgerLine, SessionLedger
from eval_core.facts.archive import Archive
from eval_core.facts.fact_text import Haystack
from eval_core.facts.haystack import holds
from eval_core.facts.verbatim import Kept
from eval_core.strands.evidence import Evidence
from eval_core.strands.findings import Finding, StrandState
from eval_core.strands.strand import SeenRun

_FEWEST = 5
"""Lost facts of all sessions; of fewer, a share says little."""
_CHARS_PER_TOKEN = 4
_MOST_SAID = 200


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


@dataclass(frozen=True)
class Asked:
    """What a state has lost of what holds, and where it could be searched for."""

    live: int
    lost: tuple[LedgerLine, ...]
    removed: tuple[Message, ...]
    summary: str

    @classmethod
    def of(cls, kept: Kept, ledger: SessionLedger) -> Asked:
        """Read one compression."""
        state = Haystack.of_messages(kept.compressed)
        live = [line for line in ledger.lines if line.live(len(kept.original))]
        lost = tuple(line for line in live if not holds(line.fact, state))
        removed = tuple(message for at, message in enumerate(kept.original) if at not in kept.indexes)
        return cls(len(live), lost, removed, "\n".join(kept.own_texts))

    def questions(self) -> list[list[str]]:
        """Return what the agent's own search is asked, lost fact by lost fact."""
        with closing(Archive(self.removed, self.summary)) as archive:
            return [archive.queries(_topic(line)) for line in self.lost]


def _found(lost: Sequence[LedgerLine], recalled: Recalled | None) -> dict[str, Any]:
    """Read what the agent's own search brought back."""
    if recalled is None:
        return {}
    read = [len(text) // _CHARS_PER_TOKEN for text in recalled.texts]
    return {
        "own": sum(_there(line, text) for line, text in zip(lost, recalled.texts, strict=False)),
        "own_tokens": round(fmean(read)) if read else 0,
        "own_problem": recalled.problem[:_MOST_SAID],
    }


def read_recovery(seen: SeenRun) -> RecoveryRecord | None:
    """Ask an archive of the removed messages for every fact that holds and that the state has lost."""
    if seen.ledger is None or seen.compression.opaque is not None:
        return None
    asked = Asked.of(seen.kept, seen.ledger)
    by_index, by_text, read = 0, 0, list[int]()
    with closing(Archive(asked.removed, asked.summary)) as archive:
        for line in asked.lost:
            hits = archive.search(_topic(line))
            by_index += _there(line, "\n".join(hits))
            by_text += _there(line, "\n".join(archive.grep(_topic(line))))
            read.append(sum(map(len, hits)) // _CHARS_PER_TOKEN)
    return RecoveryRecord(
        live=asked.live,
        lost=len(asked.lost),
        searched=by_index,
        plain=by_text,
        tokens=round(fmean(read)) if read else 0,
        **_found(asked.lost, seen.compression.recalled),
    )


def _own_words(records: Sequence[RecoveryRecord]) -> str:
    """Tell of the agent's own search; nothing where none was asked."""
    asked = [record for record in records if record.own is not None]
    lost = sum(record.lost for record in asked)
    if not lost:
        return ""
    share, read = sum(record.own or 0 for record in asked) / lost, sum(record.own_tokens for record in asked)
    problem = next((f" ({record.own_problem})" for record in asked if record.own_problem), "")
    return f"; {percent(share)} by its own search, {tokens(read / len(asked))} tokens a question{problem}"


def _words(records: Sequence[RecoveryRecord]) -> str:
    lost = sum(record.lost for record in records)
    searched, plain = (sum(getattr(record, name) for record in records) / lost for name in ("searched", "plain"))
    read = sum(record.tokens * record.lost for record in records) / lost
    simple = f"{percent(searched)} by an index, {percent(plain)} by plain text; {tokens(read)} tokens a question"
    return simple + _own_words(records)


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
