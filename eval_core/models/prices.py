"""What calls cost: the price list that ships with litellm, and the user's own prices before it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import Any

from eval_core.base.config import EndpointConfig, Price
from eval_core.domain.call import Usage

_LONG = 200_000  # the length at which providers with two prices change to the higher one
_MILLION = 1_000_000
_PROFILE = re.compile(r"^(?:us|us-gov|eu|apac|jp|au|ca|global)\.")
_OWN_MACHINE = frozenset({"ollama", "ollama_chat", "lm_studio", "llamafile", "hosted_vllm", "vllm"})


@dataclass(frozen=True)
class Tariff:
    """Dollars per token."""

    input: float
    output: float
    cached_input: float
    cache_write: float
    long_factor: float = 1.0
    """By how much a prompt over 200,000 tokens is dearer."""

    def cost(self, usage: Usage, calls: int = 1) -> float:
        """Return what the usage of so many like calls costs, each part of the input at its own price."""
        plain = max(0, usage.input_tokens - usage.cached_tokens - usage.written_tokens)
        dollars = (
            plain * self.input
            + usage.cached_tokens * self.cached_input
            + usage.written_tokens * self.cache_write
            + usage.output_tokens * self.output
        )
        return dollars * (self.long_factor if usage.input_tokens > _LONG * calls else 1.0)

    def worst(self, input_tokens: int, output_tokens: int) -> float:
        """Return the most that so many tokens can cost."""
        dollars = input_tokens * max(self.input, self.cache_write, self.cached_input) + output_tokens * self.output
        return dollars * (self.long_factor if input_tokens > _LONG else 1.0)


@cache
def _list() -> Mapping[str, Any]:
    """Read litellm's list of models, without importing litellm (which takes seconds)."""
    spec = find_spec("litellm")
    if spec is None or spec.origin is None:
        return {}
    path = Path(spec.origin).parent / "model_prices_and_context_window_backup.json"
    try:
        listed = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return listed if isinstance(listed, dict) else {}


def _spellings(model: str) -> Iterator[str]:
    """Return the names under which a model may be listed, the most exact one first."""
    yield model
    provider, slash, bare = model.partition("/")
    if slash and provider == "bedrock":
        # A profile is the model with the regions it serves in front; routes and regions may come before that.
        bare = bare.rpartition("/")[2]
        yield bare
        yield _PROFILE.sub("", bare)
    if slash and provider == "vertex_ai":
        yield f"{provider}/{bare.partition('@')[0]}"


@lru_cache(maxsize=256)
def known_model(model: str) -> Mapping[str, Any] | None:
    """Return litellm's entry for a model."""
    listed = _list()
    for spelling in _spellings(model):
        if spelling in listed:
            return MappingProxyType(listed[spelling])
    provider, _, bare = model.partition("/")
    if provider == "openrouter":
        # Where the router itself is not listed, it charges what the provider does; their spellings differ.
        own = re.sub("^google/", "gemini/", bare)
        return known_model(own) or known_model(own.replace(".", "-"))
    if provider == "vertex_ai" and "@" not in bare:
        dated = sorted(name for name in listed if name.startswith(f"{model}@"))
        if dated:
            return MappingProxyType(listed[dated[-1]])
    entry = listed.get(bare)
    # "openai/gpt-x" is listed as "gpt-x"; the same bare name at another provider has another price.
    if bare and entry and str(entry.get("litellm_provider", "")).split("-")[0] == provider:
        return MappingProxyType(entry)
    return None


def listed_as(model: str, endpoint: EndpointConfig) -> str:
    """Return the name under which the list may know a model of an endpoint."""
    if endpoint.base_model:
        return endpoint.base_model
    if endpoint.preset == "openrouter":
        return f"openrouter/{model}"
    return model


def supports_schema(model: str) -> bool:
    """Tell whether a JSON Schema is worth a try: unless the model is listed as one that follows none.

    Models that are not listed mostly run on servers that enforce a schema whatever the model; where one is refused,
    the refusal costs nothing.
    """
    entry = known_model(model)
    return entry is None or bool(entry.get("supports_response_schema"))


def _listed(entry: Mapping[str, Any]) -> Tariff | None:
    price, output = entry.get("input_cost_per_token"), entry.get("output_cost_per_token")
    if price is None or output is None:
        return None
    factors = [
        entry[f"{name}_above_200k_tokens"] / base
        for name, base in (("input_cost_per_token", price), ("output_cost_per_token", output))
        if base and entry.get(f"{name}_above_200k_tokens")
    ]
    return Tariff(
        input=price,
        output=output,
        cached_input=entry.get("cache_read_input_token_cost") or price,
        cache_write=entry.get("cache_creation_input_token_cost") or price,
        long_factor=max([1.0, *factors]),
    )


def tariff(model: str, prices: Mapping[str, Price] = MappingProxyType({}), listed: str | None = None) -> Tariff | None:
    """Return the tariff of a model: the user's price, else the list's, nothing for one's own machine, else None."""
    own = prices.get(model)
    if own is not None:
        price = own.input / _MILLION
        cached = price if own.cached_input is None else own.cached_input / _MILLION
        write = price if own.cache_write is None else own.cache_write / _MILLION
        return Tariff(input=price, output=own.output / _MILLION, cached_input=cached, cache_write=write)
    entry = known_model(listed or model)
    if entry is not None and (found := _listed(entry)) is not None:
        return found
    return Tariff(0.0, 0.0, 0.0, 0.0) if model.partition("/")[0] in _OWN_MACHINE else None
