from __future__ import annotations

from datetime import UTC, datetime

import pytest

from eval_core.models.limiter import RateWindow, rate_window, retry_after

NOW = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "12"}, 12.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"llm_provider-retry-after": "3"}, 3.0),
        ({"Retry-After": "Sun, 01 Mar 2026 12:00:30 GMT"}, 30.0),
        ({"Retry-After": "Sun, 01 Mar 2026 11:00:00 GMT"}, 0.0),
        ({"Retry-After": "soon"}, None),
        ({"Retry-After": "-4"}, None),
        ({"Retry-After": "inf"}, None),
        ({}, None),
    ],
)
def test_the_wish_to_wait_is_read_in_every_spelling(headers: dict[str, object], seconds: float | None) -> None:
    assert retry_after(headers, NOW) == seconds


@pytest.mark.parametrize(
    ("headers", "window"),
    [
        ({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "6m0s"}, RateWindow(0, None, 360.0)),
        ({"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "250ms"}, RateWindow(None, 0, 0.25)),
        ({"x-ratelimit-remaining-requests": "3", "x-ratelimit-reset-requests": "1s"}, RateWindow(3, None, None)),
        (
            {
                "anthropic-ratelimit-requests-remaining": "0",
                "anthropic-ratelimit-requests-reset": "2026-03-01T12:01:00Z",
            },
            RateWindow(0, None, 60.0),
        ),
        ({"x-ratelimit-remaining-requests": "many"}, RateWindow()),
    ],
)
def test_what_is_left_of_the_window_is_read(headers: dict[str, object], window: RateWindow) -> None:
    assert rate_window(headers, NOW) == window
    assert window.spent == (0 in (window.remaining_requests, window.remaining_tokens))
