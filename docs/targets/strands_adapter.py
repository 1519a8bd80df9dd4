"""Strands: OpenAI dicts to Bedrock blocks and back, around `reduce_context`, which works in place."""

import json

from strands import Agent
from strands.models.openai import OpenAIModel


def create(spec):
    """Build an agent with the manager under test and a model at the given address."""
    model = OpenAIModel(
        client_args={"base_url": spec["base_url"], "api_key": spec["api_key"], "max_retries": 0},
        model_id=spec["model"],
    )
    init = dict(spec["init"])
    if init.get("summarization_agent") == "own":
        init["summarization_agent"] = Agent(model=model, callback_handler=None)
    manager = spec["target"](**init)
    return Agent(model=model, conversation_manager=manager, callback_handler=None)


def _text(content):
    if isinstance(content, list):
        return "\n".join(part if isinstance(part, str) else part.get("text", "") for part in content)
    return content or ""


def _to_blocks(messages):
    blocks = []
    for message in messages:
        if message["role"] == "tool":
            result = {"toolUseId": message["tool_call_id"], "status": "success",
                      "content": [{"text": _text(message["content"]) or "(empty)"}]}  # fmt: skip
            # The answers to the calls of one turn stand in one message.
            if blocks and blocks[-1]["role"] == "user" and "toolResult" in blocks[-1]["content"][0]:
                blocks[-1]["content"].append({"toolResult": result})
            else:
                blocks.append({"role": "user", "content": [{"toolResult": result}]})
            continue
        content = [{"text": _text(message["content"])}] if _text(message.get("content")) else []
        for call in message.get("tool_calls") or ():
            arguments = json.loads(call["function"].get("arguments") or "{}")
            content.append({"toolUse": {"toolUseId": call["id"], "name": call["function"]["name"], "input": arguments}})
        blocks.append({"role": message["role"], "content": content or [{"text": "(empty)"}]})
    return blocks


def _to_messages(blocks):
    messages = []
    for block in blocks:
        text = "\n".join(part["text"] for part in block["content"] if "text" in part)
        calls = [part["toolUse"] for part in block["content"] if "toolUse" in part]
        results = [part["toolResult"] for part in block["content"] if "toolResult" in part]
        for result in results:
            said = "\n".join(part.get("text", "") for part in result["content"])
            messages.append({"role": "tool", "tool_call_id": result["toolUseId"], "content": said})
        if results and not text:
            continue
        message = {"role": block["role"], "content": text or None}
        if calls:
            message["tool_calls"] = [
                {"id": call["toolUseId"], "type": "function",
                 "function": {"name": call["name"], "arguments": json.dumps(call["input"])}}
                for call in calls
            ]  # fmt: skip
        messages.append(message)
    return messages


def compress(agent, messages, call):
    """Reduce everything but the system prompt; an overflow is what makes a failure raise."""
    system = [message for message in messages if message["role"] in ("system", "developer")]
    rest = [message for message in messages if message["role"] not in ("system", "developer")]
    agent.messages[:] = _to_blocks(rest)
    agent.conversation_manager.reduce_context(agent, e=RuntimeError("the context is full"))
    return system + _to_messages(agent.messages)
