"""Trying again: what passes by itself is waited for, within bounds; everything else is said at once."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TypeVar

from bot.api_error import Unavailable, rate_limit_wait, refusal

__all__ = ["Patience", "patiently"]

T = TypeVar("T")

_log = logging.getLogger(__name__)
_OUTAGE = frozenset({500, 502, 503, 504})


@dataclass(frozen=True)
class Patience:
    """How long to keep trying."""

    attempts: int = 5
    timeout: int = 30
    """Seconds for one answer."""
    longest_wait: float = 300.0
    """Seconds of waiting in all for one request, whatever GitHub asks for."""
    first_wait: float = 1.0
    secondary_wait: float = 60.0
    """Seconds after a secondary rate limit that names no time."""
    sleep: Callable[[float], None] = field(default=time.sleep, repr=False)
    clock: Callable[[], float] = field(default=time.time, repr=False)


def patiently(once: Callable[[], T], what: str, *, repeatable: bool, patience: Patience) -> T:
    """Call until there is an answer; a call that is not repeatable is repeated only if it was surely not heard."""
    import requests
    from github import GithubException

    waited = 0.0
    for attempt in range(1, patience.attempts + 1):
        pause = patience.first_wait * 2 ** (attempt - 1)
        maybe_done = not repeatable
        try:
            return once()
        except GithubException as exc:
            headers = exc.headers or {}
            limit = rate_limit_wait(
                exc.status, headers, exc.data, now=patience.clock(), secondary=patience.secondary_wait
            )
            if limit is not None:
                # GitHub turned the request away unread.
                pause, maybe_done = max(limit, pause), False
                trouble = f"its rate limit is used up for {limit:.0f} s"
            elif exc.status in _OUTAGE:
                trouble = f"it answers {exc.status}"
            else:
                raise refusal(what, exc.status, exc.data) from None
        except requests.exceptions.ConnectTimeout:
            trouble, maybe_done = "it cannot be reached", False
        except requests.exceptions.Timeout:
            trouble = f"no answer within {patience.timeout} s"
        except (requests.exceptions.ConnectionError, requests.exceptions.ChunkedEncodingError):
            trouble = "the connection broke"
        except (ValueError, RuntimeError) as exc:
            # Half an answer, or a redirect that PyGithub does not follow.
            trouble = f"its answer makes no sense ({type(exc).__name__})"
        if maybe_done:
            raise Unavailable(f"{what}: GitHub failed ({trouble}); run this again later", maybe_done=True)
        if attempt == patience.attempts or waited + pause > patience.longest_wait:
            until = datetime.fromtimestamp(patience.clock() + pause, UTC)
            raise Unavailable(
                f"{what}: GitHub failed ({trouble}) after {attempt} attempts; run this again after {until:%H:%M} UTC",
                maybe_done=False,
            )
        _log.info("%s: %s; trying again in %.0f s", what, trouble, pause)
        patience.sleep(pause)
        waited += pause
    raise AssertionError("unreachable: the last attempt returns or raises")
