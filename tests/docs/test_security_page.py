"""The page about security: the tests that it names are there, and its table of parsers is that of the fuzzer."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
import small

PAGE = (small.REPOSITORY / "docs" / "security.md").read_text(encoding="utf-8")
PROMISE = re.compile(r"^\| (?P<promise>[^|]+) \| (?P<tests>`[^|]+) \|$", re.MULTILINE)


def _collected(request: pytest.FixtureRequest) -> list[str]:
    """Return the ids of all tests: of this run where it is the whole suite, else of one that only collects."""
    if request.config.args == ["tests"] and not request.config.getoption("keyword"):
        return [item.nodeid for item in request.session.items]
    named = sorted(set(re.findall(r"`(tests/[\w/]+\.py)`", PAGE)) | {"tests/sandbox"})
    command = [sys.executable, "-m", "pytest", "--collect-only", "-p", "no:xdist", *named]
    ran = subprocess.run(command, cwd=small.REPOSITORY, capture_output=True, text=True, check=True)
    return [line for line in ran.stdout.splitlines() if "::" in line]


def test_every_promise_names_tests_that_are_there(request: pytest.FixtureRequest) -> None:
    rows = list(PROMISE.finditer(PAGE))
    assert len(rows) >= 13
    collected = _collected(request)
    named = [name for row in rows for name in re.findall(r"`([\w/.]+)`", row["tests"])]
    missing = [name for name in named if not any(f"{name}::" in test or f"::{name}" in test for test in collected)]
    assert missing == []


def test_every_parser_that_is_fuzzed_is_on_the_page_and_the_sum_is_right() -> None:
    sys.path.insert(0, str(small.REPOSITORY / "bench"))
    try:
        from fuzz import parsers
    finally:
        sys.path.pop(0)
    part = PAGE[PAGE.index("| parser | inputs |") :]
    rows = dict(re.findall(r"^\| ([^|]+?) \| ([\d,]+) \| 0 \|$", part, re.MULTILINE))
    together = int(rows.pop("together").replace(",", ""))
    assert set(rows) == set(parsers())
    assert together == sum(int(inputs.replace(",", "")) for inputs in rows.values())
