"""What a result did not look at: what its suite and models leave out, and what the changed files are about of it."""

from __future__ import annotations

from eval_core.comparing.compare import ReportData
from eval_core.domain.extra import Unexercised
from eval_core.domain.measurement import Measurement

WORDS: dict[Unexercised, str] = {
    "focus": "a focus topic (no fixture names one)",
    "model": "what a model makes of the prompt (none was called)",
    "trigger": "when your agent compresses (`should_compress` is never asked)",
    "chain": "several compressions in a row (no fixture has segments)",
    "judge": "whether a summary can be used (no judge)",
}


def _told_when(measurement: Measurement) -> bool:
    """Tell whether the compressor was asked when it sets in."""
    rounds = measurement.extra.rounds
    asked = any("sets_in" in run.strands for runs in measurement.fixtures.values() for run in runs)
    return asked or (rounds is not None and bool(rounds.triggered))


def not_looked_at(data: ReportData) -> tuple[Unexercised, ...]:
    """Return what was not exercised, as far as the suite is at hand."""
    measurement, fixtures = data.candidate, [case.fixture for case in data.cases.values()]
    focused = measurement.fingerprint.focus_topic is not None or any(fixture.focus_topic for fixture in fixtures)
    missing: dict[Unexercised, bool] = {
        "focus": bool(fixtures) and not focused,
        "model": not measurement.model_wrote,
        "trigger": not _told_when(measurement),
        "chain": bool(fixtures) and not any(fixture.segments for fixture in fixtures),
        "judge": not measurement.judged,
    }
    return tuple(name for name in WORDS if missing[name])


def touched_unseen(data: ReportData) -> str:
    """Say what of it the changed files are about, in one line; empty where they are not, or nobody could tell."""
    unseen = not_looked_at(data)
    touched = [WORDS[name] for name in data.candidate.extra.touched if name in unseen]
    return f"Not looked at, and the changed files are about it: {'; '.join(touched)}." if touched else ""
