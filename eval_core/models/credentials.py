"""Keys and logins of the providers: in which variable each is, and whether it is there before anything is sent."""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import Any

from eval_core.base.config import EndpointConfig
from eval_core.base.errors import UserError
from eval_core.models.settings import GENERAL_KEY, Models

__all__ = ["key_name", "require_keys"]

# One variable of each group is needed. The first group is the login, the one that a message names first.
_GROUPS: Mapping[str, tuple[tuple[str, ...], ...]] = MappingProxyType(
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
_SHOWN = 2


def require_keys(models: Models) -> None:
    """Refuse early, in one message, when a provider's key is not there."""
    missing: dict[str, str] = {}
    for model in models.distinct:
        endpoint = models.endpoint(model)
        own = models.endpoints.get(model, EndpointConfig()).key_env
        if endpoint.key is None and own:
            missing[model] = own
        elif not endpoint.direct and (wanted := _missing(models, model)):
            missing[model] = wanted
    if missing:
        wanted = "; ".join(f"{model} needs {names}" for model, names in missing.items())
        raise UserError(
            f"no key for the model provider: {wanted}. Set it in the environment (or {GENERAL_KEY}), "
            "or name no model to run offline"
        )


def _missing(models: Models, model: str) -> str:
    """Return what is not there of the variables by which litellm reaches a model."""
    endpoint, provider = models.endpoint(model), _provider(model)
    if provider == "vertex_ai" and not _installed("google.auth"):
        raise UserError(f"{model}: Vertex AI needs the package google-auth: pip install 'compression-eval[vertex]'")
    groups = _GROUPS.get(provider)
    if groups is None:
        found = {} if endpoint.key is not None else _litellm().validate_environment(model=model)
        return " and ".join(sorted(found.get("missing_keys") or ())) if not found.get("keys_in_environment") else ""
    groups = groups[1:] if endpoint.key is not None or _logged_in(provider) else groups
    return " and ".join(
        " or ".join(group[:_SHOWN])
        for group in groups
        if not any(os.environ.get(name) for name in group) and not (endpoint.api_base and group[0].endswith("_BASE"))
    )


def _provider(model: str) -> str:
    """Name the provider of a model; litellm, whose import takes seconds, is asked only where the name does not say."""
    named, slash, _ = model.partition("/")
    if slash and named in _GROUPS:
        return named
    try:
        return str(_litellm().get_llm_provider(model=model)[1])
    except Exception:  # whatever it makes of the name, it cannot send anything
        raise UserError(
            f"{model}: this names no provider that litellm knows; write PROVIDER/MODEL, e.g. openai/{model}, or give "
            "the server with models.api_base"
        ) from None


def _litellm() -> Any:
    from eval_core.models.transport import load_litellm

    return load_litellm()


def _logged_in(provider: str) -> bool:
    return any((Path.home() / name).exists() for name in _LOGIN_FILES.get(provider, ()))


def _installed(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:
        return False


def key_name(models: Models, model: str) -> str:
    """Return the variable that the key of a model comes from, for a message about a key that is not accepted."""
    own = models.endpoints.get(model, EndpointConfig()).key_env
    if model in models.keys and own:
        return own
    if models.key is not None or models.endpoint(model).direct:
        return GENERAL_KEY
    provider = models.endpoint(model).provider if models.endpoint(model).api_base is None else model.partition("/")[0]
    groups = _GROUPS.get(provider)
    return groups[0][0] if groups else f"{provider.upper()}_API_KEY"
