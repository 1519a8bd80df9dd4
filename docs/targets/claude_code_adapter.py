"""Claude Code: write the session as its own transcript, run `/compact` on it, read the transcript from there on."""

import itertools
import json
import os
import re
import subprocess
import sys
import uuid
from pathlib import Path

HOME = Path(os.environ["HOME"])
WORK = HOME / "work"
CONFIG = HOME / ".claude-config"
NOW = "2026-01-01T00:00:00.000Z"
IDS = itertools.count(1)


def new_id():
    """Return an id that is the same in every run: the summary names the transcript's file."""
    return str(uuid.UUID(int=next(IDS), version=4))


def text_of(content):
    if isinstance(content, list):
        return "\n".join(part if isinstance(part, str) else part["text"] for part in content if "text" in part)
    return content or ""


def to_blocks(message):
    """Return the role and content of one message in Anthropic's shape."""
    text = text_of(message.get("content"))
    if message["role"] == "tool":
        return "user", [{"type": "tool_result", "tool_use_id": message["tool_call_id"], "content": text}]
    blocks = [{"type": "text", "text": text}] if text else []
    for call in message.get("tool_calls") or ():
        arguments = json.loads(call["function"].get("arguments") or "{}")
        blocks.append({"type": "tool_use", "id": call["id"], "name": call["function"]["name"], "input": arguments})
    return message["role"], blocks or [{"type": "text", "text": "(empty)"}]


def to_messages(entry):
    """Yield the OpenAI messages of one line of the transcript."""
    message = entry["message"]
    content = message["content"]
    if isinstance(content, str):
        yield {"role": message["role"], "content": content}
        return
    for block in content:
        if block["type"] == "tool_result":
            yield {"role": "tool", "tool_call_id": block["tool_use_id"], "content": text_of(block["content"])}
    text = "\n".join(block["text"] for block in content if block["type"] == "text")
    calls = [
        {"id": block["id"], "type": "function",
         "function": {"name": block["name"], "arguments": json.dumps(block["input"])}}
        for block in content if block["type"] == "tool_use"
    ]  # fmt: skip
    if text or calls:
        converted = {"role": message["role"], "content": text or None}
        yield {**converted, "tool_calls": calls} if calls else converted


def sent_on(entries, at):
    """Return what is sent after the compaction at `at`: its summary, and what it preserved from before."""
    preserved = entries[at].get("compactMetadata", {}).get("preservedSegment", {})
    uuids = [entry.get("uuid") for entry in entries]
    before = []
    if preserved:
        before = entries[uuids.index(preserved["headUuid"]) : uuids.index(preserved["tailUuid"]) + 1]
    found = []
    for entry in entries[at:]:
        found += [entry, *before] if entry.get("uuid") == preserved.get("anchorUuid") else [entry]
    found = [entry for entry in found if entry["type"] in ("user", "assistant") and not entry.get("isMeta")]
    # The echo of its own commands is for the terminal, not for the model.
    echo = ("<command-name>", "<local-command")
    return [entry for entry in found if not text_of(entry["message"]["content"]).lstrip().startswith(echo)]


class ClaudeCode:
    def __init__(self, start):
        WORK.mkdir(exist_ok=True)
        self.model = start["options"].get("model", "claude-sonnet-4-5")
        self.session = new_id()
        project = CONFIG / "projects" / re.sub(r"[^A-Za-z0-9]", "-", str(WORK))
        project.mkdir(parents=True)
        os.environ["CLAUDE_CONFIG_DIR"] = str(CONFIG)
        self.transcript = project / f"{self.session}.jsonl"
        self.parent, self.returned, self.count = None, 0, itertools.count(1)

    def append(self, messages, tokens=0):
        """Write messages into the transcript; the provider has counted `tokens` when it wrote the last answer."""
        with self.transcript.open("a") as file:
            for message in messages:
                role, content = to_blocks(message)
                key = new_id()
                body = {"role": role, "content": content}
                if role == "assistant":
                    usage = {"input_tokens": tokens, "output_tokens": 0}
                    reason = "tool_use" if message.get("tool_calls") else "end_turn"
                    body |= {"id": f"msg_{next(self.count):024d}", "type": "message", "model": self.model,
                             "usage": usage, "stop_reason": reason, "stop_sequence": None}  # fmt: skip
                entry = {"parentUuid": self.parent, "isSidechain": False, "userType": "external", "cwd": str(WORK),
                         "sessionId": self.session, "version": "2.1.197", "gitBranch": "", "type": role,
                         "message": body, "uuid": key, "timestamp": NOW}  # fmt: skip
                file.write(json.dumps(entry) + "\n")
                self.parent = key

    def entries(self):
        return [json.loads(line) for line in self.transcript.read_text(encoding="utf-8").split("\n") if line]

    def claude(self, prompt):
        options = ["--resume", self.session, "--model", self.model, "--output-format", "stream-json", "--verbose"]
        return subprocess.run(["claude", "-p", prompt, *options], cwd=WORK, capture_output=True, text=True,
                              stdin=subprocess.DEVNULL)  # fmt: skip

    def bounds(self):
        return [at for at, entry in enumerate(self.entries()) if entry.get("subtype") == "compact_boundary"]

    def triggers(self, messages, tokens):
        """Tell whether it compacts by itself before the next turn of a session of so many tokens."""
        self.session, self.parent = new_id(), None
        self.transcript = self.transcript.with_name(f"{self.session}.jsonl")
        self.append([message for message in messages if message["role"] not in ("system", "developer")], tokens)
        self.claude("Go on.")
        return bool(self.bounds())

    def compress(self, messages):
        if not messages:
            raise ValueError("there are no messages")
        system = [message for message in messages if message["role"] in ("system", "developer")]
        rest = [message for message in messages if message["role"] not in ("system", "developer")]
        self.append(rest[self.returned :])
        before = self.bounds()
        done = self.claude("/compact")
        entries, bounds = self.entries(), self.bounds()
        if len(bounds) == len(before):
            # It reports a failure with status 0, so what it wrote decides.
            said = (done.stdout + done.stderr)[-1500:]
            raise RuntimeError(f"claude made no compaction (status {done.returncode}): {said}")
        self.parent = next(entry["uuid"] for entry in reversed(entries) if entry.get("uuid"))
        state = [message for entry in sent_on(entries, bounds[-1]) for message in to_messages(entry)]
        self.returned = len(state)
        return system + state


agent = None
for line in sys.stdin:
    asked = json.loads(line)
    try:
        if asked["type"] == "start":
            agent = ClaudeCode(asked)
            answer = {"type": "ready", "tells_when": True, "takes_turns": True}
        elif asked["type"] == "compress":
            answer = {"type": "result", "id": asked["id"], "messages": agent.compress(asked["messages"])}
        elif asked["type"] == "trigger":
            compresses = agent.triggers(asked["messages"], asked["tokens"])
            answer = {"type": "triggered", "id": asked["id"], "compresses": compresses}
        elif asked["type"] == "turn":
            agent.claude(asked["text"])
            answer = {"type": "turned", "id": asked["id"]}
        else:
            raise ValueError(f"unknown line {asked['type']}")
    except Exception as error:
        answer = {"type": "error", "id": asked.get("id"), "message": f"{type(error).__name__}: {error}"}
    print(json.dumps(answer), flush=True)
