"""Identities are taken from where they stand: fields, tables, commands and their answers; look-alikes stay."""

from __future__ import annotations

import json
from typing import Any

import pytest

from eval_core.domain.fixture import Fixture
from eval_core.suite.scrub import ScrubOptions, scrub_fixture
from eval_core.suite.scrub.people_fields import field_kind
from eval_core.suite.scrub.pipeline import message_texts
from eval_core.suite.scrub.replace import Replacer


def _exchange(number: int, command: str, output: str) -> list[dict[str, Any]]:
    function = {"name": "terminal", "arguments": json.dumps({"command": command})}
    return [
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"id": f"c{number}", "type": "function", "function": function}],
        },
        {"role": "tool", "tool_call_id": f"c{number}", "content": output},
    ]


def _scrubbed(*exchanges: tuple[str, str]) -> str:
    messages: list[dict[str, Any]] = [{"role": "user", "content": "look around"}]
    exchanges = (*exchanges, ("true", ""))
    for number, (command, output) in enumerate(exchanges):
        messages += _exchange(number, command, output)
    options = ScrubOptions(keep_system=True, max_output=None)
    scrubbed = scrub_fixture(Fixture(name="positions", messages=messages), options).fixture
    return "\n".join(text for message in scrubbed.messages for text in message_texts(message))


@pytest.mark.parametrize(
    ("command", "output", "name"),
    [
        ("whoami", "tkesselring", "tkesselring"),
        ("whoami", '{"output": "tkesselring\\n", "exit_code": 0}', "tkesselring"),
        ("hostname -f", "gneiss-nb14.corp.internal", "gneiss-nb14"),
        ("whoami && hostname", "tkesselring\ngneiss-nb14", "gneiss-nb14"),
        ("git config user.name", "Tove Kesselring", "Kesselring"),
    ],
)
def test_only_the_command_tells_that_its_answer_is_a_name(command: str, output: str, name: str) -> None:
    text = _scrubbed((command, output), ("cat notes.txt", f"backup of {name} is late, see {name}/old"))
    assert name not in text


def test_the_keys_of_an_answer_are_not_taken_for_the_answer() -> None:
    text = _scrubbed(
        ("hostname", '{"output": "gneiss-nb14", "exit_code": 0}'), ("ls", '{"output": "", "exit_code": 0}')
    )
    assert '"output"' in text
    assert '"exit_code"' in text


@pytest.mark.parametrize(
    "text",
    [
        "| user_name | tkesselring |",
        "id,first_name,last_name\n7,Tove,Kesselring",
        "Key\tAssignee\nREL-1\tTove Kesselring",
        '{"commit": {"author": {"name": "Tove Kesselring"}}}',
        "maintainers:\n  - Tove Kesselring\n  - name: Tove Kesselring",
        "Host Name . . . . . . . . . : KESSELRING-WS4",
        "I spoke with Tove Kesselring, and Kesselring agreed",
        "X-Forwarded-User: tkesselring",
        "level=info user=tkesselring status=ok",
        "# TODO(tkesselring): remove",
        "CORP\\tkesselring:(F)",
    ],
)
def test_a_named_place_makes_its_value_an_identity(text: str) -> None:
    assert "kesselring" not in _scrubbed(("cat x", text)).lower()


@pytest.mark.parametrize(
    "text",
    [
        "Action: Deploy Service",
        "Owner: Platform Team",
        "lead: Circuit Breaker",
        "name: Build And Test",
        "owner: string",
        "user: required",
        'connect(user="postgres", host="db")',
        "host: redis-master",
        "Author: Nordic Software Foundation",
        '{"displayName": "Spring Boot"}',
        "class Owner:\n    user: User = field()",
        "cache key: da39a3ee5e6b4b0d3255bfef95601890afd80709",
        "item 0012345678905",
        "    @patient\n    def put(self):",
    ],
)
def test_titles_products_types_and_roles_stay(text: str) -> None:
    assert text.splitlines()[0].replace('"', '\\"') in _scrubbed(("cat x", text)).replace('"', '\\"')


def test_a_fields_name_says_what_it_holds() -> None:
    kinds = {
        name: field_kind(name) for name in ("assigneeName", "created-by", "DB_USER", "host_name", "count", "userAgent")
    }
    assert kinds == {
        "assigneeName": "person",
        "created-by": "owner",
        "DB_USER": "account",
        "host_name": "host",
        "count": "none",
        "userAgent": "none",
    }


@pytest.mark.parametrize(
    "text",
    [
        "bindings: [user:ann.lee@example.com, group:admins@example.com]",
        "--member=user:ann.lee@example.com",
        '"AwsAccountId": "123456789012"',
        "test tenant: account number 000000000000",
    ],
)
def test_members_of_a_policy_and_accounts_of_manuals_stay(text: str) -> None:
    assert Replacer().text(text) == text
