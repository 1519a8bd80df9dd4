"""Errors in the providers' published shapes: what they are about, what they say, and how long to wait."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from eval_core.models.faults import fault_of_status


def anthropic(kind: str, message: str) -> dict[str, Any]:
    return {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"}


def google(code: int, message: str, *details: dict[str, Any]) -> dict[str, Any]:
    return {"error": {"code": code, "message": message, "status": "X", "details": list(details)}}


def openai(message: str, code: object = None, **more: Any) -> dict[str, Any]:
    return {"error": {"message": message, "type": "t", "param": None, "code": code, **more}}


DAY = "Rate limit of 50 per 86400s exceeded for UserByModelByDay. Please wait 24367 seconds before retrying."
LOW = "Your credit balance is too low to access the Anthropic API."
RAW = {"metadata": {"raw": '{"error": {"message": "upstream is full"}}', "provider_name": "X"}}
CASES: list[tuple[int, object, dict[str, str], str, str, float | None]] = [
    # Anthropic
    (529, anthropic("overloaded_error", "Overloaded"), {}, "server", "Overloaded", None),
    (429, anthropic("rate_limit_error", "too fast"), {"retry-after": "12"}, "rate_limit", "too fast", 12),
    (400, anthropic("invalid_request_error", LOW), {}, "payment", LOW, None),
    (400, anthropic("invalid_request_error", "prompt is too long: 9 > 8"), {}, "context_length", "prompt is too", None),
    # Azure
    (400, openai("filtered", "content_filter", innererror={"code": "X"}), {}, "refusal", "filtered", None),
    (401, {"statusCode": 401, "message": "Unauthorized."}, {}, "auth", "Unauthorized.", None),
    (429, openai("Please retry after 26 seconds.", "429"), {}, "rate_limit", "Please retry", 26),
    # Bedrock
    (429, {"message": "Too many requests, please wait."}, {}, "rate_limit", "Too many requests", None),
    (400, {"message": "Too many tokens per day."}, {"x-amzn-ErrorType": "ThrottlingException"}, "rate_limit", "", None),
    (400, {"message": "The provided model identifier is invalid."}, {}, "not_found", "The provided model", None),
    (424, {"message": "model error"}, {}, "server", "model error", None),
    # Vertex and Gemini
    (429, google(429, "Resource exhausted."), {}, "rate_limit", "Resource exhausted.", None),
    (429, google(429, "quota", {"@type": "RetryInfo", "retryDelay": "37s"}), {}, "rate_limit", "quota", 37),
    (400, google(400, "API key not valid.", {"reason": "API_KEY_INVALID"}), {}, "auth", "API key not valid.", None),
    (400, google(400, "count (9) exceeds the maximum number of tokens allowed (8)."), {}, "context_length", "", None),
    # OpenAI
    (429, openai("You exceeded your quota", "insufficient_quota"), {}, "payment", "You exceeded", None),
    (429, openai("Please try again in 1m30s. Visit us"), {}, "rate_limit", "Please try again", 90),
    (429, openai("Please try again in 250ms."), {"retry-after-ms": "300"}, "rate_limit", "Please try", 0.3),
    # GitHub Models
    (413, openai("Max size: 8000 tokens.", "tokens_limit_reached"), {}, "context_length", "", None),
    (429, openai(DAY, "RateLimitReached"), {}, "rate_limit", DAY, 24_367),
    (429, openai("slow"), {"x-ratelimit-timeremaining": "14"}, "rate_limit", "slow", 14),
    (400, openai("Unknown model: gpt-x", "unknown_model"), {}, "not_found", "Unknown model: gpt-x", None),
    (401, "Unauthorized", {}, "auth", "Unauthorized", None),
    # OpenRouter
    (402, openai("requires more credits", 402), {}, "payment", "requires more credits", None),
    (502, openai("Provider returned error", 502, **RAW), {}, "server", "error: upstream is full", None),
    (400, openai("x/y is not a valid model ID", 400), {}, "not_found", "x/y is not", None),
    (403, openai('Your input was flagged for "violence".', 403), {}, "refusal", "Your input", None),
    (404, openai("No endpoints found that support tool use.", 404), {}, "bad_request", "No endpoints", None),
    # Ollama and vLLM
    (404, openai('model "x" not found, try pulling it first'), {}, "not_found", "try pulling it first", None),
    (404, {"object": "error", "message": "The model `x` does not exist."}, {}, "not_found", "The model `x`", None),
    (422, {"detail": [{"loc": ["body"], "msg": "field required"}]}, {}, "bad_request", "field required", None),
    (401, {"error": "Unauthorized"}, {}, "auth", "Unauthorized", None),
]  # fmt: skip


@pytest.mark.parametrize(("status", "body", "headers", "kind", "said", "wait"), CASES)
def test_an_error_is_told_in_the_providers_sentence(
    status: int, body: object, headers: dict[str, str], kind: str, said: str, wait: float | None
) -> None:
    for indent in (None, 2):  # Google's are written over several lines
        fault = fault_of_status(status, body if isinstance(body, str) else json.dumps(body, indent=indent), headers)
        assert (fault.kind, fault.charge, fault.retry_after) == (kind, "no", wait)
        assert said in fault.message
        assert fault.message.startswith(f"HTTP {status}: ")
        assert "{" not in fault.message


def test_a_moment_at_which_a_limit_ends_is_a_wait_until_then() -> None:
    later = int((time.time() + 7_200) * 1_000)
    body = openai("free-models-per-day", 429, metadata={"headers": {"X-RateLimit-Reset": str(later)}})
    for headers, text in (({"X-RateLimit-Reset": str(later // 1_000)}, "{}"), ({}, json.dumps(body))):
        wait = fault_of_status(429, text, headers).retry_after
        assert wait == pytest.approx(7_200, abs=60)


@pytest.mark.parametrize("body", ["{", "[1]", "{}", '{"error": null}', '{"error": {"message": 5}}', "{" * 5_000])
def test_a_body_in_no_known_shape_is_shown_as_it_is(body: str) -> None:
    assert fault_of_status(500, body).message.startswith("HTTP 500")
