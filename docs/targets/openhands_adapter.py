"""OpenHands: OpenAI messages to the events of its view and back, around `condense`."""

import uuid

from openhands.sdk.context.view import View
from openhands.sdk.event import ActionEvent, MessageEvent, ObservationEvent
from openhands.sdk.event.base import LLMConvertibleEvent
from openhands.sdk.event.condenser import Condensation, CondensationRequest
from openhands.sdk.llm import LLM, Message, MessageToolCall, TextContent
from openhands.sdk.tool.schema import Observation
from pydantic import SecretStr

PLAIN = {"cache_enabled": False, "vision_enabled": False, "function_calling_enabled": True,
         "force_string_serializer": True, "send_reasoning_content": False}  # fmt: skip


class RecordedOutput(Observation):
    """What a tool returned when the session was recorded."""


class Conversation:
    """A condenser and the events it works on: a second compression sees the first one's summary as an event."""

    def __init__(self, condenser):
        self.condenser, self.events, self.returned = condenser, [], 0


def create(spec):
    """Build the condenser with a model at the given address."""
    llm = LLM(model=f"openai/{spec['model']}", base_url=spec["base_url"], api_key=SecretStr(spec["api_key"]),
              num_retries=0, usage_id="condenser")  # fmt: skip
    return Conversation(spec["target"](llm=llm, **spec["init"]))


def _text(content):
    if isinstance(content, list):
        content = "\n".join(part if isinstance(part, str) else part.get("text", "") for part in content)
    return [TextContent(text=content)] if content else []


def _add(events, messages):
    """Append messages as events: every call is an action of its own, and its answer an observation."""
    actions = {}
    for message in messages:
        content = _text(message.get("content"))
        if message["role"] == "tool":
            action = actions[message["tool_call_id"]]
            events.append(
                ObservationEvent(observation=RecordedOutput(content=content), action_id=action.id,
                                 tool_name=action.tool_name, tool_call_id=action.tool_call_id)
            )  # fmt: skip
        elif message.get("tool_calls"):
            reply = str(uuid.uuid4())
            for number, call in enumerate(message["tool_calls"]):
                function = call["function"]
                asked = MessageToolCall(id=call["id"], name=function["name"], arguments=function["arguments"] or "{}",
                                        origin="completion")  # fmt: skip
                action = ActionEvent(thought=[] if number else content, action=None, tool_name=asked.name,
                                     tool_call_id=asked.id, tool_call=asked, llm_response_id=reply)  # fmt: skip
                actions[asked.id] = action
                events.append(action)
        else:
            source = "user" if message["role"] == "user" else "agent"
            events.append(MessageEvent(source=source, llm_message=Message(role=message["role"], content=content)))


def compress(conversation, messages, call):
    """Ask for a condensation, as a user or a full window does, of everything but the system prompt."""
    system = [message for message in messages if message["role"] in ("system", "developer")]
    rest = [message for message in messages if message["role"] not in ("system", "developer")]
    _add(conversation.events, rest[conversation.returned :])
    asked = [*conversation.events, CondensationRequest()]
    done = conversation.condenser.condense(View.from_events(asked))
    if isinstance(done, Condensation):
        conversation.events = View.from_events([*asked, done]).events
    state = []
    for message in LLMConvertibleEvent.events_to_messages(list(conversation.events)):
        plain = {key: value for key, value in message.to_chat_dict(**PLAIN).items() if key in
                 ("role", "content", "tool_calls", "tool_call_id")}  # fmt: skip
        state.append({"content": None, **plain})
    conversation.returned = len(state)
    return system + state
