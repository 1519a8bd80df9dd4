"""One name, one class; and every test file stands alone."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[2]
_OF_A_TEST = re.compile(r"^\s*(?:from|import) (?:[\w.]*\.)?test_\w+", re.MULTILINE)


def test_no_public_class_name_means_two_things() -> None:
    places = defaultdict(list)
    for package in ("bot", "eval_core"):
        for path in sorted((ROOT / package).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    places[node.name].append(str(path.relative_to(ROOT)))
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


def test_no_test_file_imports_another() -> None:
    found = {
        str(path.relative_to(ROOT)): match.group(0).strip()
        for path in sorted((ROOT / "tests").rglob("*.py"))
        if (match := _OF_A_TEST.search(path.read_text(encoding="utf-8")))
    }
    assert found == {}


def test_no_two_test_files_share_a_name() -> None:
    # pytest imports files of folders that are no packages by their bare name, and takes the second for the first.
    places = defaultdict(list)
    for path in sorted((ROOT / "tests").rglob("*.py")):
        if not (path.parent / "__init__.py").exists() and path.name != "conftest.py":
            places[path.name].append(str(path.relative_to(ROOT)))
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


def test_no_module_name_means_two_things() -> None:
    # A command's module is named for the command, and a step's for the step.
    places = defaultdict(list)
    for package in ("bot", "eval_core"):
        for path in sorted((ROOT / package).rglob("*.py")):
            if not path.stem.startswith("__") and path.parent.name not in ("cli", "steps"):
                places[path.stem].append(str(path.relative_to(ROOT)))
    assert {name: found for name, found in places.items() if len(found) > 1} == {}
