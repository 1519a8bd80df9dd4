"""Judges that grade otherwise than the usual one."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

from eval_core.base.messages import Message
from tests.model_provider import reply_to


def shifted(by: float) -> Callable[[Sequence[Message]], str]:
    """Grade as usual, but stricter or milder."""

    def reply(messages: Sequence[Message]) -> str:
        text = reply_to(messages)
        if not text.startswith('{"reason"'):
            return text
        grade = json.loads(text)
        return json.dumps(
            {key: min(5, max(0, value + by)) if key != "reason" else value for key, value in grade.items()}
        )

    return reply
