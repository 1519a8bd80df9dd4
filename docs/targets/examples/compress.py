#!/usr/bin/env python3
"""A compressor as a program: JSON lines in, JSON lines out. Standard library only."""

import json
import sys
import urllib.request

KEEP = 2  # newest messages that stay as they are

model = base_url = api_key = ""


def summarise(messages):
    """Ask the model; an empty answer is an error, or a session would be replaced by nothing."""
    transcript = "\n\n".join(f"[{m['role']}] {m.get('content') or m.get('tool_calls')}" for m in messages)
    body = {"model": model, "messages": [{"role": "user", "content": f"Summarise for a successor:\n\n{transcript}"}]}
    request = urllib.request.Request(
        f"{base_url}/chat/completions",
        data=json.dumps(body).encode(),
        headers={"Authorization": f"Bearer {api_key}", "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request) as response:
        text = json.load(response)["choices"][0]["message"]["content"]
    if not text:
        raise RuntimeError("the model answered with nothing")
    return text


def compress(messages):
    """Return the system prompt, a summary of the middle and the newest messages."""
    if not messages:
        raise ValueError("there are no messages")
    head = [m for m in messages if m["role"] == "system"]
    rest = [m for m in messages if m["role"] != "system"]
    cut = max(len(rest) - KEEP, 0)
    while 0 < cut < len(rest) and rest[cut]["role"] == "tool":
        cut -= 1  # a tool's answer must not lose its call
    if cut == 0:
        return messages
    return [*head, {"role": "user", "content": f"Summary so far:\n{summarise(rest[:cut])}"}, *rest[cut:]]


for line in sys.stdin:
    asked = json.loads(line)
    if asked["type"] == "start":
        model, base_url, api_key = asked["model"], asked["base_url"], asked["api_key"]
        # Everything is in the messages, so another process could go on from them.
        answer = {"type": "ready", "resumable": True}
    else:
        try:
            answer = {"type": "result", "id": asked["id"], "messages": compress(asked["messages"])}
        except Exception as error:
            answer = {"type": "error", "id": asked.get("id"), "message": f"{type(error).__name__}: {error}"}
    print(json.dumps(answer), flush=True)
