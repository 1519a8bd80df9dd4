"""A stand-in for a model: it answers a prompt with the most telling lines of that prompt.

It lets a compressor that needs a model run without one, to see that everything fits together. It is deterministic,
and its summaries are not worth judging a prompt by.
"""

from __future__ import annotations

from eval_core.base.messages import content_text
from eval_core.base.tokens import count_messages, count_text
from eval_core.compressors.rule_based import RuleBasedSummariser
from eval_core.domain.call import Completion, ModelCall, Usage

__all__ = ["OFFLINE_MODEL", "complete_offline"]

OFFLINE_MODEL = "offline:rules"
_SHARE = 0.25
_CHARS_PER_TOKEN = 4


async def complete_offline(call: ModelCall) -> Completion:
    """Answer with lines of the prompt."""
    text = "\n".join(content_text(message) for message in call.messages if message.get("role") != "system")
    room = min(int(len(text) * _SHARE), call.max_tokens * _CHARS_PER_TOKEN)
    summary = RuleBasedSummariser().read([{"role": "assistant", "content": text}], max(room, 400), None).to_markdown()
    usage = Usage(input_tokens=count_messages(call.messages), output_tokens=count_text(summary))
    return Completion(summary, usage, OFFLINE_MODEL, 0.0)
