"""Keys and logins of the providers: in which variable each is, and whether it is there before anything is sent."""

from __future__ import annotations

import os
from collections.abc import Iterable
from importlib.util import find_spec
from typing import Any

from eval_core.base.config import EndpointConfig, ModelConfig
from eval_core.base.errors import UserError
from eval_core.models.presets import LOGINS, has_login_file
from eval_core.models.settings import GENERAL_KEY, ModelFlags, Models, resolve

_SHOWN = 2


def require_keys(models: Models) -> None:
    """Refuse early, in one message, when a provider's key is not there, or would be sent to another provider."""
    refuse_shared_key(models)
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


def refuse_shared_key(models: Models) -> None:
    """Refuse to send one key to two providers: each of them could use it at the other."""
    if not models.key_is_contested:
        return
    wanted = []
    for model in models.distinct:
        endpoint, own = models.endpoint(model), models.endpoints.get(model, EndpointConfig()).key_env
        name = own or (f"key_env under models.endpoints.{model}" if endpoint.direct else _variable(endpoint.provider))
        if models.place(model) in (models.key_places or ()):
            wanted.append(f"{name} for {model}")
    raise UserError(
        f"{GENERAL_KEY}: one key for {len(wanted)} providers, so each would see the other's; nothing was sent. "
        f"Set a variable for each: {', '.join(wanted)}. In the workflow, each is a secret of the same name"
    )


def require_handed_over(config: ModelConfig, names: Iterable[str]) -> None:
    """Refuse models whose keys cannot be among the variables that a workflow hands over, whatever their values are."""
    handed = dict.fromkeys(names, "handed-over")
    models = resolve(ModelFlags(), handed, config)
    if models is None:
        return
    if models.key_is_contested and any(not models.endpoint(model).direct for model in models.distinct):
        refuse_shared_key(models)
    for model in models.distinct:
        own = models.endpoints.get(model, EndpointConfig()).key_env
        if own and own not in handed:
            raise UserError(
                f"models.endpoints.{model}.key_env: the workflow does not hand over {own}; add it to the `env` of the "
                "evaluate step on the default branch"
            )


def _missing(models: Models, model: str) -> str:
    """Return what is not there of the variables by which litellm reaches a model."""
    endpoint, provider = models.endpoint(model), _provider(model)
    if provider == "vertex_ai" and not _installed("google.auth"):
        raise UserError(f"{model}: Vertex AI needs the package google-auth: pip install 'compression-eval[vertex]'")
    groups = LOGINS.get(provider)
    if groups is None:
        found = {} if endpoint.key is not None else _litellm().validate_environment(model=model)
        return " and ".join(sorted(found.get("missing_keys") or ())) if not found.get("keys_in_environment") else ""
    groups = groups[1:] if endpoint.key is not None or has_login_file(provider) else groups
    return " and ".join(
        " or ".join(group[:_SHOWN])
        for group in groups
        if not any(os.environ.get(name) for name in group) and not (endpoint.api_base and group[0].endswith("_BASE"))
    )


def _provider(model: str) -> str:
    """Name the provider of a model; litellm, whose import takes seconds, is asked only where the name does not say."""
    named, slash, _ = model.partition("/")
    if slash and named in LOGINS:
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
    if models.endpoint(model).key is not None or models.endpoint(model).direct:
        return GENERAL_KEY
    provider = models.endpoint(model).provider if models.endpoint(model).api_base is None else model.partition("/")[0]
    return _variable(provider)


def _variable(provider: str) -> str:
    """Return the variable that holds the key of a provider."""
    groups = LOGINS.get(provider)
    return groups[0][0] if groups else f"{provider.upper()}_API_KEY"
