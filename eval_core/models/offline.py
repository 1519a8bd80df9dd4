"""A stand-in for a model: it answers with the most telling lines of the session that it is shown.

It lets a compressor that needs a model run without one. It knows the session, and takes from a request only what comes
from there: the instructions, their examples and system messages move nothing in its summary, and are not followed. So
its summaries say what reaches the model and what becomes of a summary, and nothing about a prompt.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from eval_core.base.messages import Message, said
from eval_core.base.tokens import count_messages, count_text
from eval_core.compressors.rule_based import RuleBasedSummariser
from eval_core.domain.call import Completion, ModelCall, Usage
from eval_core.domain.session_text import SessionText

OFFLINE_MODEL = "offline:rules"
_SHARE = 0.25
_LEAST = 400
_CHARS_PER_TOKEN = 4
_APART = ("system", "developer")
_NOTHING = "Nothing of the session was shown."


class OfflineModel:
    """The stand-in for one run over one session."""

    def __init__(self, session: SessionText) -> None:
        self._known = SessionText(others=session)

    async def complete(self, call: ModelCall) -> Completion:
        """Answer with lines of the session, and of earlier answers, that are in the request."""
        apart = [message for message in call.messages if message.get("role") in _APART]
        text = self._shown([message for message in call.messages if message not in apart]) or self._shown(apart)
        room = min(max(int(len(text) * _SHARE), _LEAST), call.max_tokens * _CHARS_PER_TOKEN)
        lines = RuleBasedSummariser().read([{"role": "assistant", "content": text}], room, None)
        summary = lines.to_markdown() if text else _NOTHING
        self._known.add([summary])
        usage = Usage(input_tokens=count_messages(call.messages), output_tokens=count_text(summary))
        return Completion(summary, usage, OFFLINE_MODEL, 0.0)

    def _shown(self, messages: Sequence[Message]) -> str:
        return "\n".join(_session_lines(self._known, messages))


def _session_lines(known: SessionText, messages: Iterable[Message]) -> Iterable[str]:
    for message in messages:
        for text in said(message).texts:
            yield from (part.text for part in known.parts(text) if part.session)
