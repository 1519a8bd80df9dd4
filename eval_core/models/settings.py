"""Model settings: which model plays which role, how it is reached, and the keys, which are never printed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from eval_core.base.config import ModelConfig, Price
from eval_core.base.errors import UserError
from eval_core.base.files import canonical
from eval_core.domain.call import Role

__all__ = [
    "Endpoint",
    "ModelFlags",
    "Models",
    "Secret",
    "environment_secrets",
    "redact",
    "require_keys",
    "resolve",
]

# Keys: values that travel to the provider and nowhere else.

_SECRET_NAME = re.compile(r"(?:API_?KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL)", re.IGNORECASE)
_SECRET_FORM = re.compile(
    r"\b(?:sk|pk|rk|gsk|xai|key|tgp|pplx|hf|AIza|ghp|gho|ghs|ghu|github_pat)[-_A-Za-z0-9*.]{12,}"
    r"|(?<=[Bb]earer )[^\s'\",;]+"
)
_SHORTEST = 8  # shorter values would blot out ordinary words
HIDDEN = "[key hidden]"


@dataclass(frozen=True)
class Secret:
    """A key; printing, formatting or dumping it shows nothing."""

    _value: str = field(repr=False)

    def reveal(self) -> str:
        """Return the key itself: called only where the request is made."""
        return self._value

    def __repr__(self) -> str:
        """Show that there is a key, not which."""
        return "Secret(hidden)"

    __str__ = __repr__

    def __reduce__(self) -> str:
        """Refuse to be pickled: a key is never stored."""
        raise TypeError("a key is not stored")


def environment_secrets(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return the values of environment variables whose names speak of keys."""
    return tuple(
        value for name, value in environ.items() if _SECRET_NAME.search(name) and len(value.strip()) >= _SHORTEST
    )


def redact(text: str, secrets: Iterable[str] = ()) -> str:
    """Replace known keys, and whatever has the form of one: providers quote keys in their errors."""
    for secret in secrets:
        if len(secret) >= _SHORTEST:
            text = text.replace(secret, HIDDEN)
    return _SECRET_FORM.sub(HIDDEN, text)


# Which model plays which role, and how it is reached: decided once, from flags, environment and file.

_ENV = "COMPRESSION_EVAL_"
ROLES: tuple[Role, ...] = ("compressor", "answer", "judge")
# Providers in litellm's naming that are reached through `api_base` with the OpenAI protocol.
_OPENAI_LIKE = frozenset(
    {"openai", "custom_openai", "hosted_vllm", "lm_studio", "llamafile", "litellm_proxy", "openai_like", "vllm"}
)
_NO_KEY = "no-key-needed"  # the OpenAI protocol wants some value where a local server wants none


@dataclass(frozen=True)
class ModelFlags:
    """What the command line said about models."""

    model: str | None = None
    compressor: str | None = None
    answer: str | None = None
    judge: str | None = None
    api_base: str | None = None
    prices: Mapping[str, Price] = field(default_factory=dict)


@dataclass(frozen=True)
class Endpoint:
    """Where and how one model is reached."""

    model: str
    """The name that litellm routes by."""
    provider: str
    """Calls to the same provider share its rate limits."""
    api_base: str | None = None
    key: Secret | None = None


@dataclass(frozen=True)
class Models:
    """The models of a run; there is at least one."""

    compressor: str
    answer: str
    judge: str
    api_base: str | None = None
    key: Secret | None = None
    temperature: float | None = None
    answer_max_tokens: int = 700
    judge_max_tokens: int = 900
    compressor_max_tokens: int = 8_000
    prices: Mapping[str, Price] = field(default_factory=dict)
    params: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """What is sent along with every call to a model."""

    def identity(self, model: str) -> dict[str, str]:
        """Return what makes the replies of a model comparable, beside its name."""
        params = self.params.get(model)
        return {"params": canonical(dict(params)).decode()} if params else {}

    @property
    def distinct(self) -> tuple[str, ...]:
        """Every model once, in the order of the roles."""
        return tuple(dict.fromkeys((self.compressor, self.answer, self.judge)))

    def endpoint(self, model: str) -> Endpoint:
        """Tell how a model is reached.

        The base URL is for models that speak the OpenAI protocol (and for names without a provider); when it is
        set, the key goes there and to nobody else.
        """
        provider, slash, _ = model.partition("/")
        if self.api_base is None:
            return Endpoint(model, provider if slash else _bare_provider(model), None, self.key)
        if slash and provider not in _OPENAI_LIKE and _is_provider(provider):
            return Endpoint(model, provider)
        bare = model.partition("/")[2] if slash and provider in _OPENAI_LIKE else model
        # The same protocol without the SDK of its inventor, which takes 20 ms for a prompt of 60 messages, 5 times as
        # long as everything else together: servers nearby answer faster than that.
        return Endpoint(f"hosted_vllm/{bare}", self.api_base, self.api_base, self.key or Secret(_NO_KEY))


def _bare_provider(model: str) -> str:
    from eval_core.models.prices import known_model

    return str((known_model(model) or {}).get("litellm_provider", "unnamed"))


def _is_provider(name: str) -> bool:
    from eval_core.models.transport import load_litellm

    return name in load_litellm().provider_list


def _checked_base(url: str, where: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UserError(f"{where}: {url!r} is not an http(s) URL; give the base URL up to and including /v1")
    if parts.username or parts.password:
        raise UserError(f"{where}: credentials in the URL end up in logs; use {_ENV}API_KEY instead")
    return url.rstrip("/")


def resolve(flags: ModelFlags, environ: Mapping[str, str], config: ModelConfig) -> Models | None:
    """Choose the models: flags before environment before file; None when nobody named one (offline)."""

    def env(name: str) -> str | None:
        return environ.get(_ENV + name, "").strip() or None

    def chosen(role: Role) -> str | None:
        return (
            (getattr(flags, role) or flags.model)
            or (env(f"{role.upper()}_MODEL") or env("MODEL"))
            or getattr(config, role)
        )

    compressor, answer, judge = (chosen(role) for role in ROLES)
    some = compressor or answer or judge
    if some is None:
        return None
    answer = answer or compressor or some
    base = flags.api_base or env("API_BASE") or config.api_base
    where = "--api-base" if flags.api_base else f"{_ENV}API_BASE" if env("API_BASE") else "models.api_base"
    key = env("API_KEY")
    return Models(
        compressor=compressor or answer,
        answer=answer,
        judge=judge or answer,
        api_base=_checked_base(base, where) if base else None,
        key=Secret(key) if key else None,
        temperature=config.temperature,
        answer_max_tokens=config.answer_max_tokens,
        judge_max_tokens=config.judge_max_tokens,
        compressor_max_tokens=config.compressor_max_tokens,
        prices={**config.prices, **flags.prices},
        params={model: params.model_dump(exclude_none=True) for model, params in config.params.items()},
    )


def require_keys(models: Models) -> None:
    """Refuse early, in one message, when a provider's key is not there."""
    from eval_core.models.transport import load_litellm

    missing: dict[str, list[str]] = {}
    for model in models.distinct:
        endpoint = models.endpoint(model)
        if endpoint.key is None:
            found = load_litellm().validate_environment(model=endpoint.model)
            if not found.get("keys_in_environment") and found.get("missing_keys"):
                missing[model] = sorted(found["missing_keys"])
    if missing:
        wanted = "; ".join(f"{model} needs {' and '.join(names)}" for model, names in missing.items())
        raise UserError(
            f"no key for the model provider: {wanted}. Set it in the environment (or {_ENV}API_KEY), "
            "or name no model to run offline"
        )
