"""Printing a report to stdout in the form that was asked for."""

from __future__ import annotations

import click

from eval_core.report.data import ReportData

__all__ = ["print_data"]


def print_data(data: ReportData, form: str) -> None:
    """Print text for people, markdown, JSON for programs, or the HTML page."""
    from eval_core.report.view import make_view

    if form == "json":
        from eval_core.files import pretty
        from eval_core.report.contract import contract

        click.echo(pretty(contract(data)), nl=False)
    elif form == "md":
        from eval_core.report.markdown import render_markdown

        click.echo(render_markdown(make_view(data)), nl=False)
    elif form == "html":
        from eval_core.report.html import render_html

        click.echo(render_html(data), nl=False)
    else:
        from eval_core.report.terminal import console, print_report

        print_report(make_view(data), console())
