"""Attacks on the gateway from inside: they meet its own process, and they are the compressor's failure by name."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from eval_core.domain.compression import Outcome
from eval_core.sandbox.gateway import GatewayLimits, _kill

ROOT = Path(__file__).parents[2]

# An evaluator with few descriptors; says its outcome and by how much its memory grew.
EVALUATOR = """
import asyncio, json, resource, sys
from pathlib import Path
from eval_core.domain.fixture import Fixture
from eval_core.domain.call import Completion, Usage
from eval_core.sandbox.isolation import detect
from eval_core.domain.target import target_from
from eval_core.sandbox.subject import ProcessSubject

async def complete(call):
    return Completion("fine", Usage(1, 0, 1, 0.0), "m", 0.0)

def peak():
    return int(next(line for line in open("/proc/self/status") if line.startswith("VmHWM")).split()[1]) // 1024

tree, python = Path(sys.argv[1]), sys.argv[2]
spec = target_from({"python": python, "timeout_s": 60, **json.loads(sys.argv[3])}, "x")
subject = ProcessSubject(spec, tree, detect("auto"), "m", complete, lambda messages: len(str(messages)))
session = Fixture(name="s", messages=[{"role": "user", "content": "words " * 50}] * 4)
resource.setrlimit(resource.RLIMIT_NOFILE, (128, 128))
before = peak()
done = asyncio.run(subject.compress(session, run=0, seed=0))
print(json.dumps({"outcome": done.outcome, "detail": done.detail, "notes": done.notes, "grown": peak() - before}))
"""


def evaluator(tree, python, **spec):
    ran = subprocess.run(
        [sys.executable, "-c", EVALUATOR, str(tree), str(python), json.dumps(spec)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])},
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    return json.loads(ran.stdout)


@pytest.mark.parametrize(
    ("compressor", "call", "said"),
    [
        ("bombs:unfinished_bodies", {"count": 120}, "the compressor overloaded the gateway: more than 64 connections"),
        ("bombs:flood_of_connections", {"processes": 20, "each": 100}, "more than 64 connections at once"),
        ("bombs:endless_connections", {}, "more than 2,000 connections and requests in one run"),
    ],
)
def test_a_flood_takes_nothing_of_the_evaluator_and_is_the_compressor_s_own_failure(
    sandbox, tree, python, compressor, call, said
):
    report = evaluator(tree, python, compressor=compressor, call=call)
    assert report["outcome"] == "target_error"
    assert said in report["detail"]
    assert report["notes"] == []  # it was not tried again
    assert report["grown"] < 64  # MiB; the bodies alone are 840


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("one_unfinished_body", "its last model request was never complete"),
        ("huge_number", "a number has 401 digits"),
        ("hangs_up", "it closed the connection before its last model call was answered"),
        ("dies_in_a_call", "it closed the connection before its last model call was answered"),
    ],
)
def test_what_the_compressor_sent_wrong_or_never_finished_is_not_the_provider_s_fault(attack, name, said):
    done = attack(f"bombs:{name}", llm="required", model_seconds=1.0)
    assert (done.outcome, done.notes) == (Outcome.TARGET_ERROR, ())
    assert said in done.detail


def test_a_request_that_drips_in_is_cut_off(attack):
    done = attack("bombs:one_unfinished_body", llm="required", limits=GatewayLimits(request_seconds=0.1))
    assert (done.outcome, done.detail) == (
        Outcome.TARGET_ERROR, "its last model request was turned away: the request was not complete after 0.1 s",
    )  # fmt: skip


def test_bytes_that_are_no_request_are_answered_in_one_line_or_not_at_all(attack):
    post = "POST /v1/chat/completions HTTP/1.1\r\nAuthorization: Bearer TOKEN\r\n"
    requests = {
        "nonsense\r\n\r\n": "400",
        "GET / HTTP/1.1\r\n\r\n": "200",
        "GET /v1/models HTTP/1.1\r\n\r\n": "401",
        "GET /v1/files HTTP/1.1\r\nAuthorization: Bearer TOKEN\r\n\r\n": "404",
        "GET /v1/models?" + "a=b&" * 200 + " HTTP/1.1\r\n\r\n": "431",
        "GET /v1/models?key=TOKEN HTTP/1.1\r\n\r\n": "200",
        post + "Content-Length: 5\r\nContent-Length: 6\r\n\r\n{}": "400",
        post + "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}": "400",
        post + "Content-Length: -1\r\n\r\n": "400",
        post + "Content-Length: 99999999999999999999\r\n\r\n": "400",
        post + "Content-Length: 999999999\r\n\r\n": "413",
        post + "Transfer-Encoding: chunked\r\n\r\nzz\r\n": "400",
        post + "Transfer-Encoding: chunked\r\n\r\nffffffff\r\n": "413",
        post + "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n": "400",
        post + "X: " + "x" * 100_000: "431",
        post + "X: y\r\n" * 200 + "\r\n": "431",
        post.replace("/v1/", "/" + "\xff" * 50): "",
    }
    done = attack("bombs:odd_requests", llm="required", call={"requests": list(requests)})
    assert done.outcome is Outcome.OK, done
    *lines, last = json.loads(done.state[0]["content"])
    for line, wanted in zip(lines, requests.values(), strict=True):
        assert wanted in line
    assert last == 200


def test_a_gateway_that_ended_as_it_was_given_up_is_no_fault() -> None:
    async def kill_what_has_ended() -> int:
        process = await asyncio.create_subprocess_exec(sys.executable, "-c", "")
        code = await process.wait()
        _kill(process)
        return code

    assert asyncio.run(kill_what_has_ended()) == 0
