"""Children for real: every shape a compressor can have, and what becomes of it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from eval_core.base.errors import UserError
from eval_core.domain.call import Draw, Failed
from eval_core.domain.compression import Outcome
from eval_core.sandbox.gateway import GatewayLimits
from eval_core.sandbox.isolation import SandboxChoice, detect

SERVER = Failed("server", True, "down")


def test_one_instance_serves_all_segments_and_the_next_one_is_appended_to_the_compressed(run, chained):
    done = run({"compressor": "shapes:Plain"}, fixture=chained)
    assert done.outcome is Outcome.OK
    assert [step.messages[0]["content"] for step in done.steps] == [
        "call 1, lengths [5]", "call 2, lengths [5, 5]", "call 3, lengths [5, 5, 5]",
    ]  # fmt: skip
    assert done.steps[1].tokens_before > done.steps[1].tokens_after > 0
    assert done.seconds >= 0  # what it waited for a processor is no part of it


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("nothing", "returned None"),
        ("empty", "returned an empty list"),
        ("text", "returned text (str)"),
        ("generator", "returned a generator"),
        ("mapping", "returned a dict with the keys 'messages'"),
        ("objects", "messages[0] as a object"),
        ("bad_role", "'oracle' is not one of"),
        ("lonely_tool", "answers no tool call"),
        ("unanswered", "is never answered"),
        ("list_as_call_id", "tool_call_id: must be text"),
        ("not_a_number", "JSON cannot express"),
        ("surrogate", "surrogate"),
        ("bottomless", "nested deeper"),
        ("a_set", "JSON cannot express"),
        ("raises", "raised KeyError: 'no such section' (at shapes.py:"),
        ("raises_in_a_library", "raised JSONDecodeError: Expecting value: line 1 column 1 (char 0) (at shapes.py:"),
        (
            "needs_a_model",
            "missing 1 required positional argument: 'model'; give what it needs beside the messages under",
        ),
        ("exits", "raised SystemExit: leaving"),
        ("hard_exit", "ended by itself with status 7"),
    ],
)
def test_a_result_that_is_no_message_list_is_told_in_plain_words(run, choice, name, said):
    done = run({"compressor": f"shapes:{name}"})
    assert done.outcome is Outcome.TARGET_ERROR
    assert said in done.detail
    assert "launcher" not in done.detail


def test_returning_the_given_list_is_told_as_such_and_counts_as_not_compressed(run):
    for name, hint in (("identity", True), ("copy", False)):
        done = run({"compressor": f"shapes:{name}"})
        assert done.outcome is Outcome.NOT_COMPRESSED
        assert ("the list it was given" in done.detail) is hint


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"compressor": "shape:Plain"}, "module 'shape' was not found; did you mean 'shapes'?"),
        ({"compressor": "shapes:Plein"}, "has no 'Plein'; did you mean 'Plain'"),
        ({"compressor": "needs_more:X"}, "needs_more imports 'nowhere_to_be_found', which"),
        ({"compressor": "bad_import:X"}, "importing bad_import raised RuntimeError: not today"),
        ({"compressor": "shapes:not_callable"}, "is a int; a class or a function was expected"),
        ({"compressor": "shapes:Keywords", "init": {"model": "m", "sise": 1}},
         "takes no keyword 'sise'; did you mean 'size'? Its signature is (*, model, size=3)"),
        ({"compressor": "shapes:Keywords"},
         "missing 1 required keyword-only argument: 'model'; give what it needs under init, or build it in an adapter"),
        ({"compressor": "nowhere.at_all:X", "pythonpath": ["lib"]},
         "module 'nowhere' was not found. Looked in lib (no such folder)"),
        ({"compressor": "shapes:Keywords", "init": {"model": "m"}, "call": {"forse": 1}},
         "takes no keyword 'forse'; did you mean 'force'?"),
        ({"compressor": "shapes:Plain", "method": "compres"}, "has no method 'compres'; did you mean 'compress'?"),
        ({"compressor": "shapes:empty", "init": {"a": 1}}, "is a function and takes no init (a)"),
    ],
)  # fmt: skip
def test_what_cannot_be_built_says_what_to_change(run, spec, said):
    done = run(spec)
    assert done.outcome is Outcome.SETUP_ERROR
    assert said in done.detail


def test_an_optional_keyword_that_the_signature_lacks_is_dropped_and_told(run):
    spec = {"compressor": "shapes:Keywords", "init": {"model": "m", "new": 1}, "optional_init": ["new"]}
    done = run(spec)
    assert done.outcome is Outcome.OK
    assert done.notes == ("left out, since the signature lacks them: new",)


def test_an_async_compressor_is_awaited(run, model):
    done = run({"compressor": "shapes:Async", "llm": "required"}, model())
    assert done.outcome is Outcome.OK
    assert done.state[0]["content"] == "the summary"
    assert (done.use.calls, done.use.input_tokens) == (1, 100)


def test_an_outage_is_tried_again_and_then_called_infra(run, model):
    up_again, down = model(SERVER, SERVER), model(*[SERVER] * 5)
    spec = {"compressor": "shapes:Async", "llm": "required"}
    assert run(spec, up_again).outcome is Outcome.OK
    done = run(spec, down)
    assert (done.outcome, len(down.calls), done.use.calls) == (Outcome.INFRA, 3, 3)
    assert "tried 3 times because of the provider" in done.notes


def test_a_retry_of_a_bad_completion_is_a_new_call_and_one_of_an_outage_the_same(run, model):
    empty, outage = model(""), model(SERVER)
    spec = {"compressor": "shapes:Async", "llm": "required"}
    assert run(spec, empty).outcome is Outcome.OK
    assert [call.draw for call in empty.calls] == [Draw(3), Draw(3, attempt=1)]
    assert run(spec, outage).outcome is Outcome.OK
    assert [call.draw for call in outage.calls] == [Draw(3), Draw(3)]


def test_what_no_retry_can_mend_is_not_retried(run, model):
    broke = model(*[Failed("budget", False, "")] * 3)
    done = run({"compressor": "shapes:Async", "llm": "required"}, broke)
    assert (done.outcome, len(broke.calls)) == (Outcome.INFRA, 1)
    assert "budget" in done.detail


def test_a_failure_that_the_compressor_itself_got_over_is_no_failure(run, model):
    assert run({"compressor": "shapes:TriesTwice", "llm": "required"}, model(SERVER)).outcome is Outcome.OK


def test_one_failed_part_of_many_is_an_outage_though_the_others_ended_well(run, model):
    done = run({"compressor": "shapes:Wide", "llm": "required"}, model("a", SERVER, "c", together=3), retries=0)
    assert done.outcome is Outcome.INFRA


def test_a_retry_goes_on_after_the_last_good_step_where_the_adapter_can_restore(run, model, chained):
    flaky = model("one", SERVER)
    spec = {"compressor": "shapes:Plain", "adapter": "resume_adapter.py", "llm": "required"}
    done = run(spec, flaky, fixture=chained)
    assert done.outcome is Outcome.OK
    assert done.state[0]["content"] == "call 3, lengths [5, 5, 5]"
    assert len(flaky.calls) == 4  # the first step was not asked for again


def test_a_request_is_kept_with_its_step_its_reply_and_what_else_was_asked_for(run, model, chained):
    spec = {"compressor": "shapes:Plain", "adapter": "resume_adapter.py", "llm": "required"}
    done = run(spec, model("one", SERVER, "two", "three"), fixture=chained)
    assert done.requests is not None
    assert [(request.step, request.reply) for request in done.requests] == [(0, "one"), (1, "two"), (2, "three")]
    limited = run({"compressor": "shapes:Limited", "llm": "required"}, model("short"))
    assert limited.requests is not None
    assert [request.settings for request in limited.requests] == [("max_tokens: 300", "temperature: 0.5")]


def test_a_request_that_is_not_served_is_the_compressor_s_own_fault(run, model):
    done = run({"compressor": "shapes:Images", "llm": "required"}, model())
    assert done.outcome is Outcome.TARGET_ERROR
    assert "'image_url' are not served" in done.detail


def test_the_adapter_s_word_of_a_fallback_is_taken(run, model):
    done = run({"compressor": "shapes:Falls", "adapter": "falls_adapter.py", "llm": "required"}, model())
    assert (done.outcome, done.detail) == (
        Outcome.DEGRADED, "the compressor says that it fell back: summary too short",
    )  # fmt: skip


def test_time_that_runs_out_ends_the_child_and_names_the_limit(run):
    done = run({"compressor": "shapes:sleeps", "timeout_s": 4})
    assert (done.outcome, done.detail) == (Outcome.TARGET_ERROR, "compressing took longer than 4 s")


def test_what_is_printed_is_kept_apart_and_counted(run, capfd):
    done = run({"compressor": "shapes:prints"})
    assert done.outcome is Outcome.OK
    assert done.output == "::set-output name=x::y\nto stderr\n"
    assert done.notes == ("the compressor printed 33 bytes",)
    assert capfd.readouterr() == ("", "")


def test_a_compressor_that_patches_json_and_os_patches_only_its_own(run):
    done = run({"compressor": "shapes:patches_json"})
    assert (done.outcome, done.state) == (Outcome.OK, [{"role": "user", "content": "short"}])


def test_the_gateway_s_caps_reach_the_child(run, model):
    done = run({"compressor": "shapes:Async", "llm": "required"}, model(), limits=GatewayLimits(requests=0))
    assert done.outcome is Outcome.TARGET_ERROR
    assert "0 requests are used up" in done.detail


def test_a_missing_interpreter_and_a_missing_tree_are_the_user_s_to_mend(run, tmp_path):
    with pytest.raises(UserError, match=r"target.python: .*no/python: no such file; create the environment"):
        run({"compressor": "shapes:Plain", "python": "no/python"})
    with pytest.raises(UserError, match="the tree under test is not a folder"):
        run({"compressor": "shapes:Plain"}, tree=tmp_path / "nothing")


def test_an_interpreter_that_cannot_start_the_launcher_is_named_with_what_it_said(run, tmp_path):
    broken = tmp_path / "bin" / "python"
    broken.parent.mkdir()
    broken.write_text("#!/bin/sh\necho no such luck >&2\nexit 4\n")
    broken.chmod(0o755)
    with pytest.raises(UserError, match=r"could not be started in the sandbox.*no such luck"):
        run({"compressor": "shapes:Plain", "python": str(broken)})


def test_without_a_sandbox_the_same_contract_holds_and_a_warning_says_what_is_missing(run, model):
    bare = detect("none")
    assert isinstance(bare, SandboxChoice)
    assert "no sandbox" in bare.warning
    done = run({"compressor": "shapes:Async", "llm": "required"}, model(), sandbox=bare)
    assert done.outcome is Outcome.OK


def test_an_older_python_can_run_the_launcher(run, model):
    found = [
        path
        for minor in (9, 10)
        for path in (
            *Path(sys.base_prefix).parent.glob(f"3.{minor}*/bin/python3.{minor}"),
            Path(f"/usr/bin/python3.{minor}"),
        )
        if os.access(path, os.X_OK)
    ]
    if not found:
        pytest.skip("no Python 3.9 or 3.10 on this machine")
    done = run({"compressor": "shapes:Async", "llm": "required", "python": str(found[0])}, model())
    assert done.outcome is Outcome.OK


def test_an_outage_while_the_compressor_is_built_is_the_providers(run, model):
    spec = {"compressor": "shapes:AsksWhenBuilt", "llm": "required"}
    done = run(spec, model(SERVER, SERVER, SERVER))
    assert (done.outcome, done.notes) == (Outcome.INFRA, ("tried 3 times because of the provider",))
    assert run(spec, model(SERVER)).outcome is Outcome.OK
    assert run(spec, model(Failed("bad_request", False, "no"))).outcome is Outcome.SETUP_ERROR
