"""Reviewing drafts at a terminal: what a machine has proposed is kept, edited or dropped, one by one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import click
from pydantic import BaseModel

from eval_core.base.errors import UserError
from eval_core.base.files import parse, pretty, write_atomic
from eval_core.base.messages import full_text
from eval_core.base.strict_json import BadJson, parse_json
from eval_core.domain.fixture import Fixture
from eval_core.domain.probe import Probe
from eval_core.domain.session_ledger import LedgerLine

_Bank = TypeVar("_Bank", bound=BaseModel)
_CHOICES = click.Choice(["k", "e", "d", "s", "q"])
_EXCERPT = 160
_MOST_EXCERPTS = 3


def review(bank: _Bank, field: str, path: Path, session: Fixture, dump: Callable[[_Bank], str]) -> int:
    """Ask about every draft of a bank or a ledger, store each answer at once, and return how many drafts are left."""
    drafts = [item.id for item in getattr(bank, field) if item.draft]
    for number, name in enumerate(drafts, 1):
        items: list[Probe | LedgerLine] = list(getattr(bank, field))
        at = next(index for index, item in enumerate(items) if item.id == name)
        _show(items[at], session, f"{number} of {len(drafts)}")
        choice = click.prompt("[k]eep, [e]dit, [d]rop, [s]kip, [q]uit", type=_CHOICES, show_choices=False)
        if choice == "q":
            break
        if choice == "s":
            continue
        kept = [] if choice == "d" else [_edited(items[at]) if choice == "e" else items[at]]
        items[at : at + 1] = [item.model_copy(update={"draft": False}) for item in kept]
        try:
            parse(type(bank), {**bank.model_dump(by_alias=True), field: items}, str(path))
        except UserError as exc:
            click.echo(f"Not stored: {exc}")
            continue
        bank = bank.model_copy(update={field: items})
        write_atomic(path, dump(bank))
    return sum(item.draft for item in getattr(bank, field))


def _show(item: Probe | LedgerLine, session: Fixture, place: str) -> None:
    """Print a draft with the messages that it is taken from."""
    click.echo(f"\n{place}  {item.id}")
    if isinstance(item, Probe):
        click.echo(f"  {item.type}: {item.question}")
        click.echo("  " + "; ".join(fact.label for fact in item.expected_facts))
        indexes = sorted({index for fact in item.expected_facts for index in fact.evidence or ()})
    else:
        click.echo(f"  {item.kind}, by {item.speaker}: {item.text}")
        indexes = item.said
    for index in indexes[:_MOST_EXCERPTS]:
        text = " ".join(full_text(session.messages[index]).split())
        click.echo(f"  message {index}: {text[:_EXCERPT]}{'...' if len(text) > _EXCERPT else ''}")


def _edited(item: Probe | LedgerLine) -> Probe | LedgerLine:
    """Let the user change a draft in an editor, again and again until it can be read."""
    text = pretty(item.model_dump(mode="json", by_alias=True, exclude_none=True, exclude={"draft"}))
    while True:
        text = click.edit(text, extension=".json") or text
        try:
            return parse(type(item), parse_json(text.encode()), item.id)
        except (UserError, BadJson) as exc:
            click.echo(f"{exc}")
            if not click.confirm("Edit it again?", default=True):
                return item
