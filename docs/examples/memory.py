"""The memory of an agent: what is older than the newest messages becomes a summary."""

from typing import Any

from openai import OpenAI

NEWEST = 12
PROMPT = """Summarise this session for the agent that continues it.
Say what was asked for, which files were written, what was decided, and what is still open.
Copy paths, numbers and ids exactly.

"""


class Memory:
    """Compacts the messages of a session."""

    def __init__(self, client: OpenAI, model: str) -> None:
        """Take the client and the model that write the summary."""
        self._client, self._model = client, model

    def compact(self, messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return the first message, a summary and the newest messages."""
        cut = max(1, len(messages) - NEWEST)
        while cut < len(messages) and messages[cut]["role"] == "tool":
            cut += 1  # a tool's output stays with its call
        older = "\n".join(f"{message['role']}: {message.get('content')}" for message in messages[1:cut])
        reply = self._client.chat.completions.create(
            model=self._model, messages=[{"role": "user", "content": PROMPT + older}]
        )
        return [messages[0], {"role": "user", "content": reply.choices[0].message.content}, *messages[cut:]]
