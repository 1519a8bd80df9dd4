"""Encryption of private probes ("sealing"): only the holder of the key can read them."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Self

from eval_core.base.errors import UserError

_KEYS = re.compile(r"\s*[\w-]{43}=(?:\s*,\s*[\w-]{43}=)*\s*,?\s*", re.ASCII)


def holds_a_key(environ: Mapping[str, str]) -> bool:
    """Tell whether a variable, whatever it is called, holds a key for private probes."""
    return any(_KEYS.fullmatch(value) for value in environ.values())


class Damaged(Exception):
    """A sealed text that this key does not open: made with another key, cut or changed."""


@dataclass(frozen=True)
class SealingKey:
    """One key, or several with the newest first: the first one seals, every one of them opens."""

    _values: tuple[str, ...] = field(repr=False)

    @classmethod
    def new(cls) -> tuple[Self, str]:
        """Make a key; return it with the text to store as a secret."""
        from cryptography.fernet import Fernet

        text = Fernet.generate_key().decode()
        return cls((text,)), text

    @classmethod
    def parse(cls, text: str, where: str) -> Self:
        """Read the text of a secret: a key, or several with commas between. It is never repeated in a message."""
        from cryptography.fernet import Fernet

        values = tuple(part.strip() for part in text.split(",") if part.strip())
        for number, value in enumerate(values, 1):
            try:
                Fernet(value.encode())
            except ValueError:
                which = f"key {number} of {len(values)}" if len(values) > 1 else "its value"
                raise UserError(
                    f"{where}: {which} is not a key for sealed probes (44 characters of base64); "
                    "`compression-eval probe seal --new-key` makes one"
                ) from None
        if not values:
            raise UserError(f"{where}: is empty; `compression-eval probe seal --new-key` makes a key")
        return cls(values)

    @classmethod
    def of_environment(cls, name: str, environ: Mapping[str, str]) -> Self | None:
        """Read the key from an environment variable; None where it is not set."""
        text = environ.get(name, "")
        return cls.parse(text, name) if text.strip() else None

    def seal(self, text: str) -> str:
        """Return a text that says nothing without the key, not even whether two sealed texts are the same."""
        from cryptography.fernet import Fernet

        return Fernet(self._values[0].encode()).encrypt(text.encode("utf-8", "surrogatepass")).decode("ascii")

    def open(self, sealed: str) -> str:
        """Return what was sealed, or raise Damaged."""
        from cryptography.fernet import Fernet, InvalidToken, MultiFernet

        try:
            opened = MultiFernet([Fernet(value.encode()) for value in self._values]).decrypt(
                sealed.encode("ascii", "replace")
            )
            return opened.decode("utf-8", "surrogatepass")
        except (InvalidToken, UnicodeDecodeError, ValueError):
            raise Damaged("cannot be opened with this key") from None

    def marks(self, data: bytes) -> list[str]:
        """Return a digest of the data under each key, the newest first; without a key, none confirms a guess."""
        return [hmac.new(value.encode(), b"mark\0" + data, hashlib.sha256).hexdigest() for value in self._values]

    def draw(self, names: Iterable[str], share: float, period: str) -> list[str]:
        """Choose a share of some names, at least one; which ones cannot be told without the key."""
        known = list(names)
        count = max(1, round(share * len(known))) if known else 0
        secret = self._values[-1].encode()  # the oldest: adding a key draws no other names

        def rank(name: str) -> bytes:
            return hmac.new(secret, f"{period}\0{name}".encode(), hashlib.sha256).digest()

        chosen = set(sorted(known, key=rank)[:count])
        return [name for name in known if name in chosen]
