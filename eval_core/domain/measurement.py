"""A measurement: everything two runs are compared by, whether stored as a result or as a baseline."""

from __future__ import annotations

from collections.abc import Callable
from statistics import fmean
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from eval_core.domain.compression import ModelUse
from eval_core.domain.extra import Extra
from eval_core.domain.fingerprint import Difference, Fingerprint, differences, narrowed
from eval_core.domain.record import CensusEntry, FrontierPoint, Record, RunRecord

SCHEMA_VERSION = 1


class Provenance(Record):
    """Where a measurement came from: what is being compared, not what makes it comparable."""

    target: str
    source_sha: str | None = None
    dirty: bool = False
    date: str = ""
    version: str = ""
    seed: int = 0
    sandbox: str = "none needed"
    environment: dict[str, str] = {}
    """What it ran on: Python, the system, and the compressor's packages with their versions."""
    watched: str | None = None
    """Digest of the watched files that were measured; None where none is configured."""


class ProbeControl(Record):
    """How a probe fares on the full transcript and on nothing: a probe must separate the two."""

    ceiling: float | None
    floor: float | None
    ceiling_facts: float
    floor_facts: float
    quarantined: str | None = None


class ObeyControl(Record):
    """How a choice or an action comes out on the full transcript, on nothing, and on a state with the rule restated."""

    asked: str
    """What identifies the probe and how it was asked."""
    ceiling: bool | None = None
    floor: bool | None = None
    """On nothing; of choices in every one of several orders, since one of them is right by luck."""
    restated: bool | None = None

    @property
    def left_out(self) -> str | None:
        """Why it measures nothing, if so."""
        if self.ceiling is False:
            return "not even the full transcript brings it about"
        return "done without any context" if self.floor else None

    @property
    def whole(self) -> bool:
        """Whether nothing is missing."""
        return None not in (self.ceiling, self.floor, self.restated)


class Controls(Record):
    """The controls of one fixture."""

    probes: dict[str, ProbeControl]
    obeys: dict[str, dict[str, ObeyControl]] = {}
    """Of choices and actions: model to probe to control."""


class Measurement(BaseModel):
    """All fixture-runs of one target under one fingerprint."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    schema_version: int = SCHEMA_VERSION
    label: str
    offline: bool
    deterministic: bool | None = None
    """Whether the compressor must come out the same in every run; null where that is not known."""
    fingerprint: Fingerprint
    provenance: Provenance
    models: dict[str, str]
    """Role to model, for people; the fingerprint holds the details."""
    planned_runs: Annotated[int, Field(ge=0)]
    planned_compress_runs: Annotated[int, Field(ge=1)]
    fixtures: dict[str, list[RunRecord]]
    probe_types: dict[str, dict[str, str]] = {}
    drafts: dict[str, int] = {}
    """How many of a fixture's probes nobody has read yet, where there are any."""
    controls: dict[str, Controls] = {}
    census: dict[str, list[CensusEntry]] = {}
    """The census facts of each fixture, in the order in which the runs tell their fates."""
    frontier: dict[str, list[FrontierPoint]] = {}
    """Plain ways to make each session small, to see what a compressor's size buys."""
    use: dict[str, ModelUse] = {}
    stopped: str | None = None
    """Why the run ended before its plan, if it did."""
    extra: Extra = Extra()

    def noting(self, **notes: object) -> Measurement:
        """Return the same measurement with these fields of its `extra`."""
        return self.model_copy(update={"extra": self.extra.model_copy(update=notes)})

    @property
    def facts_kept(self) -> float | None:
        """The share of all facts kept, which every report calls by this name; None where no run recorded it.

        Facts that probes ask for and facts found by rules are counted together, each once; fixtures weigh the same.
        """
        return self.share_kept("kept")

    def share_kept(self, how: Literal["kept", "recency", "proportional"]) -> float | None:
        """Return that share, or what a plain way to be as small would keep; None where no run recorded it."""
        return self._mean(lambda run: getattr(run.size, how) / run.size.facts if run.size and run.size.facts else None)

    @property
    def spent(self) -> ModelUse:
        """What models took, all roles together."""
        return sum(self.use.values(), ModelUse())

    @property
    def tokens_kept(self) -> float | None:
        """The tokens of a state; None where none was made."""
        return self._mean(lambda run: run.tokens_after)

    def _mean(self, of: Callable[[RunRecord], float | None]) -> float | None:
        """Return the mean over finished runs; fixtures weigh the same."""
        sides = [
            [found for run in runs if run.ok and (found := of(run)) is not None] for runs in self.fixtures.values()
        ]
        means = [fmean(found) for found in sides if found]
        return fmean(means) if means else None

    @property
    def judged(self) -> bool:
        """Whether a model graded; where facts did, the grades are advice."""
        return not self.models.get("judge", "").startswith("offline:")

    @property
    def model_wrote(self) -> bool:
        """Whether a model wrote the summaries: one was there, and not every run is known to have called none."""
        offline = self.models.get("compressor", "offline:").startswith("offline:")
        uses = (run.use.get("compressor") for runs in self.fixtures.values() for run in runs)
        return not offline and any(use is None or use.calls > 0 for use in uses)

    @property
    def stood_in(self) -> bool:
        """Whether the compressor asked a model and the offline stand-in answered."""
        offline = self.models.get("compressor", "offline:").startswith("offline:")
        uses = (run.use.get("compressor") for runs in self.fixtures.values() for run in runs)
        return offline and any(use is not None and use.calls > 0 for use in uses)

    @property
    def usual_name(self) -> str:
        """The file that a baseline of this kind is stored in, unless another is named."""
        return "offline" if self.offline else "models" if self.judged else "offline-judge"


def _without_unasked(base: Measurement, candidate: Measurement) -> Measurement:
    """Leave out private probes that the candidate was not asked: they rotate, and not everybody has their key."""
    if not base.fingerprint.private:
        return base
    asked = candidate.probe_types
    fixtures = {
        name: [
            run.model_copy(update={"probes": {key: item for key, item in run.probes.items() if key in asked[name]}})
            for run in runs
        ]
        if name in asked
        else runs
        for name, runs in base.fixtures.items()
    }
    types = {
        name: {key: item for key, item in known.items() if key in asked[name]} if name in asked else known
        for name, known in base.probe_types.items()
    }
    private = base.fingerprint.private if candidate.fingerprint.private else {}
    fingerprint = base.fingerprint.model_copy(update={"private": private})
    return base.model_copy(update={"fingerprint": fingerprint, "fixtures": fixtures, "probe_types": types})


def comparable_part(base: Measurement, candidate: Measurement) -> tuple[Measurement, list[Difference]]:
    """Cut the base down to the candidate's fixtures, if it has them all, and list what still differs."""
    names = set(candidate.fingerprint.fixtures)
    part = narrowed(base.fingerprint, names)
    if part is not base.fingerprint:
        kept = {name: runs for name, runs in base.fixtures.items() if name in names}
        base = base.model_copy(update={"fingerprint": part, "fixtures": kept})
    base = _without_unasked(base, candidate)
    return base, differences(base.fingerprint, candidate.fingerprint) + _unasked(base, candidate)


def _unasked(base: Measurement, candidate: Measurement) -> list[Difference]:
    """Name the fixtures whose private probes the candidate was asked and the base was not."""
    found = []
    for name, digest in candidate.fingerprint.private.items():
        theirs, ours = set(base.probe_types.get(name, {})), set(candidate.probe_types.get(name, {}))
        if base.fingerprint.private.get(name) == digest and ours - theirs:
            found.append(Difference(f"private probes of {name}", "not all asked", f"{len(ours - theirs)} more asked"))
    return found
