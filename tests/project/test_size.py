"""The product's size: lines of each package, within the budget that docs/architecture.md sets."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[2]
_ROW = re.compile(r"^\| `((?:bot|eval_core)[\w/]*)` \| ([\d,]+) \| ([\d,]+) \|$", re.MULTILINE)
_STEP = 50


def test_no_package_is_larger_than_its_budget() -> None:
    """On failure, or with `-s`, it prints the table as it would be now."""
    lines = Counter[str]()
    for path in [*(ROOT / "bot").rglob("*.py"), *(ROOT / "eval_core").rglob("*.py")]:
        package = "/".join(path.parent.relative_to(ROOT).parts[:2])
        lines[package] += len(path.read_text(encoding="utf-8").splitlines())
    lines = +lines
    table = _ROW.findall((ROOT / "docs/architecture.md").read_text(encoding="utf-8"))
    budget = {package: int(allowed.replace(",", "")) for package, _, allowed in table}
    for package, now in sorted(lines.items()):
        print(f"| `{package}` | {now:,} | {-(-now // _STEP) * _STEP:,} |")
    assert {package: now for package, now in lines.items() if now > budget.get(package, 0)} == {}
    assert set(budget) == set(lines), "a package that is gone leaves the table as well"
