"""What a search of the removed messages brings back, by compressor: `python -m bench.recovery`.

By rules, over the four generated sessions of `--suite rounds` and over the shipped ones. A second table takes away from
a summary what ties its topics to code names, to see that the look-ups notice it.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from eval_core.base.messages import Message
from eval_core.base.shipped import shipped
from eval_core.compressors.strategies import STRATEGIES
from eval_core.domain.case import Case, load_suite
from eval_core.domain.record import RecoveryRecord
from eval_core.facts.verbatim import Kept
from eval_core.sandbox.targets import BuiltinSubject
from eval_core.strands.recovery import read_recovery
from eval_core.strands.strand import SeenRun
from eval_core.suite.generate import generate
from eval_core.suite.sizes import SIZES

_NAME = re.compile(r"`?[\w./-]*[_/][\w./-]*`?")


def _without_names(state: Sequence[Message]) -> list[Message]:
    """Return a state whose summary names no code any more."""
    return [
        {**message, "content": _NAME.sub("it", message["content"])}
        if str(message.get("content") or "").startswith("[Summary")
        else message
        for message in state
    ]


def recovered(strategy: str, cases: Sequence[Case], *, names: bool = True) -> Iterator[RecoveryRecord]:
    """Compress each session and ask for what it lost."""
    for case in cases:
        made = asyncio.run(BuiltinSubject(strategy).compress(case.fixture, run=0, seed=0))
        if not names:
            made = replace(made, steps=(replace(made.steps[-1], messages=_without_names(made.state)),))
        found = read_recovery(SeenRun(case.fixture, made, Kept(case.fixture.messages, made.state), case.ledger))
        if found is not None:
            yield found


def _row(title: str, records: Sequence[RecoveryRecord]) -> str:
    live, lost = sum(item.live for item in records), sum(item.lost for item in records)
    searched, plain = (sum(getattr(item, name) for item in records) / max(lost, 1) for name in ("searched", "plain"))
    read = sum(item.tokens * item.lost for item in records) / max(lost, 1)
    return f"| {title} | {1 - lost / live:.0%} | {lost} | {searched:.0%} | {plain:.0%} | {read:.0f} |"


def main() -> None:
    """Print the table."""
    generated = [generate(plan) for plan in SIZES["rounds"]]
    recorded = load_suite(shipped("fixtures"), shipped("probes"))
    headings = "| sessions, compressor | kept | lost | by index | by plain text | tokens a question |"
    print(f"{headings}\n|---|---|---|---|---|---|")
    for title, cases in (("generated", generated), ("shipped", recorded)):
        for strategy in STRATEGIES:
            print(_row(f"{title}, {strategy}", list(recovered(strategy, cases))), flush=True)
            if strategy == "regenerative":
                unnamed = list(recovered(strategy, cases, names=False))
                print(_row(f"{title}, {strategy}, summary without code names", unnamed), flush=True)


if __name__ == "__main__":
    main()
