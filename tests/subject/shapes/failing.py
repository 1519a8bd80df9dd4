"""Compressors that differ in what they do when their model fails: each name says it."""

from __future__ import annotations

import shapes


def ask(messages, **extra):
    session = "\n".join(str(message["content"]) for message in messages)
    return shapes.ask(messages=[{"role": "user", "content": session}], **extra)


def _short(text):
    return [{"role": "user", "content": f"Summary: {text}"}]


class Careless:
    """Put whatever comes, errors included, in place of the session."""

    def compress(self, messages):
        try:
            return _short(ask(messages))
        except Exception as error:
            return _short(f"error: {error}")


class Raises:
    """Let errors through, and raise where there is no real summary."""

    def compress(self, messages):
        text = ask(messages)
        if len(text) < 40:
            raise ValueError("no summary")
        return _short(text)


class Keeps:
    """Return the session where there is no real summary."""

    def compress(self, messages):
        try:
            text = ask(messages)
        except OSError:
            return messages
        return _short(text) if len(text) >= 40 else messages


class AsksAgain:
    """Ask a second time after an error, and fall back, saying so, after another."""

    def compress(self, messages):
        self.degraded = False
        for _ in range(2):
            try:
                text = ask(messages)
            except OSError:
                continue
            if len(text) >= 40:
                return _short(text)
        self.degraded = True
        return _short("the newest messages only")


class OffersTools:
    """Offer a tool, and take the text of the reply for the summary, whatever it is."""

    def compress(self, messages):
        tool = {"type": "function", "function": {"name": "read_file", "parameters": {"type": "object"}}}
        return _short(ask(messages, tools=[tool]))


class NeverAsks:
    def compress(self, messages):
        return _short("nothing")


class Hangs:
    """Never come back after an error."""

    def compress(self, messages):
        try:
            return _short(ask(messages))
        except OSError:
            while True:
                pass
