"""pi: write the session as pi stores it, let `pi --mode rpc` compact it, read its messages back."""

import json
import os
import subprocess
import sys
from pathlib import Path

HOME = Path(os.environ["HOME"])
SESSION = HOME / "work" / "session.jsonl"  # outside of pi's own folder, or it looks for another
NOW = "2026-01-01T00:00:00.000Z"
USAGE = {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 0,
         "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0}}  # fmt: skip


def text_of(content):
    if isinstance(content, list):
        return "\n".join(part if isinstance(part, str) else part["text"] for part in content if "text" in part)
    return content or ""


def to_pi(message, names):
    """Return one message in pi's shape."""
    text, stamp = text_of(message.get("content")), {"timestamp": 1767225600000}
    if message["role"] == "tool":
        key = message["tool_call_id"]
        return {"role": "toolResult", "toolCallId": key, "toolName": names.get(key, "tool"), "isError": False,
                "content": [{"type": "text", "text": text}], **stamp}  # fmt: skip
    if message["role"] == "assistant":
        blocks = [{"type": "text", "text": text}] if text else []
        for call in message.get("tool_calls") or ():
            names[call["id"]] = call["function"]["name"]
            arguments = json.loads(call["function"].get("arguments") or "{}")
            blocks.append({"type": "toolCall", "id": call["id"], "name": names[call["id"]], "arguments": arguments})
        return {"role": "assistant", "content": blocks, "api": "openai-completions", "provider": "eval",
                "model": "model", "usage": USAGE,
                "stopReason": "toolUse" if message.get("tool_calls") else "stop", **stamp}  # fmt: skip
    return {"role": "user", "content": [{"type": "text", "text": text}], **stamp}


def from_pi(message):
    """Return one of pi's messages as an OpenAI message, or nothing for its own system prompt."""
    role = message["role"]
    if role in ("compactionSummary", "branchSummary"):
        return {"role": "user", "content": message["summary"]}
    if role == "toolResult":
        return {"role": "tool", "tool_call_id": message["toolCallId"], "content": text_of(message["content"])}
    if role not in ("user", "assistant"):
        return None
    result = {"role": role, "content": text_of(message["content"]) or None}
    blocks = message["content"] if isinstance(message["content"], list) else []
    if calls := [block for block in blocks if block.get("type") == "toolCall"]:
        result["tool_calls"] = [
            {"id": call["id"], "type": "function",
             "function": {"name": call["name"], "arguments": json.dumps(call["arguments"])}}
            for call in calls
        ]  # fmt: skip
    return result


class Pi:
    """One session, kept in one file from segment to segment."""

    def __init__(self, start):
        # Before 0.79 it asks for no approval, and ends at an option that it does not know.
        told = subprocess.run(["pi", "--help"], capture_output=True, text=True, stdin=subprocess.DEVNULL)
        self.approves = "--no-approve" in told.stdout
        folder = HOME / ".pi-agent"
        folder.mkdir(parents=True, exist_ok=True)
        SESSION.parent.mkdir(parents=True, exist_ok=True)
        model = {"id": "model", "contextWindow": start["context_length"] or 200000, "maxTokens": 8000}
        provider = {
            "baseUrl": start["base_url"],
            "api": "openai-completions",
            "apiKey": start["api_key"],
            "models": [model],
        }
        (folder / "models.json").write_text(json.dumps({"providers": {"eval": provider}}))
        keep = start["options"].get("keep_recent_tokens", 2000)
        settings = {"compaction": {"enabled": False, "keepRecentTokens": keep}, "retry": {"enabled": False}}
        (folder / "settings.json").write_text(json.dumps(settings))
        os.environ["PI_CODING_AGENT_DIR"] = str(folder)
        header = {"type": "session", "version": 3, "id": "00000000-0000-4000-8000-000000000000", "timestamp": NOW,
                  "cwd": str(SESSION.parent)}  # fmt: skip
        SESSION.write_text(json.dumps(header) + "\n")
        self.returned, self.names, self.entries = [], {}, 0

    def append(self, messages):
        """Write messages behind what is there, the last compaction included."""
        last = json.loads(SESSION.read_text(encoding="utf-8").rstrip("\n").split("\n")[-1])
        parent = last["id"] if last["type"] != "session" else None
        with SESSION.open("a") as file:
            for message in messages:
                self.entries += 1
                key = f"{self.entries:08x}"
                entry = {"type": "message", "id": key, "parentId": parent, "timestamp": NOW,
                         "message": to_pi(message, self.names)}  # fmt: skip
                file.write(json.dumps(entry) + "\n")
                parent = key

    def ask(self, *commands, until="response", **given):
        """Send commands to a pi that opens the session; return the data of each response, or of another event."""
        options = ["--mode", "rpc", "--session", str(SESSION), "--offline", "-ne", "-ns", "-np", "-nc", "-nt"]
        options += ["-na"] if self.approves else []
        pi = subprocess.Popen(["pi", *options, "--model", "eval/model"], cwd=SESSION.parent, text=True,
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE)  # fmt: skip
        found = []
        with pi:
            for command in commands:
                pi.stdin.write(json.dumps({"type": command, "id": command, **given}) + "\n")
                pi.stdin.flush()
                for line in pi.stdout:
                    answer = json.loads(line)
                    if answer.get("type") == until and answer.get("id", command) == command:
                        break
                else:
                    raise RuntimeError(f"pi ended with status {pi.wait()} before it answered {command}")
                if not answer.get("success", True):
                    pi.stdin.close()
                    raise RuntimeError(f"pi: {answer.get('error')}")
                found.append(answer.get("data") or {})
            pi.stdin.close()
        return found

    def compress(self, messages):
        if not messages:
            raise ValueError("there are no messages")
        system = [message for message in messages if message["role"] in ("system", "developer")]
        rest = [message for message in messages if message["role"] not in ("system", "developer")]
        self.append(rest[len(self.returned) :])
        _, read = self.ask("compact", "get_messages")
        self.returned = [converted for message in read["messages"] if (converted := from_pi(message))]
        return system + self.returned


agent = None
for line in sys.stdin:
    asked = json.loads(line)
    try:
        if asked["type"] == "start":
            agent = Pi(asked)
            answer = {"type": "ready", "takes_turns": True}
        elif asked["type"] == "compress":
            answer = {"type": "result", "id": asked["id"], "messages": agent.compress(asked["messages"])}
        elif asked["type"] == "turn":
            agent.ask("prompt", until="agent_end", message=asked["text"])
            answer = {"type": "turned", "id": asked["id"]}
        else:
            raise ValueError(f"unknown line {asked['type']}")
    except Exception as error:
        answer = {"type": "error", "id": asked.get("id"), "message": f"{type(error).__name__}: {error}"}
    print(json.dumps(answer), flush=True)
