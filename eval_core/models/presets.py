"""Presets of providers, with address, key and price: `models.endpoints.NAME.preset`, or `models.api_base`.

Shapes were checked against the providers' published request formats and against a server on loopback; there is no
account behind them. What a provider changes can be set beside the preset, which then gives way.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from eval_core.base.config import EndpointConfig, Price

_FREE = Price(input=0, output=0)

PRESETS: Mapping[str, EndpointConfig] = MappingProxyType(
    {
        "github-models": EndpointConfig(
            preset="github-models",
            url="https://models.github.ai/inference",
            key_env="GITHUB_TOKEN",
            price=_FREE,
            max_output=4_000,
            window=8_000,
        ),
        "ollama": EndpointConfig(preset="ollama", url="http://localhost:11434/v1", price=_FREE),
        "vllm": EndpointConfig(preset="vllm", url="http://localhost:8000/v1", price=_FREE),
        "openrouter": EndpointConfig(
            preset="openrouter", url="https://openrouter.ai/api/v1", key_env="OPENROUTER_API_KEY"
        ),
        # These have protocols and logins of their own, which litellm knows: azure/DEPLOYMENT, bedrock/MODEL,
        # vertex_ai/MODEL. An Azure deployment says with base_model what it deploys.
        "azure": EndpointConfig(preset="azure", protocol="litellm"),
        "bedrock": EndpointConfig(preset="bedrock", protocol="litellm"),
        "vertex": EndpointConfig(preset="vertex", protocol="litellm"),
    }
)


@dataclass(frozen=True)
class ProviderLimits:
    """What a provider allows, where that is too little for some runs."""

    input_tokens: int
    """Of one request."""
    requests_per_day: int
    requests_per_minute: int


LIMITS: Mapping[str, ProviderLimits] = MappingProxyType(
    # The free tier for models of the low and the high group differs; these are the tighter ones.
    {"github-models": ProviderLimits(input_tokens=8_000, requests_per_day=50, requests_per_minute=10)}
)


def with_preset(given: EndpointConfig, preset: EndpointConfig | None = None) -> EndpointConfig:
    """Fill in what an endpoint leaves open from its preset."""
    base = preset or PRESETS.get(given.preset or "")
    if base is None:
        return given
    own = {name: value for name in given.model_fields_set if (value := getattr(given, name)) is not None}
    return base.model_copy(update=own)


# How providers that are reached by name log in.

# One variable of each group is needed. The first group is the login, the one that a message names first.
LOGINS: Mapping[str, tuple[tuple[str, ...], ...]] = MappingProxyType(
    {
        "azure": (("AZURE_API_KEY", "AZURE_AD_TOKEN", "AZURE_CLIENT_ID", "AZURE_USERNAME"), ("AZURE_API_BASE",)),
        "bedrock": (
            (
                "AWS_ACCESS_KEY_ID",
                "AWS_PROFILE",
                "AWS_BEARER_TOKEN_BEDROCK",
                "AWS_WEB_IDENTITY_TOKEN_FILE",
                "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
            ),
        ),
        "anthropic": (("ANTHROPIC_API_KEY",),),
        "openai": (("OPENAI_API_KEY",),),
        "openrouter": (("OPENROUTER_API_KEY",),),
        "gemini": (("GEMINI_API_KEY", "GOOGLE_API_KEY"),),
        "vertex_ai": (
            ("GOOGLE_APPLICATION_CREDENTIALS", "VERTEXAI_CREDENTIALS"),
            ("VERTEXAI_PROJECT", "GOOGLE_CLOUD_PROJECT", "GOOGLE_APPLICATION_CREDENTIALS"),
        ),
        # They run on the user's own machine and take anybody.
        "ollama": (),
        "ollama_chat": (),
    }
)
_LOGIN_FILES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "bedrock": (".aws/credentials", ".aws/config"),
        "vertex_ai": (".config/gcloud/application_default_credentials.json",),
    }
)


def has_login_file(provider: str) -> bool:
    """Tell whether a login of the provider is stored on this machine."""
    return any((Path.home() / name).exists() for name in _LOGIN_FILES.get(provider, ()))


def has_own_key(provider: str, environ: Mapping[str, str]) -> bool:
    """Tell whether a provider can do without the general key: it has a key of its own, or needs none."""
    groups = LOGINS.get(provider, ((f"{provider.upper()}_API_KEY",),))
    return not groups or any(environ.get(name, "").strip() for name in groups[0]) or has_login_file(provider)
