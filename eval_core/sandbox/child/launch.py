"""The launcher: look around, take the job, build the compressor, compress step after step."""

from __future__ import annotations

import inspect
import json
import os
import platform
import resource
import sys
from os import _exit
from pathlib import Path
from typing import Any

from .bridge import open_bridge
from .command import Program, serve_lines
from .frames import Channel, FrameTooLarge
from .imports import time_imports
from .python_target import Driver, SetupError, build, describe_error
from .selftest import reachable_canaries

BASE_URL, ROOT_URL = "${LLM_BASE_URL}", "${LLM_ROOT_URL}"


def limit(limits: dict[str, int]) -> None:
    """Lower the resource limits for good; none of them can be raised again without privileges."""
    for name, value in limits.items():
        kind = getattr(resource, f"RLIMIT_{name}")
        hard = resource.getrlimit(kind)[1]
        if hard != resource.RLIM_INFINITY:
            value = min(value, hard)
        # At the soft limit of processor time comes the signal that names it; at the hard one, the end without a word.
        most = value + 1 if name == "CPU" else value
        resource.setrlimit(kind, (value, most if hard == resource.RLIM_INFINITY else min(most, hard)))


def _filled(value: Any, url: str) -> Any:
    """Replace the gateway's address, with and without /v1, which only this side knows."""
    if isinstance(value, str):
        return value.replace(BASE_URL, url).replace(ROOT_URL, url.removesuffix("/v1"))
    if isinstance(value, list):
        return [_filled(inner, url) for inner in value]
    if isinstance(value, dict):
        return {key: _filled(inner, url) for key, inner in value.items()}
    return value


def _prepare(job: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Open the way to the gateway, set the environment, write the home's files, set the search path."""
    url = ""
    if job["gateway"]:
        url = f"http://127.0.0.1:{open_bridge(job['gateway'])}/v1"
        os.environ.update(OPENAI_BASE_URL=url, OPENAI_API_BASE=url, OPENAI_API_KEY=job["token"])
    job = _filled(job, url)
    os.environ.update(job["env"])
    for name, text in job["files"].items():
        path = Path(os.environ["HOME"]) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    os.chdir(job["directory"])
    search = list(job["pythonpath"])
    sys.path[:] = search + [entry for entry in sys.path if entry]
    return job, search


def _shape_problem(result: Any) -> str:
    """Say in the caller's words why a result is no message list, or return nothing."""
    if result is None:
        return "returned None; if it changes the list in place, let an adapter's compress() return the list"
    if inspect.isgenerator(result) or inspect.isasyncgen(result):
        return "returned a generator; an adapter's compress() can collect it into a list"
    if isinstance(result, (str, bytes)):
        return f"returned text ({type(result).__name__}), not a list of messages"
    if isinstance(result, dict):
        return f"returned a dict with the keys {', '.join(map(repr, list(result)[:8]))}, not a list of messages"
    if not isinstance(result, (list, tuple)):
        return f"returned a {type(result).__name__}, not a list of messages; an adapter's compress() can convert it"
    if not result:
        return "returned an empty list: nothing of the session is left"
    for index, message in enumerate(result):
        if not isinstance(message, dict):
            return f"returned messages[{index}] as a {type(message).__name__}, not a dict"
    return ""


def _step(driver: Driver, given: list[Any]) -> tuple[dict[str, Any], list[Any]]:
    """Compress once; return the frame and the state that the next step starts from."""
    try:
        with time_imports() as imports:
            result = driver.compress(given)
    except BaseException as exc:
        return {"phase": "raised", "error": describe_error(exc)}, given
    try:
        problem = _shape_problem(result)
        if problem:
            return {"phase": "bad_result", "problem": problem}, given
        frame = {
            "phase": "step",
            "messages": list(result),
            "same_object": result is given,
            "import_seconds": imports.seconds,
            "status": driver.status(),
            "state": driver.state(),
        }
        return frame, list(result)
    except BaseException as exc:
        return {"phase": "raised", "error": describe_error(exc)}, given


def _due(driver: Driver, messages: list[Any], tokens: int) -> dict[str, Any]:
    """Ask the target whether it would compress now; null where it has no word in it."""
    try:
        answer = driver.due(messages, tokens)
        return {"phase": "due", "due": None if answer is None else bool(answer)}
    except BaseException as exc:
        return {"phase": "raised", "error": describe_error(exc)}


def _recall(driver: Driver, removed: list[Any], command: dict[str, Any]) -> dict[str, Any]:
    """Ask the target's own search of the removed messages."""
    try:
        return {
            "phase": "recalled",
            "text": driver.recall(command["name"], removed, command["query"])[: command["most"]],
        }
    except BaseException as exc:
        return {"phase": "raised", "error": describe_error(exc)}


def _serve(channel: Channel, driver: Driver, state: list[Any]) -> None:
    said: list[Any] = []  # since the last compression, as far as it was asked whether one is due
    removed: list[Any] = []
    while True:
        command = channel.receive()
        if command["do"] == "due":
            said += command["messages"]
            channel.send(_due(driver, state + said, command["tokens"]))
            continue
        if command["do"] == "recall":
            removed = command["messages"] or removed
            channel.send(_recall(driver, removed, command))
            continue
        if command["do"] != "compress":
            return
        said = []
        frame, state = _step(driver, state + command["messages"])
        try:
            channel.send(frame)
        except FrameTooLarge as exc:
            channel.send({"phase": "bad_result", "problem": f"returned {exc}"})
        except (TypeError, ValueError, RecursionError) as exc:
            channel.send({"phase": "bad_result", "problem": f"returned something JSON cannot express: {exc}"[:2000]})


def main() -> None:
    """Run the whole life of the child; it ends without running anybody's exit handlers."""
    channel = Channel()
    channel.end_with_parent()
    hello = channel.receive()
    channel.nonce, channel.limit = hello["nonce"], hello["max_frame"]
    sys.path[:] = [entry for entry in sys.path if entry]
    limit(hello["limits"])
    hits = reachable_canaries(hello["canary"], (0, 1, 2, *channel.descriptors)) if hello["canary"] else []
    channel.send({"phase": "hello", "hits": hits, "python": platform.python_version()})
    try:
        job, search = _prepare(channel.receive())
        if job["command"] is not None:
            program = Program(job["command"], job["adapter"], job["adapter_path"], job["runtime"])
            channel.send(program.exchange(json.dumps(job["start"]), channel.limit // 2))
            serve_lines(channel, program)
            _exit(0)
        driver = build(job, search)
        state: list[Any] = []
        if job["resume"] is not None:
            driver.restore(job["resume"]["state"])
            state = job["resume"]["messages"]
    except SetupError as exc:
        channel.send({"phase": "setup_error", "error": {"type": "SetupError", "text": str(exc)[:4000], "place": ""}})
        _exit(0)
    except BaseException as exc:
        channel.send({"phase": "setup_error", "error": describe_error(exc)})
        _exit(0)
    channel.send({"phase": "ready", "dropped": driver.dropped, "resumable": driver.resumable,
                  "tells_when": driver.tells_when})  # fmt: skip
    _serve(channel, driver, state)
    _exit(0)
