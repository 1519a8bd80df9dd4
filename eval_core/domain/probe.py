"""The probe bank: questions about one fixture and the facts that a good answer holds."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self, get_args

from pydantic import Field, model_validator
from pydantic.json_schema import SkipJsonSchema

from eval_core.base.files import ForeignRecord, digest, parse, pretty, read_json
from eval_core.base.strict_json import without_surrogates
from eval_core.domain.obey_probe import ObeyProbe

ProbeType = Literal["recall", "artifact", "continuation", "decision"]
FactKind = Literal["path", "url", "host", "identifier", "hash", "version", "pr", "number", "error", "cron", "text"]
PROBE_TYPES: tuple[str, ...] = get_args(ProbeType)
FACT_KINDS: tuple[str, ...] = get_args(FactKind)


# What a pattern says to a machine, and its words for people, in the order in which they are replaced.
_READABLE = tuple(
    (re.compile(pattern), words)
    for pattern, words in (
        (r"\(\?[aiLmsux]+\)|\\[bB]|(?<!\\)[\^$](?![^\[]*\])|\(\?(?:[:=!]|<[=!]|P?<\w+>)", ""),
        (r"(?:\\[sSwW]|\[\^?(?:\\.|[^\]\\])+\]|(?<!\\)\.)(?:[*+?]|\{[\d,]*\})\??", " \u2026 "),
        (r"\\d(?:[*+?]|\{[\d,]*\})?\??", "N"),
        (r"\\[sSwW]", " "),
        (r"\[(\w)\w\]", r"\1"),
        (r"(?<=\w)\?|(?<!\\)[()\[\]]|(?<=[\w)])[*+?]", ""),
        (r"(?<!\\)\|", " or "),
        (r"\\(.)", r"\1"),
        (r"(?:\s|\u2026)*\u2026(?:\s|\u2026)*", " \u2026 "),
        (r"\s+", " "),
    )
)


def _readable(pattern: str) -> str:
    """Return the words of a regular expression, or the expression itself where none are left."""
    text = pattern
    for expression, words in _READABLE:
        text = expression.sub(words, text)
    return text.strip(" \u2026") or pattern


class Fact(ForeignRecord):
    """One thing that must (or, with `not`, must no longer) be said. Exactly one form is given."""

    fact: Annotated[str | None, Field(description="The value itself.")] = None
    any: Annotated[list[str] | None, Field(description="Alternatives: one of them suffices.")] = None
    all: Annotated[list[str] | None, Field(description="All of them must be present.")] = None
    regex: Annotated[str | None, Field(description="A pattern, matched case-insensitively.")] = None
    not_: Annotated[
        str | None, Field(alias="not", description="A superseded value: an answer that states it as current is wrong.")
    ] = None
    kind: Annotated[
        FactKind | None, Field(description="How the value is matched; guessed from its form if absent.")
    ] = None
    evidence: Annotated[list[int] | None, Field(description="Indexes of the messages that establish the fact.")] = None

    @model_validator(mode="before")
    @classmethod
    def _plain_text(cls, value: Any) -> Any:
        return {"fact": value} if isinstance(value, str) else value

    @model_validator(mode="after")
    def _one_form(self) -> Fact:
        given = [name for name in ("fact", "any", "all", "regex", "not_") if getattr(self, name) is not None]
        if len(given) != 1:
            raise ValueError("a fact has exactly one of fact, any, all, regex, not")
        if not all(text.strip() for text in self.values):
            raise ValueError("a fact must not be empty")
        if self.regex is not None:
            try:
                re.compile(self.regex)
            except re.error as exc:
                raise ValueError(f"regex {self.regex!r} does not compile: {exc}") from None
        return self

    @property
    def values(self) -> list[str]:
        """The literal values of this fact, in whichever form they are given."""
        for single in (self.fact, self.regex, self.not_):
            if single is not None:
                return [single]
        return self.any or self.all or [""]

    @property
    def superseded(self) -> bool:
        """Whether this names a value that is no longer true."""
        return self.not_ is not None

    @property
    def label(self) -> str:
        """The fact as its author wrote it."""
        joiner = " and " if self.all else " or "
        return ("not " if self.superseded else "") + joiner.join(self.values)

    @property
    def name(self) -> str:
        """How people read it: a regular expression by its words."""
        return self.label if self.regex is None else _readable(self.regex)


class Probe(ForeignRecord):
    """One question to the compressed state."""

    private: ClassVar[bool] = False
    """Whether neither question nor answer may leave the run."""

    id: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._-]{0,79}$")]
    type: ProbeType
    question: Annotated[str, Field(min_length=3)]
    expected_facts: Annotated[list[Fact], Field(min_length=1)]
    kept_verbatim: Annotated[
        str | None,
        Field(description="Why this probe's evidence lies, on purpose, where compressors keep text verbatim."),
    ] = None
    line: Annotated[str | None, Field(description="A line of the ledger whose text a model that grades is shown.")] = (
        None
    )
    established: SkipJsonSchema[str | None] = None
    """That text as the judge reads it, from the ledger when a suite is loaded: part of the bank's digest."""
    draft: Annotated[bool, Field(description="Proposed by a machine; lint refuses it until a person removes this.")] = (
        False
    )

    @property
    def required(self) -> list[Fact]:
        """The facts an answer should state (superseded values left out)."""
        return [fact for fact in self.expected_facts if not fact.superseded]

    @property
    def superseded(self) -> list[Fact]:
        """The values an answer should no longer state."""
        return [fact for fact in self.expected_facts if fact.superseded]


class PrivateProbe(Probe):
    """A probe whose question, facts and answers stay where it is asked; only its id and scores are told."""

    private: ClassVar[bool] = True

    @classmethod
    def of(cls, probe: Probe) -> Self:
        return cls.model_validate(probe.model_dump(mode="json", by_alias=True))


class ProbeBank(ForeignRecord):
    """All probes of one fixture, as stored in `probes/<fixture>.probes.json`."""

    json_schema: Annotated[str | None, Field(alias="$schema", exclude=True)] = None
    fixture: str
    probes: Annotated[list[Probe], Field(min_length=1)]
    obeys: Annotated[
        list[Annotated[ObeyProbe, Field(discriminator="type")]],
        Field(description="Choice and action probes, for models that answer; they need no judge."),
    ] = []

    @model_validator(mode="after")
    def _unique_ids(self) -> ProbeBank:
        seen: set[str] = set()
        problems = []
        for index, probe in enumerate(self.probes):
            if probe.id in seen:
                problems.append(f"probes[{index}].id: {probe.id!r} is used twice; ids are unique in a bank")
            seen.add(probe.id)
            if not probe.required:
                problems.append(
                    f"probes[{index}].expected_facts: only superseded values; add what an answer should state"
                )
        for number, item in enumerate(self.obeys):
            if item.id in seen:
                problems.append(f"obeys[{number}].id: {item.id!r} is used twice; ids are unique in a bank")
            seen.add(item.id)
        if problems:
            raise ValueError("\n".join(problems))
        return self

    @property
    def digest(self) -> str:
        """The sha256 that identifies the bank's content in fingerprints.

        Without choices and actions, each of which is compared only with itself: a new one makes no fact incomparable.
        """
        return digest(self.model_dump(mode="json", by_alias=True, exclude_none=True, exclude={"obeys"}))


def load_bank(path: Path) -> ProbeBank:
    """Read and check one probe bank; halves of characters are replaced as they are in the session."""
    return parse(ProbeBank, without_surrogates(read_json(path)), str(path))


def dump_bank(bank: ProbeBank) -> str:
    """Return the file text of a bank; a reference to its schema, which editors follow, is kept."""
    body = bank.model_dump(mode="json", by_alias=True, exclude_none=True)
    for probe in body["probes"]:
        if not probe["draft"]:
            del probe["draft"]
    if obeys := body.pop("obeys"):
        body["obeys"] = [{name: value for name, value in item.items() if value != []} for item in obeys]
    return pretty({"$schema": bank.json_schema, **body} if bank.json_schema else body)
