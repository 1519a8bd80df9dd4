"""What a scrub promises, one promise at a time."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_core.domain.fixture import Fixture
from eval_core.domain.probe import Fact, ProbeBank
from eval_core.suite.scrub import Identities, ScrubOptions, harvest, scrub_fixture
from eval_core.suite.scrub.pipeline import NOTE, SYSTEM_PROMPT, shorten_output
from eval_core.suite.scrub.replace import rewrite
from tests.suite.sessions import ALNUM, draw, session

RNG = random.Random(11)
TOKEN = "ghp" + "_" + draw(RNG, ALNUM, 36)
PASSWORD = "Tundra" + "-77" + draw(RNG, ALNUM, 6)


def scrubbed(*outputs: str, identities: Identities | None = None, **options: Any) -> list[str]:
    """Return the tool outputs after a scrub."""
    result = scrub_fixture(session(*outputs), ScrubOptions(identities=identities or Identities(), **options))
    return [message["content"] for message in result.fixture.messages if message["role"] == "tool"]


def test_one_entity_has_one_placeholder_everywhere() -> None:
    first, second = scrubbed(f"token {TOKEN}", json.dumps({"log": f"used {TOKEN} and {TOKEN}"}))
    placeholder = first.split()[1]
    assert placeholder == "REDACTED-github-token-1"
    assert json.loads(second)["log"] == f"used {placeholder} and {placeholder}"


def test_a_secret_told_once_by_its_place_is_gone_where_nothing_tells_it() -> None:
    first, second = scrubbed(f"DB_PASSWORD={PASSWORD}", f"tried {PASSWORD}, refused")
    assert PASSWORD not in first + second
    assert second == "tried REDACTED-assignment-1, refused"


def test_a_number_told_once_stays_a_part_of_what_is_longer() -> None:
    told, longer, alone = scrubbed("serial number: 5CG24107Q8812345", "a5CG24107Q8812345b", "of 5CG24107Q8812345.")
    assert told == "serial number: REDACTED-serial-1"
    assert (longer, alone) == ("a5CG24107Q8812345b", "of REDACTED-serial-1.")


def test_a_person_keeps_one_number_across_shapes() -> None:
    text = "Author: Ilse Brandmark <ibrandmark@corp-mail.io>\nin /home/ibrandmark/src and /Users/ibrandmark/x"
    (output,) = scrubbed(text)
    assert output == "Author: Person1 <person1@example.com>\nin /home/user1/src and /Users/user1/x"


def test_generic_accounts_and_documentation_values_stay() -> None:
    text = (
        "/home/user/x /home/node/app /Users/runner/work 127.0.0.1 10.1.2.3 192.0.2.7 dev@example.com git@github.com:a/b"
    )
    assert scrubbed(text) == [text]


def test_json_inside_json_still_parses_and_keeps_its_spacing() -> None:
    inner = json.dumps({"env": f"A=1\nAPI_KEY={PASSWORD}\n", "n": 1.50}, separators=(",", ":"))
    outer = '{"result" :  ' + json.dumps(inner) + ', "exit_code":0 }'
    (output,) = scrubbed(outer)
    assert PASSWORD not in output
    assert output.startswith('{"result" :  "')
    assert output.endswith(', "exit_code":0 }')
    assert json.loads(json.loads(output)["result"])["env"] == "A=1\nAPI_KEY=REDACTED-assignment-1\n"


def test_a_json_number_that_is_a_secret_becomes_text() -> None:
    (output,) = scrubbed('{"pin": 482913, "count": 482913}')
    assert json.loads(output) == {"pin": "REDACTED-assignment-1", "count": 482913}


def test_json_that_was_cut_off_is_scrubbed_without_its_end() -> None:
    (output,) = scrubbed('{"output": "line one\\nkestrel@corp-mail.io wrote\\nand then')
    assert output == '{"output": "line one\\nperson1@example.com wrote\\nand then'


def test_reasoning_is_taken_out_and_empty_messages_go() -> None:
    fixture = session("ok")
    messages = [dict(message) for message in fixture.messages]
    messages[-1] |= {"content": "<think>secret plan</think>Done.", "reasoning_content": "more"}
    messages.append({"role": "assistant", "content": "<REASONING_SCRATCHPAD>only notes"})
    result = scrub_fixture(fixture.model_copy(update={"messages": messages}))
    assert result.fixture.messages[-1] == {"role": "assistant", "content": "Done."}


def test_code_that_mentions_a_think_tag_stays_in_tool_outputs() -> None:
    text = 'text = re.sub("<think>.*</think>", "", text)'
    assert scrubbed(text) == [text]


def test_the_system_prompt_is_replaced_unless_kept() -> None:
    assert scrub_fixture(session("x")).fixture.messages[0]["content"] == SYSTEM_PROMPT
    kept = scrub_fixture(session("x"), ScrubOptions(keep_system=True)).fixture
    assert kept.messages[0]["content"] == "Be good."


def test_the_first_user_turn_is_replaced_only_on_request() -> None:
    assert scrub_fixture(session("x")).fixture.messages[1]["content"] == "Please fix it."
    told = scrub_fixture(session("x"), ScrubOptions(first_user="Repair the build.")).fixture
    assert told.messages[1]["content"] == "Repair the build."


def test_listed_names_go_and_spared_words_stay() -> None:
    people = Identities(groups=[("brandmark", "Ilse Brandmark", "Ilse"), ("relay",)], spared={"relay"})
    (output,) = scrubbed("ask brandmark or Ilse; Ilse_Brandmark-laptop runs relay", identities=people)
    assert output == "ask user1 or Person1; Person1-laptop runs relay"


def test_a_short_name_does_not_eat_other_words() -> None:
    (output,) = scrubbed("ana found malice in banana; ANA_HOME, anaBox", identities=Identities(groups=[("ana",)]))
    assert output.startswith("user1 found malice in banana; ")
    assert "user1Box" in output


def test_harvest_names_its_sources_and_doubts_product_names() -> None:
    text = "/home/kestrel/src\nAuthor: Ilse Brandmark <ilse@corp-mail.io>\n" + "kestrel starts. " * 60
    candidates = {candidate.alias: candidate for candidate in harvest([(text, None)])[0]}
    assert candidates["kestrel"].doubtful
    assert not candidates["Ilse Brandmark"].doubtful
    assert "author" in candidates["Ilse Brandmark"].sources


def test_long_outputs_keep_head_tail_and_evidence() -> None:
    lines = [f"line {number} of the log" for number in range(2_000)]
    lines[1_000] = "the lease column is lease_epoch_ms"
    content = json.dumps({"output": "\n".join(lines), "exit_code": 1})
    plain = json.loads(shorten_output(content, 4_000))["output"]
    assert len(plain) < 4_600
    assert NOTE.search(plain)
    assert plain.startswith("line 0 ")
    assert plain.endswith("line 1999 of the log")
    assert "lease_epoch_ms" not in plain
    kept = shorten_output(content, 4_000, [Fact(fact="lease_epoch_ms")])
    assert "lease_epoch_ms" in json.loads(kept)["output"]
    assert shorten_output(kept, 4_000) == kept


def test_a_pattern_across_the_cut_keeps_the_whole_output() -> None:
    text = "start " + "x " * 4_000 + "MIDDLE 42 units " + "y " * 4_000
    assert shorten_output(text, 2_000, [Fact(regex=r"MIDDLE \d+ units")]) == text


def test_probes_are_rewritten_with_the_same_placeholders() -> None:
    fixture = session(f"home is /home/brandmark/relay, key {TOKEN}")
    bank = ProbeBank.model_validate(
        {
            "fixture": "sample",
            "probes": [
                {
                    "id": "p1",
                    "type": "recall",
                    "question": "Where under /home/brandmark is the code?",
                    "expected_facts": ["/home/brandmark/relay", "brandmark", {"any": [TOKEN, "src/x.py"]}],
                }
            ],
        }
    )
    result = scrub_fixture(fixture, bank=bank)
    assert result.bank is not None
    probe = result.bank.probes[0]
    assert probe.question == "Where under /home/user1 is the code?"
    assert [fact.values for fact in probe.expected_facts] == [
        ["/home/user1/relay"],
        ["user1"],
        ["REDACTED-github-token-1", "src/x.py"],
    ]


def test_the_report_counts_places_and_never_tells_the_value() -> None:
    result = scrub_fixture(session(f"{TOKEN} at /home/brandmark", f"again {TOKEN}"))
    lines = "\n".join(result.report.lines())
    assert TOKEN not in lines
    assert "brandmark" not in lines
    change = next(change for change in result.report.changes if change.rule == "github-token")
    assert (change.placeholder, change.count, change.messages) == ("REDACTED-github-token-1", 2, (3, 5))


def test_new_placeholders_do_not_reuse_numbers_that_stand_already() -> None:
    other = "ghp" + "_" + draw(RNG, ALNUM, 36)
    (output,) = scrubbed(f"REDACTED-github-token-1 then {other}; /home/user3 /home/brandmark")
    assert output == "REDACTED-github-token-1 then REDACTED-github-token-2; /home/user3 /home/user4"


def test_segments_follow_their_messages() -> None:
    fixture = session("a", "b", segments=[4])
    messages = list(fixture.messages)
    messages.insert(2, {"role": "assistant", "content": "<think>nothing else</think>"})
    longer = Fixture(name="sample", messages=messages, segments=[5])
    result = scrub_fixture(longer).fixture
    assert result.segments == [4]
    assert result.messages[4]["role"] == "assistant"


def test_private_key_blocks_go_whole_even_cut_off() -> None:
    body = "\n".join(draw(RNG, ALNUM, 64) for _ in range(4))
    begin = "-----BEGIN RSA " + "PRIVATE KEY-----"
    (output,) = scrubbed(f"$ cat k\n{begin}\n{body}")
    assert output == "$ cat k\nREDACTED-private-key-1"


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=30) | st.just(f"token={TOKEN}"),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
        max_leaves=12,
    ),
    st.sampled_from([None, 1, 2]),
)
def test_any_json_document_parses_after_a_scrub_and_twice_is_once(value: Any, indent: int | None) -> None:
    text = json.dumps({"v": value}, indent=indent, ensure_ascii=indent is None)
    (once,) = scrubbed(text)
    json.loads(once)
    assert TOKEN not in once
    assert scrubbed(once) == [once]


@given(st.text(max_size=200))
def test_looking_at_a_text_does_not_change_it(text: str) -> None:
    assert rewrite(text, lambda piece, _key: piece) == text


@pytest.mark.parametrize("text", ["{" * 3_000, '["' * 2_000, '{"a":' * 3_000 + "1" + "}" * 3_000])
def test_hostile_nesting_is_survived(text: str) -> None:
    assert scrubbed(text, max_output=None) == [text]
