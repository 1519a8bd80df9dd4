"""Finding the compressor of a tree."""

from __future__ import annotations

from pathlib import Path

import pytest
import small

from bot.candidates import Found, candidates, described, is_plain, known_agent, named_compressor
from eval_core.base.errors import UserError
from eval_core.domain.target import TargetSpec, target_from

PLAIN = "class ContextCompressor:\n    def compress(self, messages): ...\n"
MODEL = (
    "class Other: ...\n"
    "class ContextCompressor:\n"
    "    def __init__(self, model, base_url=None, api_key=None, quiet_mode=False, unknown=1): ...\n"
    "    async def compress(self, messages, current_tokens=None, focus_topic=None, force=False): ...\n"
)


def find_compressor(root: Path) -> Found | None:
    found = candidates(root)
    return described(root, found[0]) if is_plain(found) else None


@pytest.mark.parametrize(
    ("path", "packages", "source", "module"),
    [
        ("context_compressor.py", (), ".", "context_compressor"),
        ("agent/context_compressor.py", ("agent",), ".", "agent.context_compressor"),
        ("agent/context_compressor.py", (), ".", "agent.context_compressor"),
        ("agent/core/context_compressor.py", ("agent", "agent/core"), ".", "agent.core.context_compressor"),
        ("src/agent/context_compressor.py", ("src/agent",), "src", "agent.context_compressor"),
        ("src/agent/context_compressor.py", (), "src", "agent.context_compressor"),
        ("src/context_compressor.py", (), "src", "context_compressor"),
        ("pkgs/a/src/agent/context_compressor.py", ("pkgs/a/src/agent",), "pkgs/a/src", "agent.context_compressor"),
    ],
)
def test_the_import_path_is_found_for_every_layout(
    tmp_path: Path, path: str, packages: tuple[str, ...], source: str, module: str
) -> None:
    small.write(tmp_path / path, PLAIN)
    for package in packages:
        small.write(tmp_path / package / "__init__.py", "")
    found = find_compressor(tmp_path)
    assert found is not None
    parent = Path(path).parent.as_posix()
    assert found.watch == ((path,) if parent == "." else (f"{parent}/**",))
    assert (found.target["pythonpath"], found.target["compressor"]) == ([source], f"{module}:ContextCompressor")
    assert isinstance(target_from(found.target, "target"), TargetSpec)


def test_what_the_constructor_takes_decides_whether_a_model_is_needed(tmp_path: Path) -> None:
    small.write(tmp_path / "context_compressor.py", MODEL)
    found = find_compressor(tmp_path)
    assert found is not None
    assert found.target["llm"] == "required"
    assert found.target["init"] == {
        "model": "${MODEL}", "base_url": "${LLM_BASE_URL}", "api_key": "${LLM_API_KEY}", "quiet_mode": True,
    }  # fmt: skip
    assert found.target["call"] == {"focus_topic": "${FOCUS_TOPIC}", "force": True}
    assert isinstance(target_from(found.target, "target"), TargetSpec)


def test_the_shallowest_file_that_can_compress_wins_and_copies_are_passed_over(tmp_path: Path) -> None:
    small.write(tmp_path / "tests/context_compressor.py", PLAIN)
    small.write(tmp_path / ".venv/lib/context_compressor.py", PLAIN)
    small.write(tmp_path / "a/context_compressor.py", "class Nothing: ...\n")
    small.write(tmp_path / "b/context_compressor.py", "def broken(:\n")
    small.write(tmp_path / "c/context_compressor.py", "x = '\0'\n")
    assert find_compressor(tmp_path) is None
    small.write(tmp_path / "d/e/context_compressor.py", PLAIN)
    found = find_compressor(tmp_path)
    assert found is not None
    assert found.watch == ("d/e/**",)


@pytest.mark.parametrize("source", [".", "src", "lib", "services/chat", "packages/agent/src"])
def test_a_compressor_given_by_name_is_looked_up_where_it_lies(tmp_path: Path, source: str) -> None:
    small.write(tmp_path / source / "agent" / "shrink.py", MODEL.replace("ContextCompressor", "Shrinker"))
    found = named_compressor(tmp_path, "agent.shrink:Shrinker")
    assert found.watch == ((Path(source) / "agent/**").as_posix(),)
    assert found.target["pythonpath"] == [source]
    assert (found.target["compressor"], found.target["llm"]) == ("agent.shrink:Shrinker", "required")
    with pytest.raises(UserError, match=r"no such class or function in .*; did you mean agent\.shrink:Shrinker\?"):
        named_compressor(tmp_path, "agent.shrink:Shinker")
    with pytest.raises(UserError, match=r"--compressor agent\.missing:Shrinker: no such class"):
        named_compressor(tmp_path, "agent.missing:Shrinker")


def test_a_function_is_given_the_model_that_it_takes(tmp_path: Path) -> None:
    small.write(
        tmp_path / "memory.py",
        "def shorten(messages, model, base_url, api_key, focus_topic=None): ...\nasync def cut(messages, n=3): ...\n",
    )
    assert named_compressor(tmp_path, "memory:shorten").target == {
        "compressor": "memory:shorten",
        "call": {
            "model": "${MODEL}",
            "base_url": "${LLM_BASE_URL}",
            "api_key": "${LLM_API_KEY}",
            "focus_topic": "${FOCUS_TOPIC}",
        },
        "llm": "required",
        "pythonpath": ["."],
    }
    assert named_compressor(tmp_path, "memory:cut").target == {
        "compressor": "memory:cut",
        "llm": "none",
        "pythonpath": ["."],
    }


def test_the_method_of_a_named_class_must_be_there_unless_it_may_be_inherited(tmp_path: Path) -> None:
    small.write(
        tmp_path / "memory.py",
        "class Memory:\n    def shorten(self, messages, force=False): ...\nclass Child(Memory): ...\n"
        "def squeeze(messages): ...\n",
    )
    with pytest.raises(UserError, match=r"the class has no method compress; .* --method \(it has shorten\)"):
        named_compressor(tmp_path, "memory:Memory")
    found = named_compressor(tmp_path, "memory:Memory", "shorten")
    assert (found.target["method"], found.target["call"]) == ("shorten", {"force": True})
    assert named_compressor(tmp_path, "memory:Child").target["compressor"] == "memory:Child"
    assert named_compressor(tmp_path, "memory:squeeze").target["compressor"] == "memory:squeeze"


def test_an_agent_that_we_know_is_known_by_all_of_its_files(tmp_path: Path) -> None:
    small.write(tmp_path / "agent/context_compressor.py", MODEL)
    assert known_agent(tmp_path) is None
    for name in ("agent/auxiliary_client.py", "agent/prompt_builder.py"):
        small.write(tmp_path / name, "")
    found = known_agent(tmp_path)
    assert found is not None
    assert found.target["python"] == ".venv/bin/python"
    assert found.target["env"] == {"HERMES_DISABLE_LAZY_INSTALLS": "1"}
    assert "agent/prompt_builder.py" in found.watch
    assert found.setup[0] == "python3 -m venv .venv"
    assert "def status(" in found.files[found.target["adapter"]]
    assert isinstance(target_from(found.target, "target"), TargetSpec)


def test_a_class_that_a_package_only_passes_on_is_found_in_its_own_file(tmp_path: Path) -> None:
    package = tmp_path / "src/strands/agent/conversation_manager"
    small.write(package / "__init__.py", "from .summarizing import SummarizingConversationManager\n")
    small.write(package / "summarizing.py", "class SummarizingConversationManager: ...\n")
    found = known_agent(tmp_path)
    assert found is not None
    assert (found.target["pythonpath"], found.watch) == (["src"], ("src/strands/agent/conversation_manager/**",))


def test_a_client_that_the_constructor_wants_comes_from_an_adapter(tmp_path: Path) -> None:
    small.write(
        tmp_path / "agent/memory.py",
        "from openai import OpenAI\nclass Memory:\n"
        "    def __init__(self, client: OpenAI, model: str, tokenizer, limit: int = 5): ...\n"
        "    def compact(self, history): ...\n",
    )
    found = find_compressor(tmp_path)
    assert found is not None
    assert found.target == {
        "pythonpath": ["."],
        "compressor": "agent.memory:Memory",
        "adapter": ".github/compression-eval/memory_adapter.py",
        "init": {"model": "${MODEL}"},
        "method": "compact",
        "llm": "required",
    }
    assert isinstance(target_from(found.target, "target"), TargetSpec)
    (adapter,) = found.files.values()
    made: dict[str, object] = {}
    names: dict[str, object] = {}
    exec(adapter.replace("from openai import OpenAI", "OpenAI = lambda: 'a client'"), names)
    create = names["create"]
    assert callable(create)
    create({"target": lambda **given: made.update(given), "init": {"model": "m"}})
    assert made == {"client": "a client", "model": "m", "tokenizer": ...}
    assert "tokenizer" in found.note


@pytest.mark.parametrize(
    ("code", "llm", "adapter"),
    [
        ("class M:\n    def __init__(self, client=None): ...\n    def condense(self, m): ...\n", "required", False),
        (
            "class M:\n    def __init__(self, llm: AsyncAnthropic): ...\n    def condense(self, m): ...\n",
            "required",
            True,
        ),
        ("import litellm\nclass M:\n    def condense(self, m): ...\n", "required", False),
        ("class M:\n    def __init__(self, client_name: str): ...\n    def condense(self, m): ...\n", "none", False),
        ("def condense(messages, client): ...\n", "required", True),
        ("def condense(messages): ...\n", "none", False),
    ],
)
def test_who_calls_a_model_is_read_from_the_source(tmp_path: Path, code: str, llm: str, adapter: bool) -> None:
    small.write(tmp_path / "m.py", code)
    found = find_compressor(tmp_path)
    assert found is not None
    assert (found.target["llm"], "adapter" in found.target) == (llm, adapter)
    assert isinstance(target_from(found.target, "target"), TargetSpec)
    for text in found.files.values():
        compile(text, "adapter", "exec")


def test_candidates_are_sorted_by_what_they_are_called(tmp_path: Path) -> None:
    small.write(tmp_path / "a.py", "def summarize_history(messages): ...\ndef summary(): ...\ndef compress(): ...\n")
    small.write(tmp_path / "memory.py", "class Memory:\n    def compact(self, messages): ...\n")
    small.write(tmp_path / "deep/zip.py", "class Zip:\n    def compress(self, data): ...\n")
    small.write(tmp_path / "broken.py", "def compress(:\n")
    found = candidates(tmp_path)
    assert [(item.node.name, item.method) for item in found] == [
        ("Zip", "compress"), ("Memory", "compact"), ("summarize_history", "summarize_history"),
    ]  # fmt: skip
    assert not is_plain(found)
    small.write(tmp_path / "deep/context_compressor.py", PLAIN)
    assert is_plain(candidates(tmp_path))
