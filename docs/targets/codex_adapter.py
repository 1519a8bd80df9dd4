"""Codex CLI: one thread of `codex app-server`; segments are injected, compacted, and read from its rollout file."""

import json
import os
import subprocess
import sys
from pathlib import Path

HOME = Path(os.environ["HOME"])
OWN = ("<environment_context>", "<user_instructions>", "# AGENTS.md instructions")
"""How messages begin that Codex adds in the user's role; no user said them."""


def text_of(content):
    if isinstance(content, list):
        return "\n".join(part if isinstance(part, str) else part["text"] for part in content if "text" in part)
    return content or ""


def to_items(message):
    """Yield one message as items of OpenAI's responses."""
    text = text_of(message.get("content"))
    if message["role"] == "tool":
        yield {"type": "function_call_output", "call_id": message["tool_call_id"], "output": text}
        return
    if text:
        kind = "output_text" if message["role"] == "assistant" else "input_text"
        yield {"type": "message", "role": message["role"], "content": [{"type": kind, "text": text}]}
    for call in message.get("tool_calls") or ():
        function = call["function"]
        arguments = function.get("arguments") or "{}"
        yield {"type": "function_call", "call_id": call["id"], "name": function["name"], "arguments": arguments}


def to_messages(items):
    """Return what the agent will send from now on; its own instructions are left out."""
    messages = []
    for item in items:
        kind = item.get("type", "message")
        if kind == "message" and item["role"] in ("user", "assistant"):
            text = text_of(item["content"])
            if item["role"] == "assistant" or not text.lstrip().startswith(OWN):
                messages.append({"role": item["role"], "content": text})
        elif kind == "function_call":
            call = {"name": item["name"], "arguments": item["arguments"]}
            if not messages or messages[-1]["role"] != "assistant":
                messages.append({"role": "assistant", "content": None})
            messages[-1].setdefault("tool_calls", []).append(
                {"id": item["call_id"], "type": "function", "function": call}
            )
        elif kind == "function_call_output":
            messages.append({"role": "tool", "tool_call_id": item["call_id"], "content": text_of(item["output"])})
    return messages


class Codex:
    def __init__(self, start):
        (HOME / ".codex").mkdir(exist_ok=True)
        (HOME / "work").mkdir(exist_ok=True)
        (HOME / ".codex" / "config.toml").write_text(
            f'model = "{start["model"]}"\nmodel_provider = "eval"\n'
            f"model_context_window = {start['context_length'] or 200000}\n"
            f'[model_providers.eval]\nname = "eval"\nbase_url = "{start["base_url"]}"\nenv_key = "OPENAI_API_KEY"\n'
            'wire_api = "responses"\nrequest_max_retries = 0\nstream_max_retries = 0\n'
        )
        self.server = subprocess.Popen(
            ["codex", "app-server"], cwd=HOME / "work", text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self.number, self.returned, self.items = 0, 0, []
        self.request("initialize", {"clientInfo": {"name": "compression-eval", "version": "1"},
                                    "capabilities": {"experimentalApi": True}})  # fmt: skip
        self.write({"method": "initialized"})
        begun = self.request(
            "thread/start", {"cwd": str(HOME / "work"), "sandbox": "read-only", "approvalPolicy": "never"}
        )
        self.thread, self.rollout = begun["thread"]["id"], Path(begun["thread"]["path"])

    def write(self, value):
        self.server.stdin.write(json.dumps(value) + "\n")
        self.server.stdin.flush()

    def read(self):
        line = self.server.stdout.readline()
        if not line:
            raise RuntimeError(f"codex ended with status {self.server.wait()}")
        return json.loads(line)

    def request(self, method, params):
        self.number += 1
        self.write({"id": self.number, "method": method, "params": params})
        while True:
            answer = self.read()
            if answer.get("id") == self.number and "method" not in answer:
                if "error" in answer:
                    raise RuntimeError(f"codex {method}: {answer['error'].get('message')}")
                return answer["result"]

    def turn(self, method, **given):
        """Start a turn, or the compaction, which is one, and wait for its end."""
        self.request(method, {"threadId": self.thread, **given})
        while True:
            event = self.read()
            if event.get("method") == "turn/completed":
                break
        turn = event["params"]["turn"]
        if turn["status"] != "completed":
            raise RuntimeError(f"codex: {(turn.get('error') or {}).get('message') or turn['status']}")

    def compacted(self):
        """Return the history that the last compaction put in the place of everything before it."""
        found = None
        for line in self.rollout.read_text(encoding="utf-8").split("\n"):
            entry = json.loads(line or "{}")
            if entry.get("type") == "compacted":
                found = entry["payload"]
        return found

    def compress(self, messages):
        if not messages:
            raise ValueError("there are no messages")
        system = [message for message in messages if message["role"] in ("system", "developer")]
        rest = [message for message in messages if message["role"] not in ("system", "developer")]
        items = [item for message in rest[self.returned :] for item in to_items(message)]
        self.request("thread/inject_items", {"threadId": self.thread, "items": items})
        self.turn("thread/compact/start")
        payload = self.compacted()
        history = payload.get("replacement_history") or [
            {"type": "message", "role": "user", "content": payload["message"]}
        ]
        state = to_messages(history)
        self.returned = len(state)
        return system + state


agent = None
for line in sys.stdin:
    asked = json.loads(line)
    try:
        if asked["type"] == "start":
            agent = Codex(asked)
            answer = {"type": "ready", "takes_turns": True}
        elif asked["type"] == "compress":
            answer = {"type": "result", "id": asked["id"], "messages": agent.compress(asked["messages"])}
        elif asked["type"] == "turn":
            agent.turn("turn/start", input=[{"type": "text", "text": asked["text"]}])
            answer = {"type": "turned", "id": asked["id"]}
        else:
            raise ValueError(f"unknown line {asked['type']}")
    except Exception as error:
        answer = {"type": "error", "id": asked.get("id"), "message": f"{type(error).__name__}: {error}"}
    print(json.dumps(answer), flush=True)
if agent is not None:
    agent.server.kill()
