from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import signal
from pathlib import Path

import aiohttp
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_core.domain.call import Completion, Draw, Failed, Usage
from eval_core.sandbox.gateway import Gateway, GatewayLimits
from eval_core.sandbox.memory import process_family
from eval_core.sandbox.request import Refusal, read_object, read_request
from tests.foreign import json_values

HELLO = [{"role": "user", "content": "hello"}]


def reading(arguments, name="read"):
    call = {"id": "c", "type": "function", "function": {"name": name, "arguments": arguments}}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


def offered(parameters):
    return {"type": "function", "function": {"name": "read", "parameters": parameters}}


def shaped(schema):
    return {"type": "json_schema", "json_schema": {"schema": schema}}


READ = reading("{}")
ANSWER = {"role": "tool", "tool_call_id": "c", "content": "r"}


def talk(body, *, answer="fine", token=None, limits=None, path="/v1/chat/completions", times=1, method="POST"):
    """Send one body some times; return the last status and text, the gateway and the calls that went through."""
    calls = []

    async def complete(call):
        calls.append(call)
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, Failed):
            return answer
        return Completion(answer, Usage(7, 0, 3, 0.5), "provider/real", 0.1)

    async def main(folder):
        gateway = Gateway(model="served", complete=complete, draw=Draw(4), limits=limits)
        headers = {"Authorization": f"Bearer {gateway.token if token is None else token}"}
        async with gateway.serve(folder) as socket:
            connector = aiohttp.UnixConnector(str(socket))
            async with aiohttp.ClientSession(connector=connector, headers=headers) as session:
                for _ in range(times):
                    data = body if isinstance(body, bytes) else json.dumps(body)
                    async with session.request(method, f"http://gateway{path}", data=data) as response:
                        text, status, sent = await response.text(), response.status, response.headers
        return status, text, sent, gateway, calls

    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        return asyncio.run(main(Path(folder)))


def test_the_run_s_model_answers_whatever_model_was_asked_for():
    status, text, _, gateway, calls = talk({"model": "gpt-dearest", "messages": HELLO, "temperature": 0.2})
    answer = json.loads(text)
    assert status == 200
    assert answer["choices"][0]["message"]["content"] == "fine"
    assert answer["choices"][0]["finish_reason"] == "stop"
    assert answer["usage"] == {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
    first = calls[0]
    assert (first.model, first.draw, first.role, first.temperature) == (
        "served",
        Draw(4),
        "compressor",
        0.2,
    )
    assert gateway.log.records[0].asked_for == ("gpt-dearest",)


def test_text_of_any_script_passes_and_halves_of_characters_do_not_stop_it():
    body = {"messages": [{"role": "user", "content": "größer 漢字 \U0001f600 half \ud83d"}]}
    status, text, _, gateway, calls = talk(body, answer="naïve 漢字")
    assert (status, gateway.trouble) == (200, "")
    assert calls[0].messages[0]["content"] == "größer 漢字 \U0001f600 half \ufffd"
    assert json.loads(text)["choices"][0]["message"]["content"] == "naïve 漢字"


def test_a_stream_carries_the_same_answer_in_events():
    body = {"messages": HELLO, "stream": True, "stream_options": {"include_usage": True}}
    status, text, headers, _, _ = talk(body)
    events = re.findall(r"^data: (.*)$", text, re.MULTILINE)
    chunks = [json.loads(event) for event in events[:-1]]
    assert (status, events[-1]) == (200, "[DONE]")
    assert headers["Content-Type"].startswith("text/event-stream")
    assert "".join(chunk["choices"][0]["delta"].get("content") or "" for chunk in chunks[:-1]) == "fine"
    assert chunks[-2]["choices"][0]["finish_reason"] == "stop"
    assert chunks[-1]["usage"]["total_tokens"] == 10


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        (b"{", 400, "not JSON"),
        (b"[" * 50_000, 400, "not JSON"),
        ([], 400, "must be an object"),
        (b'{"messages": [' + b"[]," * 400_000 + b"[]]}", 400, "more values than anybody needs"),
        ({}, 400, "messages"),
        ({"messages": HELLO, "tools": [{"type": "function"}]}, 400, "tools[0]: must be a function with a name"),
        ({"messages": HELLO, "modalities": ["audio"]}, 403, "modalities"),
        ({"messages": HELLO, "web_search_options": {}}, 403, "web_search_options"),
        ({"messages": HELLO, "extra_headers": {"x": "y"}}, 400, "extra_headers: this field is not served"),
        ({"messages": HELLO, "api_base": "http://127.0.0.1"}, 400, "api_base: this field is not served"),
        ({"messages": HELLO, "n": 5}, 400, "n: only 1"),
        ({"messages": HELLO, "temperature": "hot"}, 400, "temperature: must be a number"),
        ({"messages": HELLO, "max_tokens": -1}, 400, "max_tokens"),
        ({"messages": HELLO, "response_format": {"type": "x"}}, 400, "response_format"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, 403, "'image_url' are not served"),
        ({"messages": [{"role": "user", "content": [{"type": "file", "text": "x"}]}]}, 403, "'file' are not served"),
        ({"messages": [{"role": "oracle", "content": "x"}]}, 400, "'oracle' is not one of"),
        ({"messages": [{"role": "user", "content": 3}]}, 400, "must be text"),
        ({"messages": ["hello"]}, 400, "must be an object"),
        ({"messages": [*HELLO, {"role": "tool", "content": "r"}]}, 400, "None answers no tool call before it"),
        ({"messages": [*HELLO, READ, *HELLO]}, 400, "'c' is not answered before messages[2]"),
        ({"messages": [*HELLO, READ]}, 400, "'c' is never answered"),
        ({"messages": [*HELLO, reading("{half"), ANSWER]}, 400, "tool_calls: arguments: must be a JSON object"),
        ({"messages": [*HELLO, reading("[1]"), ANSWER]}, 400, "tool_calls: arguments: must be a JSON object"),
        ({"messages": [*HELLO, reading("{}", ""), ANSWER]}, 400, "each call needs a function with a name"),
        ({"messages": [{"role": "user", "content": None}]}, 400, "null is only allowed for an assistant"),
        ({"messages": HELLO, "tools": [offered([])]}, 400, "tools[0].parameters: must be a JSON Schema"),
        ({"messages": HELLO, "tools": [offered({"type": []})]}, 400, "tools[0].parameters.type"),
        ({"messages": HELLO, "tools": [offered({"properties": []})]}, 400, "tools[0].parameters.properties"),
        ({"messages": HELLO, "tools": [offered({"properties": {"a": 3}})]}, 400, "properties.a: must be a JSON Schema"),
        ({"messages": HELLO, "tools": [offered({"items": "x"})]}, 400, "tools[0].parameters.items: must be a JSON"),
        ({"messages": HELLO, "tools": [offered({"anyOf": {}})]}, 400, "tools[0].parameters.anyOf: must be a list"),
        ({"messages": HELLO, "tools": [offered({"required": "a"})]}, 400, "tools[0].parameters.required: must be a"),
        ({"messages": HELLO, "response_format": shaped({"properties": 1})}, 400, "response_format.properties"),
    ],
)
def test_what_is_not_plain_text_chat_never_reaches_the_model(body, status, said):
    got, text, headers, gateway, calls = talk(body)
    assert got == status
    assert said in json.loads(text)["error"]["message"]
    assert headers["x-should-retry"] == "false"
    assert calls == []
    assert [record.status for record in gateway.log.records] == ["refused"]


def test_unused_fields_and_foreign_message_keys_are_left_behind():
    message = {"role": "user", "content": [{"type": "text", "text": "a", "cache_control": {}}], "x_secret": "b"}
    body = {"messages": [message], "tools": None, "tool_choice": "none", "user": "me", "top_p": 0.5, "stop": "END"}
    status, _, _, gateway, calls = talk(body)
    assert status == 200
    assert calls[0].messages == ({"role": "user", "content": "a"},)
    assert calls[0].params == {"top_p": 0.5, "stop": "END"}
    assert set(gateway.log.records[0].dropped) == {"tool_choice", "user"}


def test_tool_traffic_passes_and_a_call_without_arguments_has_none():
    status, _, _, _, calls = talk({"messages": [*HELLO, reading(""), ANSWER]})
    assert (status, calls[0].messages) == (200, (*HELLO, READ, ANSWER))


def test_a_json_schema_travels_as_the_call_s_own_field():
    schema = {"type": "object", "properties": {}}
    body = {
        "messages": HELLO,
        "response_format": {"type": "json_schema", "json_schema": {"name": "s", "schema": schema}},
    }
    assert talk(body)[4][0].response_schema == schema


@pytest.mark.parametrize(
    ("kind", "status"),
    [("rate_limit", 429), ("server", 502), ("timeout", 504), ("auth", 402), ("budget", 402), ("context_length", 400)],
)
def test_a_failure_is_told_in_our_words_and_never_in_the_provider_s(kind, status):
    failed = Failed(kind, True, "org-1234 at upstream.example has no credit")
    got, text, headers, gateway, _ = talk({"messages": HELLO}, answer=failed)
    assert got == status
    assert "upstream.example" not in text + str(headers)
    assert gateway.log.records[0].kind == kind


def test_an_exception_of_the_client_is_a_failed_call_and_its_text_stays_here():
    got, text, _, gateway, _ = talk({"messages": HELLO}, answer=RuntimeError("private detail"))
    assert got == 502
    assert "private" not in text
    assert gateway.log.records[0].status == "failed"


@pytest.mark.parametrize(("kind", "finish"), [("empty", "stop"), ("refusal", "stop"), ("truncated", "length")])
def test_an_unusable_completion_looks_to_the_compressor_as_the_provider_would_send_it(kind, finish):
    status, text, *_ = talk({"messages": HELLO}, answer=Failed(kind, True, ""))
    choice = json.loads(text)["choices"][0]
    assert (status, choice["message"]["content"], choice["finish_reason"]) == (200, "", finish)


def test_another_run_s_token_opens_nothing():
    status, _, _, gateway, calls = talk({"messages": HELLO}, token="run-of-somebody-else")
    assert (status, calls, gateway.log.records) == (401, [], [])
    assert talk({}, token="", path="/v1/models", method="GET")[0] == 401


def test_requests_beyond_the_cap_are_turned_away_and_not_paid():
    status, _, _, gateway, calls = talk({"messages": HELLO}, limits=GatewayLimits(requests=2), times=4)
    assert (status, len(calls)) == (429, 2)
    assert [record.status for record in gateway.log.records] == ["ok", "ok", "refused", "refused"]


def test_tokens_beyond_the_cap_are_turned_away():
    # 10 tokens are used by each call, and 172 are its worst case.
    limits = GatewayLimits(total_tokens=200, output_tokens=100)
    status, text, _, gateway, calls = talk({"messages": HELLO}, limits=limits, times=5)
    assert (status, len(calls)) == (429, 3)
    assert "the run's 200 tokens are used up" in text
    assert [record.forwarded for record in gateway.log.records] == [True, True, True, False, False]


def test_a_wish_for_more_output_than_allowed_is_lowered():
    body = {"messages": HELLO, "max_tokens": 900_000, "max_completion_tokens": 800_000}
    assert talk(body, limits=GatewayLimits(output_tokens=50))[4][0].max_tokens == 50


def test_a_body_beyond_the_cap_is_refused():
    body = {"messages": [{"role": "user", "content": "x" * 5000}]}
    assert talk(body, limits=GatewayLimits(request_bytes=1000))[0] == 413


def test_the_model_list_names_the_one_that_is_served():
    assert json.loads(talk({}, path="/v1/models", method="GET")[1])["data"][0]["id"] == "served"
    assert json.loads(talk({}, path="/v1/models/any/thing", method="GET")[1])["id"] == "served"


@pytest.mark.parametrize("path", ["/v1/files", "/v1/embeddings", "/", "/v1/chat/completions/../files"])
def test_no_other_path_is_served(path):
    assert talk({}, path=path)[0] == 404


def test_the_end_of_the_gateway_s_process_is_told_by_name_and_ends_nothing_else(tmp_path):
    async def complete(call):
        raise AssertionError("no model is asked")

    async def main():
        gateway = Gateway(model="m", complete=complete, draw=Draw())
        async with gateway.serve(tmp_path) as path:
            await gateway.finish(0)
            assert gateway.trouble == ""
            for process in process_family(os.getpid()):
                if b"gateway_process" in Path(f"/proc/{process}/cmdline").read_bytes():
                    os.kill(process, signal.SIGKILL)
            await gateway.finish(0)
            with pytest.raises(OSError, match="refused"):
                await asyncio.open_unix_connection(path)
        return gateway.trouble

    assert asyncio.run(main()) == "the gateway's process was ended by SIGKILL"


def test_the_gateway_s_process_knows_nothing_of_the_evaluator(tmp_path, monkeypatch):
    monkeypatch.setenv("PROVIDER_API_KEY", "sk-of-the-evaluator")

    async def main():
        gateway = Gateway(model="m", complete=None, draw=Draw())
        async with gateway.serve(tmp_path):
            await gateway.finish(0)
            folders = [Path(f"/proc/{process}") for process in process_family(os.getpid())]
            (folder,) = [one for one in folders if b"gateway_process" in (one / "cmdline").read_bytes()]
            status = (folder / "status").read_text()
            return (folder / "environ").read_bytes(), status, len(list((folder / "fd").iterdir()))

    environment, status, descriptors = asyncio.run(main())
    assert environment == b""
    assert descriptors < 12
    resident = int(re.search(r"VmRSS:\s+(\d+) kB", status)[1])
    assert resident < 40_000
    if os.geteuid() == 0:
        assert re.search(r"Uid:\s+65534\s+65534\s+65534\s+65534", status)


def test_a_request_survives_being_written_down_and_read_again():
    body = {
        "model": "x", "messages": [{"role": "user", "content": "half \ud800 of it"}], "temperature": 1, "stop": ["a"],
        "max_tokens": 5, "response_format": {"type": "json_schema", "json_schema": {"schema": {"type": "object"}}},
        "tools": [{"type": "function", "function": {"name": "read", "parameters": {"type": "object"}}}],
        "tool_choice": {"type": "function", "function": {"name": "read"}},
    }  # fmt: skip
    once = read_request(read_object(json.dumps(body).encode()))
    assert once.messages == ({"role": "user", "content": "half \ufffd of it"},)
    assert (once.params["tools"], once.params["tool_choice"]) == (body["tools"], body["tool_choice"])
    assert read_request(read_object(json.dumps(once.body()).encode())) == once


@given(st.binary(max_size=400) | json_values().map(lambda value: json.dumps(value).encode()))
def test_no_request_makes_the_reader_raise_anything_but_a_refusal(data):
    with contextlib.suppress(Refusal):
        read_request(read_object(data))


def test_a_gateway_process_that_ends_while_it_is_given_up_is_no_fault_of_ours(monkeypatch):
    async def scene():
        process = await asyncio.create_subprocess_exec("true")
        await process.wait()
        waits = [TimeoutError, None]

        async def wait():
            if why := waits.pop(0):
                raise why

        monkeypatch.setattr(process, "wait", wait)
        await Gateway(model="m", complete=None, draw=Draw())._end(process)
        assert not waits

    asyncio.run(scene())


def test_a_run_s_requests_are_kept_up_to_a_size_and_those_turned_away_not_at_all():
    body = {"messages": [{"role": "user", "content": "x" * 1000}]}
    status, text, _, gateway, calls = talk(body, times=6, limits=GatewayLimits(run_bytes=4_500))
    assert (status, len(calls)) == (429, 3)
    assert "the run's 4,500 bytes of requests are used up" in text
    assert [len(record.messages) for record in gateway.log.records] == [1, 1, 1, 0, 0, 0]


def test_requests_beyond_the_last_are_turned_away_unread():
    async def main(folder):
        async def complete(call):
            return Completion("fine", Usage(), "m", 0.0)

        gateway = Gateway(model="m", complete=complete, draw=Draw(), limits=GatewayLimits(requests=1))
        async with gateway.serve(folder) as socket:
            answers = []
            for _ in range(2):
                reader, writer = await asyncio.open_unix_connection(str(socket))
                head = f"POST /v1/chat/completions HTTP/1.1\r\nAuthorization: Bearer {gateway.token}\r\n"
                body = json.dumps({"messages": HELLO}) if not answers else "{"  # of the second no more ever comes
                writer.write(f"{head}Content-Length: {len(body) if not answers else 1000}\r\n\r\n{body}".encode())
                answers.append((await reader.readline()).split()[1])
                writer.close()
        return answers

    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        assert asyncio.run(main(Path(folder))) == [b"200", b"429"]
