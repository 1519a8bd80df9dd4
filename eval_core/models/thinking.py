"""Models that think before they answer: room for the thinking comes on top of the room for the answer."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from eval_core.domain.call import ModelCall

__all__ = ["with_thinking"]

_CLAUDE = re.compile(r"(?:^|/|\.)(?:anthropic[./])?claude", re.IGNORECASE)
# What litellm makes of `reasoning_effort` for a Claude model: tokens of thinking, which count as output.
_BUDGETS: Mapping[str, int] = MappingProxyType(
    {"minimal": 1_024, "low": 1_024, "medium": 2_048, "high": 4_096, "xhigh": 8_192, "max": 16_384}
)
_OFF = frozenset({"none", "disable", "default"})


def with_thinking(call: ModelCall) -> ModelCall:
    """Make a call to a Claude model that is to think a valid one.

    Its thinking budget must be smaller than max_tokens, which covers both, and no temperature may be set.
    """
    effort = call.params.get("reasoning_effort")
    if not isinstance(effort, str) or effort in _OFF or not _CLAUDE.search(call.model):
        return call
    budget = _BUDGETS.get(effort, max(_BUDGETS.values()))
    params = {name: value for name, value in call.params.items() if name != "top_p"}
    return replace(call, max_tokens=call.max_tokens + budget, temperature=None, params=params)
