"""A stand-in with the manners of Hermes' compressor: its constructor, its silences, its cool-down.

Head (system and first exchange) and tail stay verbatim; one summary message takes the middle.
"""

from __future__ import annotations

import datetime
import json
import time
import urllib.error
import urllib.request
from pathlib import Path

FALLBACK = "[Summary unavailable: earlier turns were removed.]"
PREFIX = "[CONTEXT COMPACTION] Earlier turns were compacted into the summary below.\n\n"
COOLDOWN_S = 600.0


class ContextCompressor:
    """Compress the middle of a conversation with one model call."""

    def __init__(
        self,
        model: str,
        threshold_percent: float = 0.5,
        protect_first_n: int = 3,
        protect_last_n: int = 2,
        quiet_mode: bool = False,
        base_url: str = "",
        api_key: str = "",
        config_context_length: int | None = None,
        provider: str = "",
    ) -> None:
        self.model, self.provider, self.base_url, self.api_key = model, provider, base_url, api_key
        self.protect_first_n, self.protect_last_n = protect_first_n, protect_last_n
        self._last_summary_fallback_used = False
        self._last_summary_error: str | None = None
        self._cooldown_until = 0.0
        self.timeout = 60.0
        config = Path("~/.hermes/config.yaml").expanduser()
        if config.exists() and "timeout: 60" not in config.read_text():
            raise ValueError("the stand-in's test writes the configuration that the shipped spec names")
        if not quiet_mode:
            print("context compressor ready")
        if config_context_length is None and provider == "custom":
            for _ in range(6):
                self._get("/models")

    def _get(self, path: str) -> None:
        request = urllib.request.Request(self.base_url + path, headers={"Authorization": f"Bearer {self.api_key}"})
        with urllib.request.urlopen(request, timeout=self.timeout) as response:
            response.read()

    def _generate_summary(self, turns: list[dict], focus_topic: str | None) -> str | None:
        if self.provider != "custom":
            return None
        text = "\n".join(f"{turn['role']}: {turn.get('content') or ''}" for turn in turns)
        today = datetime.datetime.now(datetime.UTC).date()
        prompt = f"Today is {today}. Summarise, with focus on {focus_topic}:\n{text}"
        body = {"model": self.model, "messages": [{"role": "user", "content": prompt}], "max_tokens": 4000}
        request = urllib.request.Request(
            self.base_url + "/chat/completions",
            data=json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {self.api_key}", "Content-Type": "application/json"},
        )
        try:
            with urllib.request.urlopen(request, timeout=self.timeout) as response:
                return json.load(response)["choices"][0]["message"]["content"] or ""
        except urllib.error.HTTPError as exc:
            self._last_summary_error = f"HTTP {exc.code}"
        except OSError as exc:
            self._last_summary_error = type(exc).__name__
        self._last_summary_fallback_used = True
        self._cooldown_until = time.monotonic() + COOLDOWN_S
        return None

    def compress(
        self,
        messages: list[dict],
        current_tokens: int | None = None,
        focus_topic: str | None = None,
        force: bool = False,
    ) -> list[dict]:
        """Return head, summary and tail; never raise."""
        self._last_summary_fallback_used, self._last_summary_error = False, None
        end = len(messages) - self.protect_last_n
        while end > 0 and messages[end].get("role") == "tool":
            end -= 1
        head, middle, tail = messages[: self.protect_first_n], messages[self.protect_first_n : end], messages[end:]
        if not middle:
            return messages
        summary = None
        if force or time.monotonic() >= self._cooldown_until:
            summary = self._generate_summary(middle, focus_topic)
        text = FALLBACK if summary is None else PREFIX + summary
        return [*head, {"role": "user", "content": text}, *tail]
