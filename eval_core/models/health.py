"""Model health (a circuit breaker): is a model worth another call? One state per model, fed by every outcome.

A model is healthy, throttled until a moment, or out. It goes out when failures of one kind follow each other with no
good reply in between, so that a provider that hangs, fails, refuses or answers with nothing costs minutes and a few
calls, not hours and all of them. One odd error among good replies changes nothing.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from eval_core.domain.call import Failed, FailureKind
from eval_core.models.faults import Fault
from eval_core.models.settings import GENERAL_KEY

LONGEST_WAIT = 300.0
"""A provider that asks to wait longer than this has closed the door, e.g. because a daily quota is used up."""


@dataclass(frozen=True)
class Breaker:
    """Failures in a row, over at least this many seconds without a good reply, that take a model out."""

    failures: int
    seconds: float = 0.0
    after_answers: int | None = None
    """Failures that it takes where the model has answered before, if that makes a difference."""


_PAID_FOR_NOTHING = Breaker(6)
# Of a key or a name that never worked, three refusals are enough. One that works may meet odd ones: at one call in ten,
# three in a row come up in every fourth run.
_REFUSED_ENTRY = Breaker(3, after_answers=8)
BREAKERS: Mapping[FailureKind, Breaker] = MappingProxyType(
    {
        "timeout": Breaker(5),
        "server": Breaker(8, 60.0),
        "connection": Breaker(8, 60.0),
        "rate_limit": Breaker(8, 150.0),
        "empty": _PAID_FOR_NOTHING,
        "refusal": _PAID_FOR_NOTHING,
        "malformed": _PAID_FOR_NOTHING,
        "truncated": _PAID_FOR_NOTHING,
        "unknown": _PAID_FOR_NOTHING,
        "bad_request": Breaker(8),
        "auth": _REFUSED_ENTRY,
        "payment": _REFUSED_ENTRY,
        "not_found": _REFUSED_ENTRY,
    }
)
_REMEDIES: Mapping[FailureKind, str] = MappingProxyType(
    {
        "timeout": "the provider hangs, or models.time_limit_s is too short for this model",
        "server": "the provider is down; resume later",
        "connection": "check models.api_base and the network",
        "rate_limit": "the rate limit leaves no room; lower concurrency, or resume later",
        "empty": "this model returns empty replies; choose another",
        "refusal": "this model refuses the work; name another",
        "malformed": "this model's replies cannot be read; name another",
        "truncated": "raise the role's max_tokens under models, or lower reasoning_effort",
        "auth": "the provider does not accept the key, or not for this model: correct {key}, or what the key may use",
        "context_length": "the prompt is longer than this model, or the provider's tier, takes; name a model with a "
        "larger window, or leave long sessions out with --fixtures",
        "payment": "the account is out of credit or quota; top it up, or name another model",
        "bad_request": "the provider rejects what is asked of this model: check models.params and the model's name",
        "not_found": "check the model's name as the provider spells it and, with models.api_base, the URL: it usually "
        "ends with /v1",
    }
)


def remedy(kind: FailureKind, key: str) -> str | None:
    """Say what can be done about a model that fails in one way all the time; `key` is the variable with its key."""
    found = _REMEDIES.get(kind)
    return found.format(key=key) if found else None


def _span(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    if seconds < 5_400:
        return f"{seconds / 60:.0f} min"
    if seconds < 2 * 86_400:
        return f"{seconds / 3_600:.1f} h"
    days = seconds / 86_400
    return f"{days:.0f} days" if days < 365 else "more than a year"


@dataclass
class ModelHealth:
    """The state of one model."""

    model: str
    clock: Callable[[], float]
    until: Callable[[], float | None] = lambda: None
    """The moment after which no call starts, if there is one."""
    key: str = GENERAL_KEY
    """The variable that holds its key."""
    out: Failed | None = None
    """Why no more calls are made to it."""
    answered: int = 0
    throttled_until: float | None = None
    gone: asyncio.Event = field(default_factory=asyncio.Event)
    _in_a_row: Counter[FailureKind] = field(default_factory=Counter)
    _too_long: int = 0
    _quiet_since: float | None = None
    _answered_at: float = float("-inf")

    @property
    def state(self) -> str:
        """Name the state: healthy, throttled or out."""
        if self.out is not None:
            return "out"
        throttled = self.throttled_until is not None and self.clock() < self.throttled_until
        return "throttled" if throttled else "healthy"

    @property
    def failing(self) -> bool:
        """Whether it has failed often enough to be out, and only the time for that has not passed yet."""
        return any(self._in_a_row[kind] >= breaker.failures for kind, breaker in BREAKERS.items() if breaker.seconds)

    def succeeded(self) -> None:
        """Forget earlier failures: they were passing ones."""
        self.answered += 1
        self._answered_at = self.clock()
        self._in_a_row.clear()
        self._too_long = 0
        self._quiet_since = self.throttled_until = None

    def failed(self, fault: Fault, seconds: float = 0.0) -> None:
        """Count a failure that took so many seconds, and decide whether the model is out."""
        now = self.clock()
        if fault.kind == "timeout" and self._answered_at > now - seconds / 2:
            return  # others were still answered when this one had hung for long: it is the call, not the model
        if self._quiet_since is None:
            self._quiet_since = now - seconds
        self._in_a_row[fault.kind] += 1
        if fault.retry_after is not None and self.too_long(fault.retry_after):
            self._too_long += 1
            if self._too_long >= self._most(_REFUSED_ENTRY):
                asked = f"the provider asks to wait {_span(fault.retry_after)}, which is longer than this run can"
                self._go(
                    fault.kind, f"{fault.message}; {asked}: a quota is used up; resume then, or name another model"
                )
            return
        if fault.retry_after is not None:
            self.throttled_until = max(self.throttled_until or now, now + fault.retry_after)
        breaker = BREAKERS.get(fault.kind)
        count = self._in_a_row[fault.kind]
        if breaker and count >= self._most(breaker) and now - self._quiet_since >= breaker.seconds:
            advice = remedy(fault.kind, self.key)
            self._go(fault.kind, f"{fault.message} ({count} times in a row)" + (f"; {advice}" if advice else ""))

    def _most(self, breaker: Breaker) -> int:
        return breaker.after_answers if breaker.after_answers and self.answered else breaker.failures

    def too_long(self, wait: float) -> bool:
        """Tell whether a wait is longer than the run can afford."""
        until = self.until()
        return wait > LONGEST_WAIT or (until is not None and self.clock() + wait > until)

    def _go(self, kind: FailureKind, why: str) -> None:
        if self.out is None:
            self.out = Failed(kind, True, f"{self.model}: {why}")
            self.gone.set()
