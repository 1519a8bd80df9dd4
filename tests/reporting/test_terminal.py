"""The terminal report: verdict first, plain when piped, and nothing in it steers the terminal."""

from __future__ import annotations

import io

import pytest
import report_world
from golden_file import assert_golden
from rich.console import Console

from eval_core.comparing.compare import ReportData
from eval_core.reporting.terminal import console, plain_table, print_report
from eval_core.reporting.view import make_view


def printed(data: ReportData) -> str:
    stream = io.StringIO()
    print_report(make_view(data), console(stream))
    return stream.getvalue()


@pytest.mark.parametrize("name", report_world.REPORTS)
def test_the_report_reads_as_reviewed(name: str) -> None:
    lines = printed(report_world.REPORTS[name]()).splitlines()
    assert_golden(f"{name}.txt", "\n".join(line.rstrip() for line in lines) + "\n")


def test_the_verdict_is_the_first_line_and_a_pipe_gets_no_colour() -> None:
    text = printed(report_world.regressed())
    assert text.startswith("Regressed: ")
    assert "\x1b" not in text


def test_a_terminal_gets_colour_unless_it_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    def shown() -> str:
        stream = Terminal()
        print_report(make_view(report_world.regressed()), console(stream))
        return stream.getvalue()

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
    out: Console = console(stream)
    table = plain_table("t", "", "interval")
    table.add_row("facts", "[unknown]")
    out.print(table)
    assert "[unknown]" in stream.getvalue()
