"""The scheduled jobs that a session created, as they stand at its end."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from eval_core.probe.traffic import Exchange, refused

__all__ = ["Job", "jobs"]

_SCHEDULES = ("schedule", "cron", "cron_expression", "crontab")
_NAMES = ("name", "title", "job_name", "label")
_IDS = ("job_id", "task_id", "schedule_id", "id")
_ENDS = re.compile(r"delete|remove|cancel", re.I)


@dataclass
class Job:
    """One job with its present name and schedule, and the schedules it had before."""

    identifier: str
    name: str
    schedule: str
    former: list[str] = field(default_factory=list)


def _first(mapping: Mapping[str, Any], fields: Iterable[str]) -> str | None:
    return next((value for name in fields if isinstance(value := mapping.get(name), str) and value.strip()), None)


def jobs(traffic: Iterable[Exchange]) -> list[Job]:
    """Return the jobs that were created and not removed, later changes applied."""
    known: dict[str, Job] = {}
    for exchange in traffic:
        if refused(exchange):
            continue
        asked = exchange.arguments
        schedule, name = _first(asked, _SCHEDULES), _first(asked, _NAMES)
        wanted = _first(asked, _IDS)
        if wanted in known:
            job = known[wanted]
            if _ENDS.search(f"{exchange.name} {asked.get('action', '')}"):
                del known[wanted]
                continue
            job.name = name or job.name
            if schedule and schedule != job.schedule:
                job.former.append(job.schedule)
                job.schedule = schedule
        elif schedule and name:
            inner = exchange.reply.get("job")
            identifier = _first(inner if isinstance(inner, dict) else exchange.reply, _IDS)
            if identifier:
                known[identifier] = Job(identifier, name, schedule)
    return list(known.values())
