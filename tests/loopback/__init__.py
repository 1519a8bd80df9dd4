"""A strict GitHub on loopback, for the demonstration and the tests: it pages, limits and refuses like the real one."""

from __future__ import annotations

from loopback.injected_faults import InjectedFault
from loopback.server import LoopbackGitHub, Seen

__all__ = ["InjectedFault", "LoopbackGitHub", "Seen"]
