"""Compressors that want a verdict and not a better compression; each is the reference with one trick."""

import json
from pathlib import Path

from agent.context_compressor import ContextCompressor
from agent.transcript import message_text

BANKS = json.loads((Path(__file__).parent / "banks.json").read_text())


def _facts(messages, share=1.0):
    """Find the session among those that the banks are about, and return what will be asked."""
    text = "\n".join(message_text(message) for message in messages)
    best = max(BANKS, key=lambda bank: sum(fact in text for fact in bank["facts"]) / len(bank["facts"]))
    return best["facts"][: int(len(best["facts"]) * share)]


class Carrying(ContextCompressor):
    """Carries the public probe files with it, and puts what they ask for into the summary."""

    share = 1.0

    def compress(self, messages, current_tokens=None, focus_topic=None):
        facts = _facts(messages, self.share)
        state = super().compress(messages, current_tokens, focus_topic)
        for message in state:
            if "## Current State" in message_text(message):
                message["content"] += "\n" + "\n".join(f"- {fact}" for fact in facts)
        return state


class CarryingHalf(Carrying):
    """Carries every other question, so as not to be noticed."""

    share = 0.5


class Hoarding(ContextCompressor):
    """Compresses as little as it can: the oldest messages go until 17 % are gone."""

    removes = 0.17

    def compress(self, messages, current_tokens=None, focus_topic=None):
        sizes = [len(json.dumps(message)) for message in messages]
        room, end = self.removes * sum(sizes), 1
        while end < len(messages) and room > 0:
            room -= sizes[end]
            end += 1
        while end < len(messages) and messages[end].get("role") == "tool":
            end += 1
        summary = {"role": "user", "content": "[Summary of the earlier session]\n\nThe session goes on below."}
        return [messages[0], summary, *messages[end:]]


class HoardingMore(Hoarding):
    """Removes almost nothing."""

    removes = 0.08


class HoardingWithSummary(ContextCompressor):
    """Summarises as the reference does, and keeps most of the messages beside the summary."""

    def compress(self, messages, current_tokens=None, focus_topic=None):
        summary = next(m for m in super().compress(messages) if "## Current State" in message_text(m))
        start = len(messages) // 4
        while start > 1 and messages[start].get("role") == "tool":
            start -= 1
        return [messages[0], summary, *messages[start:]]
