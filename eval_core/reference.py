"""The other side of a comparison: which one it is, and whether it is comparable, before anything is spent."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from eval_core.baseline import find_baseline
from eval_core.compare.comparison import load_side
from eval_core.compare.fingerprint import Fingerprint, differences
from eval_core.compare.sides import narrowed
from eval_core.measurement import Measurement

__all__ = ["Reference", "find_reference", "stored_reference"]


@dataclass(frozen=True)
class Reference:
    """A stored measurement, and whether a run with this fingerprint can be compared with it."""

    path: Path
    comparable: bool

    @cached_property
    def measurement(self) -> Measurement:
        """The measurement itself."""
        return load_side(self.path)


def stored_reference(baselines: Path, fingerprint: Fingerprint) -> Reference | None:
    """Return the stored baseline that is nearest to a fingerprint."""
    found = find_baseline(baselines, fingerprint)
    return Reference(found[0], not found[1]) if found else None


def find_reference(compare_to: str, root: Path, baselines: Path, fingerprint: Fingerprint) -> Reference | None:
    """Return what `--compare-to` names: none, a path, or with auto the nearest baseline."""
    if compare_to == "none":
        return None
    if compare_to == "auto":
        return stored_reference(baselines, fingerprint)
    path = root / compare_to
    base = load_side(path).fingerprint
    return Reference(path, not differences(narrowed(base, fingerprint.fixtures), fingerprint))
