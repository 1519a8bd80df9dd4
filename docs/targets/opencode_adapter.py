"""opencode: import the session, let `opencode serve` summarise it, read its messages from the compaction on."""

import itertools
import json
import os
import re
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

HOME = Path(os.environ["HOME"])
WORK = HOME / "work"
MODEL = {"providerID": "eval", "modelID": "model"}
_count = itertools.count()


def new_id(prefix):
    """Return an id that sorts by time, as opencode's own do."""
    stamp = (int(time.time() * 1000) * 0x1000 + next(_count) % 0x1000) & (2**48 - 1)
    return f"{prefix}_{stamp:012x}{next(_count):014d}"


def text_of(content):
    if isinstance(content, list):
        return "\n".join(part if isinstance(part, str) else part["text"] for part in content if "text" in part)
    return content or ""


class OpenCode:
    def __init__(self, start):
        WORK.mkdir(exist_ok=True)
        limit = {"context": start["context_length"] or 200000, "output": 8000}
        provider = {"npm": "@ai-sdk/openai-compatible", "name": "eval",
                    "models": {"model": {"name": "model", "limit": limit}},
                    "options": {"baseURL": start["base_url"], "apiKey": start["api_key"]}}  # fmt: skip
        config = {"provider": {"eval": provider}, "model": "eval/model", "small_model": "eval/model",
                  "autoupdate": False, "share": "disabled", "compaction": {"auto": False}}  # fmt: skip
        os.environ["OPENCODE_CONFIG_CONTENT"] = json.dumps(config)
        self.session, self.now = new_id("ses"), int(time.time() * 1000)
        self.returned, self.stored, self.parent = 0, [], None

    def info(self, role, key):
        stamp = {"created": int(time.time() * 1000)}
        if role == "user":
            return {"id": key, "sessionID": self.session, "role": "user", "time": stamp, "agent": "build",
                    "model": MODEL}  # fmt: skip
        tokens = {"input": 0, "output": 0, "reasoning": 0, "cache": {"read": 0, "write": 0}}
        stamp["completed"] = stamp["created"]
        return {"id": key, "sessionID": self.session, "role": "assistant", "time": stamp, "parentID": self.parent,
                "modelID": "model", "providerID": "eval", "mode": "build", "agent": "build",
                "cost": 0, "tokens": tokens, "finish": "stop",
                "path": {"cwd": str(WORK), "root": str(WORK)}}  # fmt: skip

    def add(self, messages):
        """Store messages with their parts; a tool's answer goes into the part of its call."""
        calls = {}
        for message in messages:
            text = text_of(message.get("content"))
            if message["role"] == "tool":
                if (part := calls.get(message["tool_call_id"])) is not None:
                    part["state"]["output"] = text
                continue
            if message["role"] == "assistant" and self.parent is None:
                self.add([{"role": "user", "content": "(the session begins)"}])
            key = new_id("msg")
            about = {"sessionID": self.session, "messageID": key}
            parts = [{"id": new_id("prt"), **about, "type": "text", "text": text}] if text else []
            for call in message.get("tool_calls") or ():
                given = json.loads(call["function"].get("arguments") or "{}")
                state = {"status": "completed", "input": given, "output": "",
                         "title": "", "metadata": {}, "time": {"start": self.now, "end": self.now}}  # fmt: skip
                calls[call["id"]] = part = {"id": new_id("prt"), **about, "type": "tool", "callID": call["id"],
                                            "tool": call["function"]["name"], "state": state}  # fmt: skip
                parts.append(part)
            if message["role"] == "user":
                self.parent = key
            self.stored.append({"info": self.info(message["role"], key), "parts": parts})

    def load(self):
        """Hand everything that is not opencode's own to `opencode import`."""
        about = {"id": self.session, "slug": "session", "version": "1", "projectID": "global", "directory": str(WORK),
                 "title": "session", "time": {"created": self.now, "updated": self.now}}  # fmt: skip
        file = HOME / "session.json"
        file.write_text(json.dumps({"info": about, "messages": self.stored}))
        done = subprocess.run(["opencode", "import", str(file), "--pure"], cwd=WORK, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"opencode import ended with status {done.returncode}: {done.stderr[-500:]}")

    def serve(self, path, **body):
        """Post to the session, to summarise or to take a turn, and return all its messages."""
        server = subprocess.Popen(["opencode", "serve", "--pure", "--hostname", "127.0.0.1", "--port", "0"], cwd=WORK,
                                  stdout=subprocess.PIPE, text=True)  # fmt: skip
        try:
            for line in server.stdout:
                if found := re.search(r"http://127\.0\.0\.1:\d+", line):
                    break
            else:
                raise RuntimeError(f"opencode serve ended with status {server.wait()}")
            root = f"{found[0]}/session/{self.session}"
            headers = {"Content-Type": "application/json"}
            posted = urllib.request.Request(f"{root}/{path}", json.dumps(body).encode(), headers)
            with urllib.request.urlopen(posted) as answer:
                answer.read()
            with urllib.request.urlopen(f"{root}/message") as answer:
                return json.load(answer)
        finally:
            server.kill()
            server.wait()

    def compress(self, messages):
        if not messages:
            raise ValueError("there are no messages")
        system = [message for message in messages if message["role"] in ("system", "developer")]
        rest = [message for message in messages if message["role"] not in ("system", "developer")]
        self.add(rest[self.returned :])
        self.load()
        found = self.serve("summarize", **MODEL, auto=False)
        starts = [
            at for at, message in enumerate(found) if any(part["type"] == "compaction" for part in message["parts"])
        ]
        if not starts:
            raise RuntimeError("opencode made no compaction")
        kept = found[starts[-1] :]
        errors = [message["info"]["error"] for message in kept if message["info"].get("error")]
        if errors:
            raise RuntimeError(f"opencode: {json.dumps(errors[0])[:500]}")
        marker = next(part for part in kept[0]["parts"] if part["type"] == "compaction")
        if tail := marker.get("tail_start_id"):
            at = next(index for index, message in enumerate(found) if message["info"]["id"] == tail)
            kept = [*kept, *found[at : starts[-1]]]
        state = [converted for message in kept for converted in to_messages(message)]
        self.returned = len(state)
        return system + state


def to_messages(message):
    """Yield the OpenAI messages of one stored message: a call and its answer are one part here."""
    parts, role = message["parts"], message["info"]["role"]
    text = "\n".join(part["text"] for part in parts if part["type"] == "text" and not part.get("ignored"))
    if any(part["type"] == "compaction" for part in parts):
        text = text or "What did we do so far?"
    tools = [part for part in parts if part["type"] == "tool"]
    if not text and not tools:
        return
    converted = {"role": role, "content": text or None}
    if tools:
        converted["tool_calls"] = [
            {"id": part["callID"], "type": "function",
             "function": {"name": part["tool"], "arguments": json.dumps(part["state"]["input"])}}
            for part in tools
        ]  # fmt: skip
    yield converted
    for part in tools:
        yield {"role": "tool", "tool_call_id": part["callID"], "content": part["state"].get("output", "")}


agent = None
for line in sys.stdin:
    asked = json.loads(line)
    try:
        if asked["type"] == "start":
            agent = OpenCode(asked)
            answer = {"type": "ready", "takes_turns": True}
        elif asked["type"] == "compress":
            answer = {"type": "result", "id": asked["id"], "messages": agent.compress(asked["messages"])}
        elif asked["type"] == "turn":
            agent.serve("message", model=MODEL, parts=[{"type": "text", "text": asked["text"]}])
            answer = {"type": "turned", "id": asked["id"]}
        else:
            raise ValueError(f"unknown line {asked['type']}")
    except Exception as error:
        answer = {"type": "error", "id": asked.get("id"), "message": f"{type(error).__name__}: {error}"}
    print(json.dumps(answer), flush=True)
