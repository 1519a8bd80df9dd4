"""Keys: values that travel to the provider and nowhere else."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

__all__ = ["Secret", "environment_secrets", "redact"]

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
