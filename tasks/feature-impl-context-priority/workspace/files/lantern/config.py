"""Read lantern's settings from the environment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


class ConfigError(ValueError):
    """A setting that cannot be used, with its name and value."""


@dataclass(frozen=True)
class Config:
    model: str = "lantern-small"
    context_max_chars: int = 20_000
    max_turns: int = 40
    quiet: bool = False


_TRUE = {"1", "true", "yes", "on"}
_FALSE = {"0", "false", "no", "off", ""}


def _number(env: Mapping[str, str], name: str, default: int, low: int) -> int:
    raw = env.get(name)
    if raw is None:
        return default
    try:
        value = int(raw.replace("_", ""))
    except ValueError:
        raise ConfigError(f"{name}={raw!r} is not a whole number") from None
    if value < low:
        raise ConfigError(f"{name}={value} is below {low}")
    return value


def _flag(env: Mapping[str, str], name: str) -> bool:
    raw = env.get(name, "").strip().lower()
    if raw in _TRUE:
        return True
    if raw in _FALSE:
        return False
    raise ConfigError(f"{name}={raw!r} is neither on nor off")


def load_config(env: Mapping[str, str]) -> Config:
    """Build the settings from an environment mapping."""
    return Config(
        model=env.get("LANTERN_MODEL", Config.model),
        context_max_chars=_number(env, "LANTERN_CONTEXT_MAX_CHARS", 20_000, 500),
        max_turns=_number(env, "LANTERN_MAX_TURNS", 40, 1),
        quiet=_flag(env, "LANTERN_QUIET"),
    )
