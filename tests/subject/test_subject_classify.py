from __future__ import annotations

import pytest

from eval_core.domain.call import Completion, Failed, Usage
from eval_core.domain.compression import Outcome
from eval_core.sandbox.classify import CallLog, StepEvidence, classify, last_word, use_of

OK = Completion("text", Usage(5, 0, 2, 0.1), "m", 0.0)
EMPTY = Completion("  \n", Usage(), "m", 0.0)
SERVER = Failed("server", True, "500")
BUDGET = Failed("budget", False, "spent")


def log_of(*results):
    """Return the records of calls made one after another; None leaves one unfinished."""
    log = CallLog()
    for result in results:
        record = log.start()
        if isinstance(result, str):
            log.refuse(record, result)
            continue
        log.forward(record)
        if result is not None:
            log.finish(record, result)
    return log.records


def bounded(result, **own):
    log = CallLog()
    record = log.start()
    log.forward(record)
    for name, value in own.items():
        setattr(record, name, value)
    log.finish(record, result)
    return log.records


def arriving():
    log = CallLog()
    log.start()
    return log.records


def left(*results):
    records = log_of(*results)
    records[-1].left = True
    return records


GOOD = {"needs_model": True, "calls": log_of(OK), "tokens_before": 100, "tokens_after": 20}


@pytest.mark.parametrize(
    ("change", "outcome", "retry"),
    [
        ({}, Outcome.OK, False),
        ({"setup_error": "no module", "calls": log_of(OK), "error": "x"}, Outcome.SETUP_ERROR, False),
        ({"setup_error": "no module", "calls": log_of("no"), "error": "x"}, Outcome.SETUP_ERROR, False),
        ({"setup_error": "raised", "calls": log_of(SERVER)}, Outcome.INFRA, True),
        ({"calls": log_of(OK, SERVER), "error": "raised"}, Outcome.INFRA, True),
        ({"calls": log_of(OK, BUDGET)}, Outcome.INFRA, False),
        ({"calls": log_of(SERVER, OK)}, Outcome.OK, False),
        ({"calls": log_of(None), "error": "took too long", "provider_stalled": True}, Outcome.BAD_COMPLETION, True),
        ({"calls": log_of(None), "error": "ended by itself"}, Outcome.TARGET_ERROR, False),
        ({"calls": log_of(None)}, Outcome.TARGET_ERROR, False),
        ({"calls": arriving()}, Outcome.TARGET_ERROR, False),
        ({"calls": left(OK)}, Outcome.TARGET_ERROR, False),
        ({"calls": left(SERVER)}, Outcome.INFRA, True),
        ({"calls": left(None), "provider_stalled": True}, Outcome.BAD_COMPLETION, True),
        ({"gateway": "the compressor overloaded the gateway"}, Outcome.TARGET_ERROR, False),
        ({"calls": log_of(Failed("bad_request", False, ""))}, Outcome.TARGET_ERROR, False),
        ({"calls": log_of(Failed("malformed", True, ""))}, Outcome.BAD_COMPLETION, True),
        ({"calls": log_of(EMPTY), "error": "raised"}, Outcome.BAD_COMPLETION, True),
        ({"calls": log_of(Failed("truncated", True, ""))}, Outcome.BAD_COMPLETION, True),
        ({"calls": log_of(Failed("refusal", False, ""))}, Outcome.BAD_COMPLETION, True),
        ({"calls": bounded(Failed("truncated", True, ""), own_limit=True)}, Outcome.OK, False),
        ({"calls": bounded(Failed("truncated", True, ""), own_limit=True), "error": "x"}, Outcome.TARGET_ERROR, False),
        ({"calls": bounded(EMPTY, own_stop=True), "error": "x"}, Outcome.TARGET_ERROR, False),
        ({"calls": bounded(Failed("empty", True, ""), own_stop=True)}, Outcome.OK, False),
        ({"calls": bounded(Failed("empty", True, ""), own_limit=True)}, Outcome.BAD_COMPLETION, True),
        ({"calls": log_of(EMPTY, OK)}, Outcome.OK, False),
        ({"error": "raised KeyError"}, Outcome.TARGET_ERROR, False),
        ({"calls": log_of("tools: not served")}, Outcome.TARGET_ERROR, False),
        ({"calls": log_of("tools: not served", OK)}, Outcome.OK, False),
        ({"calls": log_of(Failed("context_length", False, ""))}, Outcome.TARGET_ERROR, False),
        ({"calls": (), "degraded": True}, Outcome.NOT_EXERCISED, False),
        ({"calls": (), "needs_model": False}, Outcome.OK, False),
        ({"degraded": True, "tokens_after": 100}, Outcome.DEGRADED, False),
        ({"tokens_after": 91}, Outcome.NOT_COMPRESSED, False),
        ({"tokens_after": 20_200}, Outcome.NOT_COMPRESSED, False),
        ({"tokens_after": 20_201}, Outcome.TARGET_ERROR, False),
        ({"tokens_after": 90}, Outcome.OK, False),
    ],
)
def test_the_first_reason_in_order_names_the_outcome(change, outcome, retry):
    verdict = classify(StepEvidence(**{**GOOD, **change}))
    assert (verdict.outcome, verdict.retry) == (outcome, retry)
    assert bool(verdict.detail) == (outcome is not Outcome.OK)


@pytest.mark.parametrize("call", [EMPTY, *(Failed(kind, True, "") for kind in ("malformed", "truncated", "refusal"))])
def test_a_reply_of_no_use_is_asked_for_anew_and_not_replayed(call):
    assert classify(StepEvidence(**{**GOOD, "calls": log_of(call)})).redraw


def test_a_call_without_a_reply_has_nothing_to_replay():
    unanswered = StepEvidence(**{**GOOD, "calls": log_of(None), "provider_stalled": True})
    assert not classify(unanswered).redraw
    assert not classify(StepEvidence(**{**GOOD, "calls": log_of(SERVER)})).redraw


def test_a_failed_part_is_not_hidden_by_neighbours_that_ended_well():
    log = CallLog()
    first, second, third = log.start(), log.start(), log.start()
    log.finish(first, OK)
    log.finish(second, SERVER)
    log.finish(third, OK)
    assert [call.status for call in last_word(log.records)] == ["ok", "failed", "ok"]
    assert classify(StepEvidence(**{**GOOD, "calls": log.records})).outcome is Outcome.INFRA


def test_an_unknown_price_makes_the_sum_unknown_not_zero():
    unpriced = Completion("x", Usage(1, 0, 1, None), "m", 0.0)
    assert use_of(log_of(OK, OK)).cost_usd == pytest.approx(0.2)
    assert use_of(log_of(OK, unpriced)).cost_usd is None
    assert use_of(log_of(OK, "refused")).calls == 1
