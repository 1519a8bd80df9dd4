"""Compressors that tell when they set in by themselves."""

from __future__ import annotations


class _Short:
    def compress(self, messages):
        return messages[-2:]


class AtHalf(_Short):
    """Like Hermes' compressor: it asks for the provider's count alone."""

    def should_compress(self, prompt_tokens=None):
        return (prompt_tokens or 0) >= 100_000


class ByMessages(_Short):
    """Like our own: it wants the messages too, and knows the count under another name."""

    def should_compress(self, messages, current_tokens=None):
        return len(messages) > 1 and current_tokens >= 50_000


class Never(_Short):
    """Not even when the window is full."""

    def should_compress(self, prompt_tokens):
        return False


class WantsMore(_Short):
    """It cannot be asked without something that is not known."""

    def should_compress(self, prompt_tokens, billing_plan):
        return True


class Raises(_Short):
    """It cannot be asked at all."""

    def should_compress(self, prompt_tokens):
        raise RuntimeError("not yet")


class Silent(_Short):
    """It leaves that to its agent."""
