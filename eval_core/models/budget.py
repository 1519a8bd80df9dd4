"""The budget: the worst case of each call is set aside before it is sent, so the cap is never passed."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from eval_core.base.errors import UserError
from eval_core.base.files import canonical
from eval_core.base.tokens import count_messages, count_text
from eval_core.domain.call import Failed, ModelCall, Usage
from eval_core.models.journal import Spent
from eval_core.models.prices import Tariff

# Other tokenizers than ours need up to about half as many tokens again for code and logs; then the chat frame.
_MARGIN = 1.5
_FRAME = 64
_LONG = 10_000  # characters whose tokens are not counted between two calls: it takes a millisecond


def worst_tokens(call: ModelCall, count: Callable[[str], int] = count_text) -> int:
    """Return more input tokens than the provider will count."""
    schema = count(canonical(call.response_schema).decode()) if call.response_schema else 0
    tools = count(canonical(call.params["tools"]).decode()) if call.params.get("tools") else 0
    # What is encrypted is longer than what it says, so its length as text is enough.
    front = count(canonical(call.front.items).decode()) if call.front else 0
    return math.ceil((count_messages(call.messages, count) + schema + tools + front) * _MARGIN) + _FRAME


async def count_ahead(call: ModelCall) -> None:
    """Count a long call's tokens in a thread, where the tokenizer runs beside the loop; the count is remembered."""
    if worst_tokens(call, len) > _LONG:
        await asyncio.to_thread(worst_tokens, call)


@dataclass(frozen=True)
class Reservation:
    """Money and tokens set aside for one attempt."""

    usd: float
    tokens: int


def worst_case(call: ModelCall, tariff: Tariff | None, count: Callable[[str], int] = count_text) -> Reservation:
    """Return the most that a call can cost."""
    input_tokens = worst_tokens(call, count)
    usd = 0.0 if tariff is None else tariff.worst(input_tokens, call.max_tokens)
    return Reservation(usd, input_tokens + call.max_tokens)


class Budget:
    """Dollars, and tokens where a price is unknown or the user wants both."""

    def __init__(self, usd: float | None, tokens: int | None = None, *, carried: Spent | None = None) -> None:
        """Begin with what earlier processes of the same run have spent; calls of unclear fate count in full."""
        carried = carried or Spent()
        self.usd, self.tokens = usd, tokens
        self.spent_usd, self.spent_tokens = carried.usd, carried.tokens
        self.unsure_usd, self.unsure_tokens = carried.unsure_usd, carried.unsure_tokens
        self.held_usd, self.held_tokens = 0.0, 0
        self.refused = 0
        self.largest = Reservation(0.0, 0)
        """The worst case of the largest call so far."""
        self._waiting: list[asyncio.Future[None]] = []

    def require_prices(self, models: Iterable[str], tariffs: Mapping[str, Tariff | None]) -> None:
        """Refuse a dollar cap that cannot be kept because a price is unknown."""
        unknown = [model for model in models if tariffs.get(model) is None]
        if unknown and self.usd is not None and self.tokens is None:
            names = ", ".join(unknown)
            raise UserError(
                f"{names}: price unknown, so the budget of ${self.usd:g} cannot be kept; give it under "
                "models.prices (dollars per million tokens; 0 for a local model), or cap tokens with max_tokens_total"
            )

    async def reserve(
        self, call: ModelCall, tariff: Tariff | None, count: Callable[[str], int] = count_text
    ) -> Reservation | Failed:
        """Set the worst case aside; wait for calls under way when only their reservations stand in the way."""
        wanted = worst_case(call, tariff, count)
        while not self._fits(wanted):
            if self.held_tokens == 0:
                self.refused += 1
                return Failed("budget", False, self._refusal(wanted))
            freed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(freed)
            await freed
        self.held_usd += wanted.usd
        self.held_tokens += wanted.tokens
        self.largest = Reservation(max(self.largest.usd, wanted.usd), max(self.largest.tokens, wanted.tokens))
        return wanted

    def charge(self, reservation: Reservation, usage: Usage | None) -> None:
        """Replace the worst case by what was used; None when nothing was charged."""
        self._release(reservation)
        if usage is not None:
            self.spent_usd += usage.cost_usd or 0.0
            self.spent_tokens += usage.tokens

    def lose(self, reservation: Reservation) -> None:
        """Count the worst case as gone: the provider may have charged it."""
        self._release(reservation)
        self.unsure_usd += reservation.usd
        self.unsure_tokens += reservation.tokens

    def _release(self, reservation: Reservation) -> None:
        self.held_usd -= reservation.usd
        self.held_tokens -= reservation.tokens
        if self.held_tokens == 0:
            self.held_usd = 0.0  # no rounding residue
        waiting, self._waiting = self._waiting, []
        for freed in waiting:
            if not freed.done():
                freed.set_result(None)

    def _fits(self, wanted: Reservation) -> bool:
        dollars = self.spent_usd + self.unsure_usd + self.held_usd + wanted.usd
        tokens = self.spent_tokens + self.unsure_tokens + self.held_tokens + wanted.tokens
        return (self.usd is None or dollars <= self.usd) and (self.tokens is None or tokens <= self.tokens)

    def _refusal(self, wanted: Reservation) -> str:
        if self.usd is not None and self.spent_usd + self.unsure_usd + wanted.usd > self.usd:
            unsure = f" and ${self.unsure_usd:.4f} possibly charged" if self.unsure_usd else ""
            return (
                f"budget of ${self.usd:g} reached: ${self.spent_usd:.4f} spent{unsure}, and the next call may cost "
                f"${wanted.usd:.4f}; raise --budget-usd and resume"
            )
        return (
            f"token cap of {self.tokens:,} reached: {self.spent_tokens + self.unsure_tokens:,} used, and the next call "
            f"may use {wanted.tokens:,}; raise max_tokens_total and resume"
        )
