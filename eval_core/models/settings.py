"""Model settings: which model plays which role, how it is reached, and the keys, which are never printed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import urlsplit

from eval_core.base.config import EndpointConfig, ModelConfig, Price
from eval_core.base.errors import UserError
from eval_core.base.files import canonical
from eval_core.domain.call import Role
from eval_core.models.presets import PRESETS, has_own_key, with_preset
from eval_core.models.prices import Tariff, known_model, listed_as, tariff

# Keys: values that travel to the provider and nowhere else.

_SECRET_NAME = re.compile(r"(?:API_?KEY|_KEY$|TOKEN|SECRET|PASSWORD|CREDENTIAL)", re.IGNORECASE)
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
GENERAL_KEY = f"{_ENV}API_KEY"
"""The key of the provider that has none of its own."""
ROLES: tuple[Role, ...] = ("compressor", "answer", "judge")
OFFLINE_JUDGE = "offline"
"""In place of the judge's model: only compressions are paid for; rules answer and facts judge."""
_OF_ITS_SERVER = ("preset", "url", "protocol", "key_env", "price")
"""What an endpoint says of its server and not of its model: none of it is true of another server."""
_OWN_MACHINE = frozenset({"localhost", "127.0.0.1", "::1"})
# Providers of litellm's that log in by asking somebody to open a web page.
_INTERACTIVE = frozenset({"github_copilot", "chatgpt"})


@dataclass(frozen=True)
class ModelFlags:
    """What the command line said about models."""

    model: str | None = None
    compressor: str | None = None
    judge: str | None = None


@dataclass(frozen=True)
class Endpoint:
    """Where and how one model is reached."""

    model: str
    """The name as it is sent, or as litellm routes by it."""
    provider: str
    """Calls to the same provider share its rate limits."""
    api_base: str | None = None
    key: Secret | None = None
    direct: bool = False
    """Whether the server speaks the OpenAI protocol and is called without litellm."""
    seconds: float = 180.0
    """From a request to the last byte of its reply."""
    max_output: int | None = None


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
    time_limit_s: float = 180.0
    endpoints: Mapping[str, EndpointConfig] = field(default_factory=dict)
    keys: Mapping[str, Secret] = field(default_factory=dict)
    """Keys that are for one model only."""
    key_places: frozenset[str] | None = None
    """The servers and providers that only the general key is there for; None where all models are at one of them."""
    offline_judge: bool = False
    """Whether only the compressor's model is called; the names of the other two are then its own."""
    also_answer: tuple[str, ...] = ()
    """Models that are asked for choices and actions beside the answering one."""

    def identity(self, model: str) -> dict[str, str]:
        """Return what makes the replies of a model comparable, beside its name."""
        params = self.params.get(model)
        return {"params": canonical(dict(params)).decode()} if params else {}

    @property
    def distinct(self) -> tuple[str, ...]:
        """Every model once, in the order of the roles."""
        return tuple(dict.fromkeys((self.compressor, self.answer, self.judge, *self.also_answer)))

    @property
    def obeying(self) -> tuple[str, ...]:
        """The models that choose and act; none where rules answer."""
        return () if self.offline_judge else tuple(dict.fromkeys((self.answer, *self.also_answer)))

    def endpoint(self, model: str) -> Endpoint:
        """Tell how a model is reached: with a URL every call goes there, under the name as it was given."""
        found = self.endpoints.get(model, EndpointConfig())
        url = found.url or self.api_base
        provider, slash, _ = model.partition("/")
        direct = url is not None and found.protocol != "litellm"
        return Endpoint(
            model,
            url or (provider if slash else _bare_provider(model)),
            url,
            self.keys.get(model) or self._general_key(model),
            direct,
            found.time_limit_s or self.time_limit_s,
            found.max_output or _most_output(found.base_model or model),
        )

    def place(self, model: str) -> str:
        """Name who is sent the key of a model: the server of its URL, else its provider."""
        url = self.endpoints.get(model, EndpointConfig()).url or self.api_base
        provider, slash, _ = model.partition("/")
        return urlsplit(url).netloc if url is not None else provider if slash else _bare_provider(model)

    @property
    def key_is_contested(self) -> bool:
        """Whether the general key would go to more than one provider; then it goes to none."""
        return self.key is not None and len(self.key_places or ()) > 1

    def _general_key(self, model: str) -> Secret | None:
        if self.key_places is None or self.key_places == {self.place(model)}:
            return self.key
        return None

    @property
    def through_litellm(self) -> bool:
        """Whether any model is reached through litellm, whose import takes seconds."""
        return any(not self.endpoint(model).direct for model in self.distinct)

    def window(self, model: str) -> int | None:
        """Return how many tokens a prompt and its reply may have together; None where nobody says."""
        found = self.endpoints.get(model, EndpointConfig())
        if found.window is not None:
            return found.window
        listed = (known_model(found.base_model or model) or {}).get("max_input_tokens")
        return listed if isinstance(listed, int) and listed > 0 else None

    def tariff(self, model: str) -> Tariff | None:
        """Return what a model costs: the user's price, the endpoint's, else that of the list."""
        found = self.endpoints.get(model, EndpointConfig())
        if model in self.prices or found.price is None:
            return tariff(model, self.prices, listed_as(model, found))
        return tariff(model, {model: found.price})


def _bare_provider(model: str) -> str:
    return str((known_model(model) or {}).get("litellm_provider", "unnamed"))


def _most_output(model: str) -> int | None:
    found = (known_model(model) or {}).get("max_output_tokens")
    return found if isinstance(found, int) and found > 0 else None


def _checked_base(url: str, where: str) -> str:
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # brackets without an end, or a port that is none
        usable = False
    if not usable or any(char.isspace() for char in url):
        raise UserError(f"{where}: {url!r} is not an http(s) URL; give the base URL up to and including /v1")
    if parts.query or parts.fragment:
        raise UserError(f"{where}: {url!r}: leave out what follows the path; give the base URL up to and including /v1")
    if parts.username or parts.password:
        raise UserError(f"{where}: credentials in the URL end up in logs; use {GENERAL_KEY} instead")
    return url.rstrip("/")


def resolve(flags: ModelFlags, environ: Mapping[str, str], config: ModelConfig) -> Models | None:
    """Choose the models: flags before environment before file; None when nobody named one (offline)."""

    def chosen(role: Role) -> str | None:
        return (
            ({"compressor": flags.compressor, "judge": flags.judge}.get(role) or flags.model)
            or (_variable(f"{role.upper()}_MODEL", environ) or _variable("MODEL", environ))
            or (next(iter(_listed(config.answer)), None) if role == "answer" else getattr(config, role))
        )

    compressor, answer, judge = (chosen(role) for role in ROLES)
    offline_judge = judge == OFFLINE_JUDGE
    if offline_judge:
        answer = judge = compressor
    some = compressor or answer or judge
    if some is None:
        return None
    answer = answer or compressor or some
    listed = _listed(config.answer)
    also = () if offline_judge or answer not in listed[:1] else tuple(listed[1:])
    for model in (compressor, answer, judge, *also):
        _refuse_logins(model)
    general = _GeneralBase.read(environ, config)
    key = _key(GENERAL_KEY, environ)
    endpoints = {
        model: general.endpoint(model, config.endpoints.get(model, EndpointConfig()))
        for model in dict.fromkeys((compressor or answer, answer, judge or answer, *also))
    }
    models = Models(
        compressor=compressor or answer,
        answer=answer,
        judge=judge or answer,
        api_base=general.url,
        time_limit_s=config.time_limit_s,
        endpoints=endpoints,
        keys=_own_keys(endpoints, environ),
        key=key,
        temperature=config.temperature,
        answer_max_tokens=config.answer_max_tokens,
        judge_max_tokens=config.judge_max_tokens,
        compressor_max_tokens=config.compressor_max_tokens,
        prices=config.prices,
        params={model: params.model_dump(exclude_none=True) for model, params in config.params.items()},
        offline_judge=offline_judge,
        also_answer=also,
    )
    return replace(models, key_places=_key_places(models, environ))


def _listed(answer: str | list[str] | None) -> list[str]:
    return answer if isinstance(answer, list) else [answer] if answer else []


def _variable(name: str, environ: Mapping[str, str]) -> str | None:
    return environ.get(_ENV + name, "").strip() or None


@dataclass(frozen=True)
class _GeneralBase:
    """The base URL for all models, or a preset's name in place of it, with the preset's other settings."""

    url: str | None
    preset: EndpointConfig | None
    from_environment: bool

    @classmethod
    def read(cls, environ: Mapping[str, str], config: ModelConfig) -> _GeneralBase:
        variable = _variable("API_BASE", environ)
        base = variable or config.api_base
        where = f"{_ENV}API_BASE" if variable else "models.api_base"
        preset = PRESETS.get(base or "")
        if preset is not None and preset.url is None:
            raise UserError(
                f"{where}: {base} is reached by the model's name, e.g. --model {base}/NAME; give no base URL"
            )
        url = preset.url if preset else _checked_base(base, where) if base else None
        return cls(url, preset, from_environment=bool(variable))

    def endpoint(self, model: str, given: EndpointConfig) -> EndpointConfig:
        """Return how a model is reached: what the file says of one model goes before what it says of all."""
        found = with_preset(given)
        if found.url is not None:
            found = found.model_copy(update={"url": _checked_base(found.url, f"models.endpoints.{model}.url")})
        if self.from_environment and (found.url or found.protocol == "litellm") and found.url != self.url:
            found = given.model_copy(update=dict.fromkeys(_OF_ITS_SERVER))
        if self.preset is not None and found.url is None:
            found = with_preset(found, self.preset)
        if self.from_environment:
            # The environment goes before the file, and means a server that speaks OpenAI's protocol.
            found = found.model_copy(update={"url": self.url, "protocol": "openai"})
        return found


def _key_places(models: Models, environ: Mapping[str, str]) -> frozenset[str] | None:
    """Find who can be reached with the general key alone; a server of one's own machine takes anybody."""
    if len({models.place(model) for model in models.distinct}) == 1:
        return None
    found = set()
    for model in models.distinct:
        endpoint, named = models.endpoint(model), models.endpoints.get(model, EndpointConfig()).key_env
        if endpoint.direct:
            own = urlsplit(endpoint.api_base or "").hostname in _OWN_MACHINE
        else:
            own = has_own_key(models.place(model) if endpoint.api_base is None else model.partition("/")[0], environ)
        if not own and not named:
            found.add(models.place(model))
    return frozenset(found)


def _own_keys(endpoints: Mapping[str, EndpointConfig], environ: Mapping[str, str]) -> dict[str, Secret]:
    found = {}
    for model, endpoint in endpoints.items():
        if endpoint.key_env and (key := _key(endpoint.key_env, environ)):
            found[model] = key
    return found


def _key(name: str, environ: Mapping[str, str]) -> Secret | None:
    """Read a key; one that no header can hold would fail in every call, with words that speak of an attack."""
    value = environ.get(name, "").strip()
    if not re.fullmatch(r"[!-~]*", value):
        raise UserError(f"{name}: holds a space, a line break or another character that no key has; set it again")
    return Secret(value) if value else None


def _refuse_logins(model: str | None) -> None:
    provider = (model or "").partition("/")[0]
    if provider in _INTERACTIVE:
        raise UserError(
            f"{model}: {provider} logs in through a web page, which a run cannot do; name a provider with an API key"
        )
