from __future__ import annotations

import pytest

from eval_core.models.retry import RetryPolicy

POLICY = RetryPolicy()


def delay(kind: str, failures: int = 1, **kwargs: object) -> float | None:
    values: dict[str, object] = {"elapsed": 0.0, "retry_after": None, "seed": "s", **kwargs}
    return POLICY.delay(kind, failures, **values)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", ["budget", "stopped"])
def test_what_cannot_get_better_is_never_tried_again(kind: str) -> None:
    assert delay(kind) is None
    assert not POLICY.retryable(kind)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", ["auth", "payment", "not_found", "bad_request", "context_length"])
def test_an_error_that_names_a_mistake_is_tried_again_but_is_nobodys_outage(kind: str) -> None:
    assert delay(kind) is not None
    assert not POLICY.retryable(kind)  # type: ignore[arg-type]


def test_a_request_that_is_refused_by_a_model_that_never_answered_is_given_up() -> None:
    assert delay("bad_request", answered=False) is None


def test_delays_grow_and_stay_under_the_longest() -> None:
    delays = [delay("rate_limit", n) for n in range(1, 13)]
    assert all(d is not None for d in delays)
    assert delays[0] <= 1.0 < delays[3] <= 8.0  # type: ignore[operator]
    assert max(d for d in delays if d) <= POLICY.longest_seconds


def test_every_kind_of_failure_is_given_up_in_the_end() -> None:
    for kind, times in POLICY.again.items():
        assert delay(kind, times) is not None
        assert delay(kind, times + 1) is None


def test_the_provider_is_never_asked_again_earlier_than_it_wants() -> None:
    for n in (1, 2, 5):
        wait = delay("rate_limit", n, retry_after=7.0)
        assert wait is not None
        assert 7.0 <= wait <= 8.0


def test_a_wish_beyond_the_deadline_ends_the_call_at_once() -> None:
    assert delay("rate_limit", retry_after=3600.0) is None
    assert delay("server", elapsed=POLICY.deadline_seconds) is None


def test_equal_seeds_wait_equally_and_different_seeds_apart() -> None:
    assert delay("server", seed="a") == delay("server", seed="a")
    assert len({delay("server", seed=str(n)) for n in range(20)}) == 20
