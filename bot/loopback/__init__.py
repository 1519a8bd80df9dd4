"""A strict GitHub on loopback, for the demonstration and the tests: it pages, limits and refuses like the real one."""

from __future__ import annotations

from bot.loopback.faults import Fault
from bot.loopback.server import LoopbackGitHub, Seen

__all__ = ["Fault", "LoopbackGitHub", "Seen"]
