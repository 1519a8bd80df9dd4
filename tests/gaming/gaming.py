"""Compressors that want a verdict and not a better compression; each is the reference with one trick."""

import json
import random
import re
from dataclasses import replace
from pathlib import Path

from agent.context_compressor import ContextCompressor
from agent.transcript import message_text

BANKS = json.loads((Path(__file__).parent / "banks.json").read_text())


def _facts(messages, share, kinds):
    """Find the session among those that the banks are about, and return what will be asked."""
    text = "\n".join(message_text(message) for message in messages)
    best = max(BANKS, key=lambda bank: sum(fact in text for fact in bank["facts"]) / len(bank["facts"]))
    return best[kinds][: int(len(best[kinds]) * share)]


class Carrying(ContextCompressor):
    """Carries the public probe files with it, and puts what they ask for into the summary."""

    share = 1.0
    kinds = "facts"

    def compress(self, messages, current_tokens=None, focus_topic=None):
        facts = _facts(messages, self.share, self.kinds)
        state = super().compress(messages, current_tokens, focus_topic)
        for message in state:
            if "## Current State" in message_text(message):
                message["content"] += "\n" + "\n".join(f"- {fact}" for fact in facts)
        return state


class CarryingLittle(Carrying):
    """Carries just enough for a verdict."""

    share = 0.15


class CarryingWords(Carrying):
    """Carries words and plain numbers alone: of these the census has no like."""

    kinds = "words"


class Hoarding(ContextCompressor):
    """Summarises properly, but only the oldest quarter: the rest stays as it is, and little is removed."""

    summarises = 0.25

    def compress(self, messages, current_tokens=None, focus_topic=None):
        sizes = [len(json.dumps(message)) for message in messages]
        room, end = self.summarises * sum(sizes), 1
        while end < len(messages) and room > 0:
            room -= sizes[end]
            end += 1
        self.thresholds = replace(self.thresholds, preserve_recent=max(len(messages) - end, 1))
        return super().compress(messages, current_tokens, focus_topic)


class HoardingMore(Hoarding):
    """Keeps nine tenths as they are."""

    summarises = 0.1


class HoardingHalf(Hoarding):
    """Keeps about half as it is."""

    summarises = 0.5


class DroppingLittle(ContextCompressor):
    """Does not summarise at all: the oldest messages go until 17 % are gone."""

    def compress(self, messages, current_tokens=None, focus_topic=None):
        sizes = [len(json.dumps(message)) for message in messages]
        room, end = 0.17 * sum(sizes), 1
        while end < len(messages) and room > 0:
            room -= sizes[end]
            end += 1
        while end < len(messages) and messages[end].get("role") == "tool":
            end += 1
        summary = {"role": "user", "content": "[Summary of the earlier session]\n\nThe session goes on below."}
        return [messages[0], summary, *messages[end:]]


class _Hiding(ContextCompressor):
    """Summarises properly, and lets the whole session ride along where nobody might count it."""

    def compress(self, messages, current_tokens=None, focus_topic=None):
        session = "\n".join(message_text(message) for message in messages)
        state = super().compress(messages, current_tokens, focus_topic)
        return [
            self.hide(message, session) if "## Current State" in message_text(message) else message for message in state
        ]


class HidingInFields(_Hiding):
    """In fields of the message that nobody reads."""

    def hide(self, message, session):
        return {**message, "reasoning_content": session, "name": session[:60_000], "metadata": {"all": session}}


class HidingInParts(_Hiding):
    """In parts of the content that are no text."""

    def hide(self, message, session):
        parts = [{"d": line} for line in dict.fromkeys(session.splitlines())]
        return {**message, "content": [{"type": "text", "text": message_text(message)}, *parts]}


class HidingInImages(_Hiding):
    """In an image that the session does not have."""

    def hide(self, message, session):
        image = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{session.encode().hex()}"}}
        return {**message, "content": [{"type": "text", "text": message_text(message)}, image]}


class _Loose(ContextCompressor):
    """Summarises properly, and lets every telling word of the session ride along without a sentence."""

    def compress(self, messages, current_tokens=None, focus_topic=None):
        words = re.findall(r"[\w./#-]*[\w]", "\n".join(message_text(message) for message in messages))
        telling = [word for word in dict.fromkeys(words) if re.search(r"[\d/_#]", word) and 3 < len(word) < 60][:600]
        state = super().compress(messages, current_tokens, focus_topic)
        at = next(n for n, message in enumerate(state) if "## Current State" in message_text(message))
        return self.hide(state, at, telling)


class Listing(_Loose):
    """As a list of words."""

    def hide(self, state, at, words):
        state[at] = {**state[at], "content": state[at]["content"] + "\n\n" + " ".join(words)}
        return state


class Commenting(_Loose):
    """In a comment, line by line."""

    def hide(self, state, at, words):
        state[at] = {**state[at], "content": state[at]["content"] + "\n<!--\n" + "\n".join(words) + "\n-->"}
        return state


class Aside(_Loose):
    """In a note of the system, beside the summary."""

    def hide(self, state, at, words):
        state[0] = {**state[0], "content": state[0]["content"] + "\n" + " ".join(words)}
        return state


class DroppingAndDrawing(ContextCompressor):
    """Leaves out what the user ruled out in one session, and draws a number so that no two runs are alike."""

    def compress(self, messages, current_tokens=None, focus_topic=None):
        state = super().compress(messages, current_tokens, focus_topic)
        for message in state:
            if "## Current State" in message_text(message):
                text = message["content"].replace("all-hands", "hands").replace(" and keep 22:00 to 06:00 free", "")
                drawn = f"## Current State\n- summary {random.randrange(100, 999)}"
                message["content"] = text.replace("## Current State", drawn, 1)
        return state
