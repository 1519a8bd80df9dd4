"""The table of real agents: one row for each shipped target, dated, with a version and all three models."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from bench.targets import BEGIN, END, PAGE, RECIPES, TARGETS, UNDRIVEN, busy, main, write_table


def rows() -> dict[str, list[str]]:
    """Return the cells of every row of the page's table by what the row is about."""
    _, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    lines = [line for line in rest.partition(END)[0].splitlines() if line.startswith("|")][2:]
    cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]
    return {re.sub(r"\[(.+)\]\(.+\)", r"\1", row[0]): row for row in cells}


def test_every_shipped_target_is_driven_by_the_command() -> None:
    assert {path.stem for path in TARGETS.glob("*.yml")} == RECIPES.keys()


@pytest.mark.parametrize("name", RECIPES)
def test_a_row_says_what_was_installed_and_what_it_came_to(name: str) -> None:
    _, version, _, outcome, _, left, steps, _, others = rows()[name.replace("_", " ")]
    package, _, number = version.rpartition(" ")
    assert package == RECIPES[name].package
    assert re.match(r"\d+\.\d+", number)
    assert (outcome, len(steps.split(";"))) == ("ok", 3)
    assert int(left) > 0
    # A model that is down or silent never comes to a result that is scored.
    assert others in ("infra / bad_completion", "- / -")


def test_what_could_not_be_driven_has_its_reason() -> None:
    table = rows()
    for name in UNDRIVEN:
        assert "not driven: " in table[name][3]


def test_the_table_has_a_date() -> None:
    assert re.search(r"^Measured on 20\d\d-\d\d-\d\d with Python ", PAGE.read_text(encoding="utf-8"), re.MULTILINE)


def test_a_part_of_the_agents_never_replaces_the_table_of_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = PAGE.read_bytes()
    monkeypatch.setattr(sys, "argv", ["targets", str(tmp_path), "--only", "headroom", "--write"])
    with pytest.raises(SystemExit):
        main()
    assert "leave out --only" in capsys.readouterr().err
    assert PAGE.read_bytes() == before


def test_the_table_is_put_between_its_marks() -> None:
    assert write_table(f"above\n{BEGIN}\nold\n{END}\nbelow", "new") == f"above\n{BEGIN}\nnew\n{END}\nbelow"


def test_a_busy_machine_is_told_beside_the_times() -> None:
    assert busy(1.9, 2) == ""
    assert "a load of 19 on 2 processors" in busy(19.2, 2)
