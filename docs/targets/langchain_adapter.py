"""LangChain: OpenAI dicts to LangChain messages and back, around the middleware's own hook."""

from langchain_core.messages import RemoveMessage, convert_to_messages
from langchain_core.messages.utils import convert_to_openai_messages
from langchain_openai import ChatOpenAI


def create(spec):
    """Build the middleware with a chat model that speaks to the given address."""
    init = dict(spec["init"])
    model = ChatOpenAI(
        model=init.pop("model"), base_url=spec["base_url"], api_key=spec["api_key"], max_retries=0, temperature=0
    )
    init["keep"] = tuple(init["keep"])
    # Any number of messages is enough: when to compress is the evaluation's decision, not the threshold's.
    return spec["target"](model=model, trigger=("messages", 1), **init)


def compress(middleware, messages, call):
    """Run the hook on everything but the system prompt, which an agent keeps apart."""
    system = [message for message in messages if message["role"] in ("system", "developer")]
    rest = [message for message in messages if message["role"] not in ("system", "developer")]
    update = middleware.before_model({"messages": convert_to_messages(rest)}, None)
    if update is None:
        return messages
    kept = [message for message in update["messages"] if not isinstance(message, RemoveMessage)]
    return system + convert_to_openai_messages(kept)
