"""The ledger of a session: what it has established (rules, items of work, values), line by line, and until when."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from eval_core.base.files import digest, parse, pretty, read_json
from eval_core.base.strict_json import without_surrogates
from eval_core.domain.probe import Fact, FactKind

LineKind = Literal[
    "rule", "item", "approval", "request", "decision", "value", "error", "path", "identifier", "host", "hash",
    "pull_request",
]  # fmt: skip
Status = Literal["open", "done", "failed", "blocked", "abandoned", "asked", "given", "refused"]
_APPROVAL = ("asked", "given", "refused")
_FACT_KINDS: dict[str, FactKind] = {
    "error": "error", "path": "path", "identifier": "identifier", "host": "host", "hash": "hash", "pull_request": "pr",
}  # fmt: skip


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


class StatusAt(_Strict):
    """What an item of work or an approval is from one message on."""

    at: Annotated[int, Field(ge=0, description="Index of the message that says so.")]
    is_: Annotated[Status, Field(alias="is", description="Items: open to abandoned. Approvals: asked to refused.")]
    reason: Annotated[str | None, Field(description="Why, where the session says it.")] = None


class LedgerLine(_Strict):
    """One thing that the session has established."""

    id: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._-]{0,79}$")]
    kind: LineKind
    anchors: Annotated[
        list[Annotated[str, Field(min_length=2)]],
        Field(min_length=1, description="The line's own strings: a text that holds all of them speaks of it."),
    ]
    text: Annotated[str, Field(min_length=3, description="The line in plain words; it holds the anchors.")]
    speaker: Literal["user", "project_file", "assistant", "tool"]
    said: Annotated[
        list[Annotated[int, Field(ge=0)]],
        Field(min_length=1, description="Messages that say it, in order; the first is where it began."),
    ]
    polarity: Annotated[Literal["do", "do_not"] | None, Field(description="Rules only.")] = None
    strength: Annotated[Literal["must", "should", "may"] | None, Field(description="Rules only.")] = None
    status: Annotated[list[StatusAt], Field(description="Items and approvals only, in order.")] = []
    superseded_at: Annotated[int | None, Field(ge=0, description="From this message on it no longer holds.")] = None
    superseded_by: Annotated[str | None, Field(description="The line that holds instead.")] = None
    until: Annotated[str | None, Field(description="Where a rule ends, if it says so.")] = None
    after: Annotated[list[str], Field(description="Lines of steps that come before this one.")] = []
    topic: Annotated[str, Field(description="What a person would ask for.")] = ""
    needed: Annotated[list[Annotated[int, Field(ge=0)]], Field(description="Messages that came back to it.")] = []
    draft: Annotated[bool, Field(description="Proposed by a machine; lint refuses it until a person removes this.")] = (
        False
    )

    @model_validator(mode="after")
    def _whole(self) -> LedgerLine:
        if problems := list(self._problems()):
            raise ValueError("\n".join(problems))
        return self

    def _problems(self) -> Iterator[str]:
        is_rule = self.kind == "rule"
        for name, value in (("polarity", self.polarity), ("strength", self.strength)):
            if is_rule != (value is not None):
                yield f"{name}: {'a rule needs it' if is_rule else f'only rules have it, this is: {self.kind}'}"
        if bool(self.status) != (self.kind in ("item", "approval")):
            yield "status: items and approvals have one or more, other lines none"
        for number, entry in enumerate(self.status):
            if (entry.is_ in _APPROVAL) != (self.kind == "approval"):
                wanted = (
                    "asked, given or refused" if self.kind == "approval" else "open, done, failed, blocked, abandoned"
                )
                yield f"status[{number}].is: {entry.is_!r} is not for a line of kind {self.kind}; use {wanted}"
        for name, places in (("said", self.said), ("status", [entry.at for entry in self.status])):
            if places != sorted(set(places)):
                yield f"{name}: {places} is not in order; each message once, the earliest first"
        if self.superseded_by is not None and self.superseded_at is None:
            yield "superseded_at: missing; give the message from which the other line holds"
        if self.superseded_at is not None and self.superseded_at <= self.said[0]:
            yield f"superseded_at: {self.superseded_at} is not after {self.said[0]}, where the line is first said"

    @property
    def places(self) -> list[tuple[str, int]]:
        """Every message that it names, with the field that names it."""
        ended = [] if self.superseded_at is None else [("superseded_at", self.superseded_at)]
        stated = [("said", index) for index in self.said] + [("needed", index) for index in self.needed]
        return [*stated, *(("status", entry.at) for entry in self.status), *ended]

    @property
    def fact(self) -> Fact:
        """The anchors as a fact, so that they are matched as facts are."""
        return Fact(all=self.anchors, kind=_FACT_KINDS.get(self.kind))

    def live(self, end: int) -> bool:
        """Tell whether it is said before a message and still holds there."""
        return self.said[0] < end and (self.superseded_at is None or self.superseded_at >= end)

    def status_at(self, end: int) -> str | None:
        """Return its status before a message, if it has one by then."""
        return next((entry.is_ for entry in reversed(self.status) if entry.at < end), None)


class SessionLedger(_Strict):
    """All lines of one fixture, as stored in `probes/<fixture>.ledger.json`."""

    json_schema: Annotated[str | None, Field(alias="$schema", exclude=True)] = None
    fixture: str
    language: Annotated[str | None, Field(description="The conversation's language by its English name.")] = None
    lines: Annotated[list[LedgerLine], Field(min_length=1)]

    @model_validator(mode="after")
    def _linked(self) -> SessionLedger:
        if problems := list(self._problems()):
            raise ValueError("\n".join(problems))
        return self

    def _problems(self) -> Iterator[str]:
        first: dict[str, int] = {}
        for number, line in enumerate(self.lines):
            if line.id in first:
                yield f"lines[{number}].id: {line.id!r} is used twice; ids are unique in a ledger"
            first[line.id] = line.said[0]
        for number, line in enumerate(self.lines):
            others = [("superseded_by", line.superseded_by), *(("after", other) for other in line.after)]
            for name, other in others:
                if other is not None and (other not in first or other == line.id):
                    yield f"lines[{number}].{name}: {other!r} is no other line of this ledger; use the id of one"

    @property
    def texts(self) -> dict[str, str]:
        """Each line's words, by its id."""
        return {line.id: line.text for line in self.lines}

    @property
    def digest(self) -> str:
        """The sha256 that identifies the ledger's content."""
        return digest(self.model_dump(mode="json", by_alias=True, exclude_none=True))


def load_ledger(path: Path) -> SessionLedger:
    """Read and check one ledger; halves of characters are replaced as they are in the session."""
    return parse(SessionLedger, without_surrogates(read_json(path)), str(path))


def dump_ledger(ledger: SessionLedger) -> str:
    """Return the file text of a ledger, without what is empty; a reference to its schema is kept."""
    body = ledger.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    return pretty({"$schema": ledger.json_schema, **body} if ledger.json_schema else body)
