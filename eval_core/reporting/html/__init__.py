"""The report as a page."""

from eval_core.reporting.html.page import render_html

__all__ = ["render_html"]
