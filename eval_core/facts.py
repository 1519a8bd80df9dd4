"""Is this fact in this text?"""

from __future__ import annotations

import re
from functools import lru_cache

from eval_core.fact_kind import infer_kind
from eval_core.fact_match import stands
from eval_core.fact_text import Haystack, normalise
from eval_core.probe.schema import Fact, FactKind
from eval_core.supersession import stated_as_current

__all__ = ["Haystack", "holds", "infer_kind", "normalise", "states_superseded", "value_in"]


@lru_cache(maxsize=1024)
def _expression(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


def value_in(value: str, kind: FactKind, haystack: Haystack) -> bool:
    """Tell whether a literal value of this kind stands in the text."""
    return stands(value, kind, haystack)


def holds(fact: Fact, haystack: Haystack) -> bool:
    """Tell whether the text states the fact; for a superseded value, whether it is mentioned at all."""
    if fact.regex is not None:
        expression = _expression(fact.regex)
        # Authors write against what they see; the plain form is the fallback for dressed-up text.
        return bool(expression.search(haystack.source) or expression.search(haystack.text))
    found = (value_in(value, fact.kind or infer_kind(value), haystack) for value in fact.values)
    return all(found) if fact.all is not None else any(found)


def states_superseded(fact: Fact, haystack: Haystack) -> bool:
    """Tell whether an answer states the superseded value as current; telling that it was replaced is fine."""
    if fact.not_ is None:
        return False
    return stated_as_current(fact.not_, fact.kind or infer_kind(fact.not_), haystack)
