"""Adding to a YAML file: the value is the merged one, and every line that was there is still there."""

from __future__ import annotations

import pytest

from eval_core.base.errors import UserError
from eval_core.base.strict_yaml import parse_yaml
from eval_core.base.yaml_edit import add_to_yaml, block_yaml, merged

ADDITION = {"accept": {"sections": ["blockers"], "facts": {"a-b": ['say "x"', "1.2"], "no": ["tab\tand \u200b"]}}}

FILES = {
    "empty": "",
    "comment only": "# ours\n",
    "other keys": "runs: 2  # few\n\n# the end\n",
    "no line break at the end": "runs: 2",
    "empty key": "accept:\nruns: 2\n",
    "empty key at the end": "runs: 2\naccept:",
    "null": "accept: ~  # nothing yet\nruns: 2\n",
    "flow": "accept: {sections: [old], facts: {}}  # why\nruns: 2\n",
    "flow over lines": "accept: {\n  sections: [\n    old,  # kept for years\n  ],\n}\nruns: 2\n",
    "block": "accept:\n  # long gone\n  sections:\n    - old  # by us\n    # and more\n\n# next\nruns: 2\n",
    "block, dashes at the key": "accept:\n  sections:\n  - old\n  facts:\n    a-b:\n    - '1.2'  # known\nruns: 2\n",
    "facts alone": "accept:\n  facts:\n    other: [x]\n  # last\n",
    "indented by four": "accept:\n    facts:\n        a-b:\n            - y\nruns: 2\n",
    "literal text": "accept:\n  sections:\n    - |-\n      old\nruns: 2\n",
    "windows": "runs: 2\r\naccept:\r\n  sections:\r\n    - old\r\n",
    "document marks": "---\nruns: 2\n",
}


@pytest.mark.parametrize("text", FILES.values(), ids=FILES)
def test_what_is_added_is_there_and_what_was_there_stays(text: str) -> None:
    written = add_to_yaml(text, ADDITION, "f.yml")
    assert parse_yaml(written, "f.yml") == merged(parse_yaml(text, "f.yml"), ADDITION)
    for comment in [line.partition("#")[2] for line in text.splitlines() if "#" in line]:
        assert f"#{comment}" in written
    assert add_to_yaml(written, ADDITION, "f.yml") == written
    assert written.count("\r\n") == (written.count("\n") if "\r" in text else 0)


def test_the_text_is_what_a_person_would_write() -> None:
    assert add_to_yaml(FILES["block"], ADDITION, "f.yml") == (
        "accept:\n  # long gone\n  sections:\n    - old  # by us\n"
        '    - "blockers"\n'
        '  facts:\n    a-b:\n      - "say \\"x\\""\n      - "1.2"\n'
        '    "no":\n      - "tab\\U00000009and \\U0000200b"\n'
        "    # and more\n\n# next\nruns: 2\n"
    )
    assert block_yaml({"accept": {"sections": ["a"]}}) == 'accept:\n  sections:\n    - "a"'


@pytest.mark.parametrize("text", ["accept: &a {}\nother: *a\n", "accept: {sections: &a [x]}\nother: *a\n"])
def test_what_cannot_be_edited_is_left_to_the_reader(text: str) -> None:
    with pytest.raises(UserError):
        add_to_yaml(text, ADDITION, "f.yml")
