"""The list of all probes, so that one taken away shows up in review."""

from __future__ import annotations

from collections.abc import Iterable

from eval_core.probe.schema import ProbeBank

__all__ = ["manifest"]


def manifest(banks: Iterable[ProbeBank]) -> list[str]:
    """Return every probe as "fixture/probe", sorted."""
    return sorted(f"{bank.fixture}/{probe.id}" for bank in banks for probe in bank.probes)
