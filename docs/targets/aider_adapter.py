"""Aider: tool traffic becomes text, the model is reached through litellm's OpenAI route."""

from aider.models import Model


def create(spec):
    """Build the summariser; the address and the token come from the environment."""
    return spec["target"](models=[Model(f"openai/{spec['model']}")], max_tokens=spec["init"]["max_tokens"])


def _flat(message):
    content = message.get("content") or ""
    if isinstance(content, list):
        content = "\n".join(part if isinstance(part, str) else part.get("text", "") for part in content)
    calls = [f"{call['function']['name']}({call['function'].get('arguments', '')})"
             for call in message.get("tool_calls") or ()]  # fmt: skip
    role = "assistant" if message["role"] == "assistant" else "user"
    if message["role"] == "tool":
        content = f"[tool result]\n{content}"
    return {"role": role, "content": "\n".join(part for part in (content, *calls) if part)}


def compress(summary, messages, call):
    """Summarise everything but the system prompt."""
    system = [message for message in messages if message["role"] in ("system", "developer")]
    rest = [_flat(message) for message in messages if message["role"] not in ("system", "developer")]
    return system + summary.summarize(rest)
