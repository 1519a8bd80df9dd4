"""The report as a page."""

from eval_core.reporting.html.page import render_html
from eval_core.reporting.html.several import render_side_by_side, render_trend

__all__ = ["render_html", "render_side_by_side", "render_trend"]
