"""Hermes: ask the compressor whether it fell back to its static text."""


def status(compressor):
    """Read the two fields that Hermes sets after a failed summary."""
    return {
        "degraded": bool(getattr(compressor, "_last_summary_fallback_used", False)),
        "error": getattr(compressor, "_last_summary_error", None),
    }
