"""What ships with the program besides code: fixtures, probes, baselines, targets and schemas."""

from __future__ import annotations

from pathlib import Path

_PACKAGED = Path(__file__).resolve().parents[1] / "shipped"
_CHECKOUT = Path(__file__).resolve().parents[2]


def shipped(name: str = "") -> Path:
    """Return the path of something shipped, such as `fixtures` or `docs/targets/hermes.yml`.

    A wheel holds it as package data, a checkout at its top level; below that the layout is the same.
    """
    root = _PACKAGED if _PACKAGED.is_dir() else _CHECKOUT
    return root / name if name else root
