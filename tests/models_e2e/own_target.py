"""A small compressor that asks its model through the gateway, and its description."""

from __future__ import annotations

SOURCE = """
import json
import os
import urllib.request

PROMPT = "You summarise what an agent did."


class Compressor:
    def compress(self, messages, current_tokens=None):
        middle = messages[1:-4]
        text = "\\n".join(str(message.get("content")) for message in middle)
        body = {"model": "whatever", "max_tokens": 900, "messages": [
            {"role": "system", "content": PROMPT}, {"role": "user", "content": text}]}
        request = urllib.request.Request(
            os.environ["OPENAI_BASE_URL"] + "/chat/completions",
            data=json.dumps(body).encode(),
            headers={"Content-Type": "application/json", "Authorization": "Bearer " + os.environ["OPENAI_API_KEY"]},
        )
        with urllib.request.urlopen(request) as reply:
            summary = json.load(reply)["choices"][0]["message"]["content"]
        return [messages[0], {"role": "user", "content": "Summary so far:\\n" + summary}, *messages[-4:]]
"""
SPEC = """
compressor: mini:Compressor
llm: required
env: {OPENAI_BASE_URL: "${LLM_BASE_URL}", OPENAI_API_KEY: "${LLM_API_KEY}"}
timeout_s: 60
"""
