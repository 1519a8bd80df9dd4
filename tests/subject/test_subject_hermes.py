"""The shipped Hermes spec drives a stand-in with Hermes' manners, in the sandbox."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from eval_core.domain.call import Failed
from eval_core.domain.compression import Outcome
from eval_core.domain.target import TargetSpec, read_target

TARGETS = Path(__file__).parents[2] / "docs" / "targets"
STANDIN = Path(__file__).parent / "hermes_standin"


@pytest.fixture
def spec() -> TargetSpec:
    read = read_target(TARGETS / "hermes.yml")
    assert isinstance(read, TargetSpec)
    return read.model_copy(update={"python": sys.executable})


@pytest.fixture
def hermes(run):
    return lambda *args, **options: run(*args, tree=STANDIN, base=TARGETS, **options)


def with_init(spec: TargetSpec, **changes: object) -> TargetSpec:
    return spec.model_copy(update={"init": {**spec.init, **changes}})


def test_an_honest_run_is_ok_and_asks_the_run_s_model_once(hermes, spec, model):
    served = model()
    done = hermes(spec, served, focus_topic="the deploy")
    assert done.outcome is Outcome.OK
    assert len(served.calls) == 1
    assert "focus on the deploy" in served.calls[0].messages[0]["content"]
    assert any("the summary" in message["content"] for message in done.state)
    assert done.notes == ("left out, since the signature lacks them: abort_on_summary_failure",)


def test_a_provider_that_is_not_custom_is_seen_through_though_the_result_looks_fine(hermes, spec, model):
    silent = model()
    done = hermes(with_init(spec, provider="openai"), silent)
    assert (done.outcome, silent.calls) == (Outcome.NOT_EXERCISED, [])


def test_an_outage_is_not_blamed_on_the_compressor_though_it_says_that_it_fell_back(hermes, spec, model):
    assert hermes(spec, model(*[Failed("server", True, "")] * 9)).outcome is Outcome.INFRA


@pytest.mark.parametrize("kind", ["empty", "refusal"])
def test_an_empty_answer_is_seen_though_the_compressor_sets_no_flag(hermes, spec, model, kind):
    assert hermes(spec, model(*[Failed(kind, True, "")] * 9)).outcome is Outcome.BAD_COMPLETION


def test_a_prompt_too_long_for_the_model_is_the_compressor_s_own_and_names_the_step(hermes, spec, model, chained):
    tries = model("fine", Failed("context_length", False, ""))
    done = hermes(with_init(spec, protect_first_n=1), tries, fixture=chained)
    assert (done.outcome, len(tries.calls)) == (Outcome.TARGET_ERROR, 2)
    assert done.detail.startswith("step 2 of 3: its last model request was longer")


def test_each_retry_gets_a_fresh_instance_so_a_cool_down_cannot_skip_the_model(hermes, spec, model):
    tries = model(Failed("server", True, ""))
    done = hermes(spec.model_copy(update={"call": {"force": False}}), tries)
    assert (done.outcome, len(tries.calls)) == (Outcome.OK, 2)


def test_an_unknown_keyword_is_told_with_the_signature(hermes, spec, model):
    done = hermes(with_init(spec, config_context_lenght=5), model())
    assert done.outcome is Outcome.SETUP_ERROR
    assert "did you mean 'config_context_length'" in done.detail
    assert "threshold_percent: 'float' = 0.5" in done.detail


def test_a_list_too_short_to_compress_comes_back_and_is_no_success(hermes, spec, model):
    done = hermes(with_init(spec, protect_first_n=20).model_copy(update={"llm": "none"}), model())
    assert done.outcome is Outcome.NOT_COMPRESSED


def test_probing_for_the_context_length_makes_no_chat_calls(hermes, spec, model):
    served = model()
    done = hermes(with_init(spec, config_context_length=None), served)
    assert (done.outcome, done.use.calls) == (Outcome.OK, 1)
