"""The report as a page."""

from eval_core.report.html.page import render_html

__all__ = ["render_html"]
