"""Which protocol a request speaks: by its address, with or without the version in front."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import unquote

from eval_core.sandbox.protocol.anthropic_messages import AnthropicMessages
from eval_core.sandbox.protocol.dialect import ChatBody, Dialect
from eval_core.sandbox.protocol.gemini import Gemini
from eval_core.sandbox.protocol.openai_chat import OpenAIChat
from eval_core.sandbox.protocol.openai_responses import OpenAICompact, OpenAIResponses

SERVED = (
    "served are /v1/chat/completions, /v1/responses, /v1/responses/compact, /v1/messages, "
    "/v1beta/models/MODEL:generateContent and /v1/models"
)
_VERSION = re.compile(r"^/(?:v1beta|v1alpha|v1)(?=/)")
_GEMINI = re.compile(r"^/models/(?P<model>.+):(?P<action>generateContent|streamGenerateContent|countTokens)$")


@dataclass(frozen=True)
class Route:
    """What is asked for: a reply of the model, a count of tokens, or the list of models."""

    kind: Literal["reply", "count", "models", "hello"]
    dialect: Dialect
    model: str = ""
    """Of which the description is asked for; empty for all."""


def route(method: str, path: str) -> Route | None:
    """Find the protocol of an address; None where nothing is served."""
    path = "/" + unquote(path).lstrip("/").rstrip("/")
    # Some clients add /v1 to a base address that has it already.
    while (shorter := _VERSION.sub("", path)) != path:
        path = shorter
    if method in ("GET", "HEAD"):
        if path == "/":
            return Route("hello", OpenAIChat())
        if path == "/models" or path.startswith("/models/"):
            return Route("models", OpenAIChat(), path.removeprefix("/models").strip("/"))
        return None
    if method != "POST":
        return None
    if found := _GEMINI.match(path):
        dialect = Gemini(found["model"], stream=found["action"] == "streamGenerateContent")
        return Route("count" if found["action"] == "countTokens" else "reply", dialect)
    replies: dict[str, Dialect] = {
        "/chat/completions": OpenAIChat(),
        "/responses": OpenAIResponses(),
        "/responses/compact": OpenAICompact(),
        "/messages": AnthropicMessages(),
    }
    if path == "/messages/count_tokens":
        return Route("count", AnthropicMessages())
    return Route("reply", replies[path]) if path in replies else None


def model_list(model: str, asked: str = "") -> dict[str, Any]:
    """Describe the one model that is served, in the fields of every protocol's list."""
    described = {
        "id": model, "object": "model", "created": 0, "owned_by": "evaluation", "type": "model", "display_name": model,
        "created_at": "1970-01-01T00:00:00Z", "name": f"models/{model}",
    }  # fmt: skip
    if asked:
        return described
    return {"object": "list", "data": [described], "models": [], "has_more": False, "first_id": model, "last_id": model}


def counted(asked: ChatBody, dialect: Dialect) -> dict[str, Any]:
    """Answer a request for a count with an estimate; nothing is sent anywhere."""
    tokens = len(str(asked.body.get("messages"))) // 4 + len(str(asked.body.get("tools") or "")) // 4
    return {"totalTokens": tokens} if isinstance(dialect, Gemini) else {"input_tokens": tokens}
