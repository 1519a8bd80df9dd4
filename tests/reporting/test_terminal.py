"""The terminal report: verdict first, plain when piped, and nothing in it steers the terminal."""

from __future__ import annotations

import io
import re

import page_world
import pytest
import report_world
from golden_file import assert_golden

from eval_core.comparing.compare import ReportData
from eval_core.reporting.terminal import console, print_report, print_table
from eval_core.reporting.view import make_view


def printed(data: ReportData, *, details: bool = True, where: str = "") -> str:
    stream = io.StringIO()
    print_report(make_view(data), console(stream), details=details, where=where)
    return stream.getvalue()


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def on_terminal(data: ReportData, columns: int, monkeypatch: pytest.MonkeyPatch, *, details: bool = True) -> str:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", str(columns))
    stream = Terminal()
    print_report(make_view(data), console(stream), details=details, where="results/x/report.html")
    return stream.getvalue()


@pytest.mark.parametrize("name", report_world.REPORTS)
def test_the_report_reads_as_reviewed(name: str) -> None:
    lines = printed(report_world.REPORTS[name]()).splitlines()
    assert_golden(f"{name}.txt", "\n".join(line.rstrip() for line in lines) + "\n")


@pytest.mark.parametrize("name", report_world.REPORTS)
def test_without_details_it_fits_on_a_screen(name: str) -> None:
    text = printed(report_world.REPORTS[name](), details=False, where="results/x/report.html")
    assert_golden(f"{name}-brief.txt", text)
    assert len(text.splitlines()) <= 15
    assert text.splitlines()[-1] == "Report: results/x/report.html (`report --details` prints the tables)"


def test_the_error_of_a_broken_compressor_is_not_cut_at_the_edge(monkeypatch: pytest.MonkeyPatch) -> None:
    error = f"agent.memory imports 'tiktoken', which the interpreter lacks; {'install it. ' * 20}(the end)"
    text = on_terminal(report_world.broken(error), 60, monkeypatch, details=False)
    assert "(the end)" in " ".join(text.split())


def test_the_three_worst_losses_are_told_each_value_once() -> None:
    lines = printed(page_world.recorded(), details=False).splitlines()
    at = next(number for number, line in enumerate(lines) if line.startswith("Lost: "))
    assert lines[at + 1].startswith(
        "  8443: gone in 6 of 6 runs, message 1 of deploy / recall-port (baseline kept it in 100 %)"
    )
    assert lines[at + 2].startswith("  8443: gone in 6 of 6 runs, message 1 of migrate / recall-port")


@pytest.mark.parametrize("columns", [40, 80])
def test_a_narrow_terminal_still_tells_in_how_many_runs_and_in_which_message(
    columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = on_terminal(page_world.recorded(), columns, monkeypatch, details=False)
    told = " ".join(re.sub(r"\x1b\[[\d;]*m", "", text).split())
    assert "8443: gone in 6 of 6 runs, message 1 of deploy" in told


def test_without_a_report_on_disk_it_says_how_to_get_one() -> None:
    text = printed(page_world.recorded(), details=False)
    assert text.splitlines()[-1] == "Tables: --details. The page with both summaries: --format html > report.html"
    assert len(text.splitlines()) <= 15


def test_a_narrow_terminal_gets_blocks_instead_of_a_table_in_shreds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    text = on_terminal(report_world.regressed(), 40, monkeypatch)
    lines = [re.sub(r"\x1b\[\d*m", "", line).rstrip() for line in text.splitlines()]
    assert max(map(len, lines)) <= 40
    at = lines.index("Medians by fixture")
    assert lines[at + 1 : at + 3] == ["deploy", "  Accuracy: 2.80 (−1.50†)"]


def test_the_verdict_is_the_first_line_with_its_mark_and_a_pipe_gets_no_colour() -> None:
    text = printed(report_world.regressed())
    assert text.startswith("▼ Regressed: ")
    assert "\x1b" not in text


def test_a_terminal_gets_colour_unless_it_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def shown() -> str:
        return on_terminal(report_world.regressed(), 100, monkeypatch)

    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert "\x1b[1;31m" in shown()
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[1;31m" not in shown()


def test_text_of_a_compressor_neither_steers_the_terminal_nor_hides() -> None:
    text = printed(report_world.incomplete(text="\x1b[2J\x07 [red]seen[/red] :warning: [/] \u202egpj.exe"))
    assert "\x1b" not in text
    assert "\x07" not in text
    assert "\u202e" not in text
    assert "[red]seen[/red] :warning: [/]" in text


def test_words_in_brackets_stay_in_a_table() -> None:
    stream = io.StringIO()
    print_table(console(stream), "t", ("", "interval"), [("facts", "[unknown]")])
    assert "[unknown]" in stream.getvalue()
