"""The edits: what is done to each compressor's source, and the strand of evidence that should notice.

damaging: facts go. structural: no fact goes, yet the state is broken. form only: a section goes, and its facts are
elsewhere. inventing, stale: the state says what is not so, or no longer. size only: facts are bought with tokens, or
tokens spent on nothing. harmless: nothing that matters changed.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from mutant_subjects import HERMES, JAVASCRIPT, REFERENCE

Sort = Literal["damaging", "structural", "form only", "inventing", "stale", "size only", "harmless"]


@dataclass(frozen=True)
class Mutant:
    """One edit of a compressor's source, and the strand that should catch it."""

    name: str
    sort: Sort
    strand: str
    compressor: str
    file: str = ""
    old: str = ""
    new: str = ""

    @property
    def harmless(self) -> bool:
        """Whether nothing should be said about it."""
        return self.sort == "harmless"

    def apply(self, folder: Path) -> None:
        """Edit the source; an edit whose text is not found exactly once is a bug of this file."""
        if not self.file:
            return
        path = folder / self.file
        text = path.read_text(encoding="utf-8")
        if (found := text.count(self.old)) != 1:
            raise ValueError(f"{self.compressor}, {self.name}: {self.old!r} is found {found} times, expected once")
        lines = text.splitlines(keepends=True)
        if self.new == "LINE":
            text = "".join(line for line in lines if self.old not in line)
        elif self.new == "REORDER":
            at = [number for number, line in enumerate(lines) if line.startswith("        Section(")]
            lines[at[0] : at[-1] + 1] = reversed(lines[at[0] : at[-1] + 1])
            text = "".join(lines)
        else:
            text = text.replace(self.old, self.new)
        path.write_text(text, encoding="utf-8")


FLAT = 'flat = " ".join(text.split())'
RETURN = "return [*messages[:head], summary, *messages[tail:]]"
END = 'return [*head, {"role": "user", "content": f"{PREFACE}\\n\\n{summary}"}, *tail]'


def _ours(name: str, sort: Sort, strand: str, file: str, old: str, new: str) -> Mutant:
    return Mutant(name, sort, strand, REFERENCE, file, old, new)


def _hermes(name: str, sort: Sort, strand: str, old: str, new: str) -> Mutant:
    return Mutant(name, sort, strand, HERMES, "hermes_like.py", old, new)


def _js(name: str, sort: Sort, strand: str, old: str, new: str) -> Mutant:
    return Mutant(name, sort, strand, JAVASCRIPT, "compaction.mjs", old, new)


MUTANTS = [
    _ours("section 'files modified' removed", "damaging", "form", "context_compressor.py",
          'Section("files_modified"', "LINE"),
    _ours("section 'decisions made' removed", "damaging", "form", "context_compressor.py",
          'Section("decisions_made"', "LINE"),
    _ours("section 'current state' removed", "damaging", "form", "context_compressor.py",
          'Section("current_state"', "LINE"),
    _ours("section 'blockers' removed", "damaging", "form", "context_compressor.py", 'Section("blockers"', "LINE"),
    _ours("section 'next steps' removed", "form only", "form", "context_compressor.py", 'Section("next_steps"', "LINE"),
    _ours("section 'session intent' removed", "damaging", "form", "context_compressor.py",
          'Section("session_intent"', "LINE"),
    _ours("decisions come out empty", "form only", "form", "summary.py",
          "return [f\"- {decision.line()}\" for decision in self.decisions_made]", "return []"),
    _ours("paths shortened to basenames", "damaging", "facts", "rule_based.py", FLAT,
          FLAT + '\n    flat = re.sub(r"(?:[\\w.-]+/)+(?=[\\w.-])", "", flat)'),
    _ours("tail shrunk to one message", "damaging", "window", "thresholds.py",
          "preserve_recent: int = 5", "preserve_recent: int = 1"),
    _ours("merge replaced by regenerate", "damaging", "facts", "summary.py",
          "        files = {path: list(changes)", "        return newer\n        files = {path: list(changes)"),
    _ours("decisions truncated", "damaging", "facts", "rule_based.py",
          '"decisions_made", _flat(sentence), 30', '"decisions_made", _flat(sentence, 30), 30'),
    _ours("numbers rounded", "damaging", "facts", "rule_based.py", FLAT,
          FLAT + '\n    flat = re.sub(r"\\d{3,}", lambda m: m[0][0] + "0" * (len(m[0]) - 1), flat)'),
    _ours("errors dropped", "damaging", "facts", "rule_based.py", "    subject, keys = _subject(call)",
          "    if call.failed:\n        return\n    subject, keys = _subject(call)"),
    _ours("early constraints dropped", "damaging", "facts", "rule_based.py", "    return AnchoredSummary.of(sections",
          '    sections["session_intent"] = sections["session_intent"][-1:]\n    return AnchoredSummary.of(sections'),
    _ours("stale state wins a merge", "stale", "facts", "summary.py",
          "current_state=newer.current_state or self.current_state",
          "current_state=self.current_state or newer.current_state"),
    _ours("room for the summary cut to a third", "damaging", "facts", "context_compressor.py",
          "_summary_share: ClassVar[float] = 0.28", "_summary_share: ClassVar[float] = 0.09"),
    _ours("tool outputs ignored", "damaging", "facts", "rule_based.py", "    ranked: list[tuple[float, int, str]] = []",
          "    return []\n    ranked: list[tuple[float, int, str]] = []"),
    _ours("hashes cut to six digits", "damaging", "facts", "rule_based.py", FLAT,
          FLAT + '\n    flat = re.sub(r"\\b([0-9a-f]{6})[0-9a-f]{1,34}\\b", r"\\1", flat)'),
    _ours("user's words left out", "damaging", "facts", "rule_based.py", '    if role == "user":\n        limit',
          '    if role == "nobody":\n        limit'),
    _ours("paths invented", "inventing", "facts", "rule_based.py", "    return AnchoredSummary.of(sections",
          '    sections["current_state"].append("Also see src/core/telemetry/flux_gateway.py")\n'
          "    return AnchoredSummary.of(sections"),
    _ours("links invented", "inventing", "facts", "rule_based.py", "    return AnchoredSummary.of(sections",
          '    sections["current_state"].append("Tracked in https://tracker.example.org/browse/OPS-99817")\n'
          "    return AnchoredSummary.of(sections"),
    _ours("kept messages in reverse order", "structural", "structure", "context_compressor.py", RETURN,
          "return [*messages[:head], summary, *reversed(messages[tail:])]"),
    _ours("the active task dropped", "structural", "structure", "context_compressor.py", RETURN,
          'kept = [m for m in messages[tail:] if m.get("role") != "user"]\n'
          '        last = next((m["content"] for m in reversed(messages) if m.get("role") == "user"), "")\n'
          '        summary["content"] = summary["content"].replace(" ".join(str(last).split()), "")\n'
          "        return [*messages[:head], summary, *kept]"),
    _ours("an instruction inserted", "structural", "structure", "context_compressor.py",
          '{SUMMARY_MARK}\\n\\n{self._summary}',
          '{SUMMARY_MARK}\\n\\nResume exactly where you left off; do not ask anything.\\n\\n{self._summary}'),
    _ours("a role no provider knows", "structural", "structure", "context_compressor.py",
          'summary = {"role": "user"', 'summary = {"role": "summary"'),
    _ours("the system prompt dropped", "structural", "structure", "context_compressor.py", RETURN,
          "return [summary, *messages[tail:]]"),
    _ours("a kept message duplicated", "structural", "structure", "context_compressor.py", RETURN,
          "return [*messages[:head], summary, *messages[tail:], messages[-1]]"),
    _ours("raises on long sessions", "damaging", "outcome", "context_compressor.py",
          "        middle = list(messages[head:tail])\n",
          "        middle = list(messages[head:tail])\n        if len(middle) > 40:\n            raise ValueError\n"),
    _ours("keeps thirty messages verbatim", "size only", "size", "thresholds.py",
          "preserve_recent: int = 5", "preserve_recent: int = 30"),
    _ours("hoards: the newest half stays", "size only", "size", "context_compressor.py",
          "tail = max(tail_start(messages, self.thresholds.preserve_recent), head)",
          "tail = max(tail_start(messages, len(messages) // 2), head)"),
    _ours("smaller and equal: two blank lines less", "harmless", "-", "summary.py",
          'return "\\n\\n".join(blocks)', 'return "\\n".join(blocks)'),
    _hermes("tool outputs pruned to 400 characters", "damaging", "shown", "OUTPUT_LIMIT = 4_000", "OUTPUT_LIMIT = 400"),
    _hermes("call arguments pruned to 80 characters", "damaging", "shown", "ARGUMENT_LIMIT = 2_000",
            "ARGUMENT_LIMIT = 80"),
    _hermes("the first half never shown", "damaging", "shown", "{serialise(middle)}",
            "{serialise(middle[len(middle) // 2 :])}"),
    _hermes("tool results not shown", "damaging", "shown", "    for message in messages:\n        text",
            '    for message in messages:\n        if message.get("role") == "tool":\n'
            "            continue\n        text"),
    _hermes("section 'relevant files' removed", "damaging", "form", '("Relevant Files"', "LINE"),
    _hermes("section 'errors' removed", "damaging", "form", '("Errors"', "LINE"),
    _hermes("section 'critical context' removed", "damaging", "form", '("Critical Context"', "LINE"),
    _hermes("tail of two", "damaging", "window", "PROTECT_LAST = 6", "PROTECT_LAST = 1"),
    _hermes("room cut to a third", "damaging", "facts", "SUMMARY_CHARS = 9_000", "SUMMARY_CHARS = 3_000"),
    _hermes("previous summary forgotten", "damaging", "facts", '        prompt += f"TURNS:\\n{serialise(middle)}"',
            '        prompt = prompt.partition("PREVIOUS SUMMARY")[0]\n'
            "        middle = [m for m in middle if PREFACE not in str(m.get('content'))]\n"
            '        prompt += f"TURNS:\\n{serialise(middle)}"'),
    _hermes("tool messages of the tail shortened", "structural", "structure", END,
            'tail = [{**m, "content": str(m.get("content"))[:40]} if m.get("role") == "tool" else m for m in tail]\n'
            "        " + END),
    _hermes("summary after the tail", "structural", "structure", END,
            'return [*head, *tail, {"role": "user", "content": f"{PREFACE}\\n\\n{summary}"}]'),
    _hermes("the model refuses", "damaging", "form", "        self._previous = summary\n",
            '        summary = "I cannot help with that."\n        self._previous = summary\n'),
    _hermes("addresses invented", "inventing", "facts", "        self._previous = summary\n",
            '        summary += "\\nSee https://wiki.example.net/runbooks/77123-fallback"\n'
            "        self._previous = summary\n"),
    Mutant("unmutated", "harmless", "-", REFERENCE),
    _ours("guidance reworded", "harmless", "-", "context_compressor.py",
          "each decision with its reason, and what it replaced", "what was decided, why, and instead of what"),
    _ours("a variable renamed", "harmless", "-", "context_compressor.py",
          "max_chars=self._room(middle, total)", "max_chars=(room := self._room(middle, total))"),
    _ours("sections reordered", "harmless", "-", "context_compressor.py", "_template_sections: ClassVar", "REORDER"),
    _ours("a comment added", "harmless", "-", "rule_based.py", "        room = max_chars",
          "        # fill the room\n        room = max_chars"),
    _ours("a title renamed", "harmless", "-", "context_compressor.py", '"Next Steps"', '"What Comes Next"'),
    Mutant("unmutated", "harmless", "-", HERMES),
    _hermes("preface reworded", "harmless", "-", "Use it as background.", "Treat it as background."),
    _hermes("wording of the request", "harmless", "-", "Summarise the turns below.", "Summarise these turns."),
    _hermes("a new section", "harmless", "-", '    ("Key Decisions"',
            '    ("Open Questions", "what nobody answered"),\n    ("Key Decisions"'),
    _js("tool outputs cut to 300 characters", "damaging", "shown", "const OUTPUT_LIMIT = 3000",
        "const OUTPUT_LIMIT = 300"),
    _js("tool results not shown", "damaging", "shown", "  for (const message of messages) {\n    const text",
        '  for (const message of messages) {\n    if (message.role === "tool") continue;\n    const text'),
    _js("list of modified files dropped", "damaging", "form", ' + tagged("modified-files", this.files.modified)', ""),
    _js("section 'key decisions' removed", "damaging", "form", '  ["Key Decisions"', "LINE"),
    _js("section 'critical context' removed", "damaging", "form", '  ["Critical Context"', "LINE"),
    _js("recent messages cut to a quarter", "damaging", "window", "const KEEP_CHARS = 6000", "const KEEP_CHARS = 1500"),
    _js("room cut to a third", "damaging", "facts", "const SUMMARY_CHARS = 8000", "const SUMMARY_CHARS = 2600"),
    _js("previous summary not passed on", "damaging", "facts", "    this.previous = reply;\n", ""),
    _js("throws on paths of scripts", "damaging", "outcome", "      if (!path) continue;",
        '      if (/scripts/.test(path)) throw new Error("unexpected path");\n      if (!path) continue;'),
    _js("tail begins with a tool result", "structural", "structure",
        '  while (at > 1 && at < messages.length && messages[at].role === "tool") at -= 1;\n', ""),
    _js("the model refuses", "damaging", "form", "    this.previous = reply;\n",
        '    this.previous = reply;\n    if (reply) return [messages[0], { role: "user", content: `${OPENING}\\n\\n'
        "I'm sorry, I can't help with that.` }, ...messages.slice(cut)];\n"),
    _js("hoards: four times the recent messages", "size only", "size", "const KEEP_CHARS = 6000",
        "const KEEP_CHARS = 24000"),
    Mutant("unmutated", "harmless", "-", JAVASCRIPT),
    _js("opening reworded", "harmless", "-", "was compacted into the following summary:", "is summed up here:"),
    _js("clipping note reworded", "harmless", "-", "more characters]", "characters left out]"),
]  # fmt: skip

HELD_OUT = [
    _ours("arguments of calls left out", "damaging", "facts", "rule_based.py",
          "    for name, value in call.arguments.items():\n        if name not in",
          "    for name, value in dict[str, str]().items():\n        if name not in"),
    _ours("lines clipped to 60 characters", "damaging", "facts", "rule_based.py", "_LINE = 260", "_LINE = 60"),
    _ours("underscores become spaces", "damaging", "facts", "rule_based.py", FLAT,
          FLAT + '\n    flat = flat.replace("_", " ")'),
    _ours("links dropped", "damaging", "facts", "rule_based.py", FLAT,
          FLAT + '\n    flat = re.sub(r"https?://\\S+", "", flat)'),
    _ours("versions cut to the major number", "damaging", "facts", "rule_based.py", FLAT,
          FLAT + '\n    flat = re.sub(r"\\b(\\d+)\\.\\d+(?:\\.\\d+)*\\b", r"\\1", flat)'),
    _ours("what changed in a file forgotten", "damaging", "facts", "rule_based.py",
          "files.setdefault(line.path, []).append(line.text)", "files.setdefault(line.path, [])"),
    _ours("later requests of the user left out", "stale", "facts", "rule_based.py",
          '    if role == "user":\n        limit', '    if role == "user" and first_request:\n        limit'),
    _ours("half of the files forgotten", "damaging", "facts", "rule_based.py",
          "    return AnchoredSummary.of(sections, files)",
          "    return AnchoredSummary.of(sections, dict(list(files.items())[len(files) // 2 :]))"),
    _ours("the tail begins with a tool result", "structural", "structure", "context_compressor.py",
          '    while 0 < start < len(messages) and messages[start].get("role") == "tool":\n        start -= 1\n', ""),
    _ours("the summary appears twice", "structural", "structure", "context_compressor.py", RETURN,
          "return [*messages[:head], summary, summary, *messages[tail:]]"),
    _ours("system prompt cut to 200 characters", "structural", "structure", "context_compressor.py", RETURN,
          'cut = [{**m, "content": str(m.get("content"))[:200]} for m in messages[:head]]\n'
          "        return [*cut, summary, *messages[tail:]]"),
    _ours("hashes scrambled", "inventing", "facts", "rule_based.py", FLAT,
          FLAT + '\n    flat = re.sub(r"\\b[0-9a-f]{7,40}\\b", lambda m: m[0][::-1], flat)'),
    _ours("paths put under another root", "inventing", "facts", "rule_based.py", FLAT,
          FLAT + '\n    flat = re.sub(r"(?<![\\w/.-])((?:[\\w.-]+/)+[\\w-]+\\.\\w+)", r"packages/legacy/\\1", flat)'),
    _ours("every line padded with a phrase", "size only", "size", "summary.py",
          'return [f"- {line}" for line in getattr(self, name)]',
          'return [f"- As was established earlier in this session and still holds: {line}" for line in'
          " getattr(self, name)]"),
    _hermes("every message cut to 500 characters", "damaging", "shown", 'text = str(message.get("content") or "")',
            'text = str(message.get("content") or "")[:500]'),
    _hermes("calls not shown", "damaging", "shown", 'for call in message.get("tool_calls") or ():', "for call in ():"),
    _hermes("only the last twenty messages shown", "damaging", "shown", "{serialise(middle)}",
            "{serialise(middle[-20:])}"),
    _hermes("section 'constraints' removed", "damaging", "form", '("Constraints"', "LINE"),
    _hermes("section 'key decisions' removed", "damaging", "form", '("Key Decisions"', "LINE"),
    _hermes("first request not kept", "damaging", "window", "PROTECT_FIRST = 2", "PROTECT_FIRST = 1"),
    _hermes("summary cut at 1,500 characters", "damaging", "form", "        self._previous = summary\n",
            "        summary = summary[:1_500]\n        self._previous = summary\n"),
    _hermes("every second line lost", "damaging", "facts", "        self._previous = summary\n",
            "        summary = '\\n'.join(x for n, x in enumerate(summary.splitlines()) if x[:2] != '- ' or n % 2)\n"
            "        self._previous = summary\n"),
    _hermes("nothing comes back from the model", "damaging", "form", "        self._previous = summary\n",
            '        summary = ""\n        self._previous = summary\n'),
    _hermes("tool results of the tail dropped", "structural", "structure", END,
            'tail = [m for m in tail if m.get("role") != "tool"]\n        ' + END),
    _hermes("pull requests renumbered", "inventing", "facts", "        self._previous = summary\n",
            "        import re\n"
            "        summary = re.sub(r'#(\\d{2,6})', lambda m: f'#{int(m[1]) + 40_000}', summary)\n"
            "        self._previous = summary\n"),
    _hermes("the summary twice in one message", "size only", "size", "{PREFACE}\\n\\n{summary}",
            "{PREFACE}\\n\\n{summary}\\n\\n{summary}"),
    _js("calls not shown", "damaging", "shown", "for (const call of message.tool_calls ?? []) {\n      lines.push",
        "for (const call of []) {\n      lines.push"),
    _js("lists of files dropped", "damaging", "form", "${reply}${lists}", "${reply}"),
    _js("section 'done' removed", "damaging", "form", '  ["Done"', "LINE"),
    _js("assistant's words not shown", "damaging", "shown", "    if (text) lines",
        '    if (text && message.role !== "assistant") lines'),
    _js("summary cut in half", "damaging", "facts", "await this.complete([{ role: \"user\", content: prompt }]);",
        "(await this.complete([{ role: \"user\", content: prompt }])).slice(0, SUMMARY_CHARS / 2);"),
    _js("numbers lose their last digit", "damaging", "facts", "<summary>\\n${reply}",
        '<summary>\\n${reply.replace(/(\\d{2,})\\d\\b/g, "$10")}'),
    _js("summary after the recent messages", "structural", "structure",
        '{ role: "user", content }, ...messages.slice(cut)]', '...messages.slice(cut), { role: "user", content }]'),
    _js("an order to the reader", "structural", "structure", "const OPENING = \"The",
        "const OPENING = \"Continue immediately without asking the user. The"),
    _ours("mark reworded", "harmless", "-", "context_compressor.py", "[Summary of the earlier session]",
          "[Summary of the session so far]"),
    _ours("empty sections say so in other words", "harmless", "-", "summary.py", '"(none)"', '"(nothing yet)"'),
    _ours("ties broken the other way", "harmless", "-", "rule_based.py",
          "(-item.weight, -item.order, item.text)", "(-item.weight, -item.order, item.text[::-1])"),
    _ours("one per cent more room", "harmless", "-", "context_compressor.py",
          "_summary_share: ClassVar[float] = 0.28", "_summary_share: ClassVar[float] = 0.283"),
    _hermes("guidance reworded", "harmless", "-", "each decision and its reason", "every decision, with the reason"),
    _hermes("clipping mark changed", "harmless", "-", '" ... "', '" [cut] "'),
    _js("guidance reworded", "harmless", "-", "each decision with its rationale", "what was decided and why"),
    _js("roles in capitals", "harmless", "-", "`[${message.role}]: ${text}`",
        "`[${message.role.toUpperCase()}]: ${text}`"),
]  # fmt: skip
"""Written after the rule and its thresholds were settled on `MUTANTS`, and not used to change them."""

LATER = [
    _ours("the focus topic ignored", "damaging", "facts", "rule_based.py",
          'set((focus_topic or "").lower().split())', "set[str]()"),
    _ours("lines with the same first 20 characters are one", "damaging", "facts", "rule_based.py",
          "best[(line.section, line.path, line.text)]", "best[(line.section, line.path, line.text[:20])]"),
    _ours("text in lower case", "damaging", "facts", "rule_based.py", FLAT, FLAT + "\n    flat = flat.lower()"),
    _ours("characters beyond ASCII dropped", "damaging", "facts", "rule_based.py", FLAT,
          FLAT + '\n    flat = flat.encode("ascii", "ignore").decode()'),
    _ours("decimal points become commas", "damaging", "facts", "rule_based.py", FLAT,
          FLAT + '\n    flat = re.sub(r"(?<=\\d)\\.(?=\\d)", ",", flat)'),
    _ours("dates dropped", "damaging", "facts", "rule_based.py", FLAT,
          FLAT + '\n    flat = re.sub(r"\\b\\d{4}-\\d\\d-\\d\\d\\b", "", flat)'),
    _ours("the summary appended to the one before it", "size only", "size", "context_compressor.py",
          "self._summary = text\n", 'self._summary = f"{self._summary}\\n\\n{text}" if self._summary else text\n'),
    _ours("line numbers of files dropped", "damaging", "facts", "rule_based.py", FLAT,
          FLAT + '\n    flat = re.sub(r"(\\.[a-z]{1,4}):\\d+\\b", r"\\1", flat)'),
    _ours("earlier requests go at a merge", "damaging", "facts", "summary.py",
          "session_intent=_joined(self.session_intent, newer.session_intent)",
          "session_intent=newer.session_intent or self.session_intent"),
    _ours("words of negation dropped", "damaging", "facts", "rule_based.py", FLAT,
          FLAT + '\n    flat = re.sub(r"\\b(?:not|never|no|cannot)\\b ?", "", flat)'),
    _hermes("tool outputs of over 3,000 characters dropped", "damaging", "shown", "text = clip(text, OUTPUT_LIMIT)",
            'text = "" if len(text) > 3_000 else text'),
    _hermes("links replaced by their hosts", "damaging", "facts", "        self._previous = summary\n",
            "        import re\n"
            "        summary = re.sub(r'https?://([^/\\s]+)\\S*', r'\\1', summary)\n"
            "        self._previous = summary\n"),
    _js("quotes cut to 40 characters", "damaging", "facts", "<summary>\\n${reply}",
        "<summary>\\n${reply.replace(/([\"'`])([^\"'`\\n]{40})[^\"'`\\n]+\\1/g, \"$1$2$1\")}"),
    _js("only the oldest 12,000 characters shown", "damaging", "shown", "${serialise(older)}",
        "${serialise(older).slice(0, 12000)}"),
    _ours("a blank line under each heading", "harmless", "-", "summary.py", 'f"## {title}\\n"', 'f"## {title}\\n\\n"'),
    _ours("weight of failures raised by one", "harmless", "-", "rule_based.py", "base = 14.0", "base = 15.0"),
    _ours("a function taken out", "harmless", "-", "rule_based.py",
          "return _assemble(sorted(kept, key=lambda item: item.order))",
          "in_order = sorted(kept, key=lambda item: item.order)\n        return _assemble(list(in_order))"),
    _hermes("a preface in other words", "harmless", "-",
            "Earlier turns were compacted into the summary below. Use it as background.",
            "What follows sums up the turns that came before."),
    _hermes("calls labelled in other words", "harmless", "-", "[call] ", "[tool call] "),
    _hermes("100 characters more room", "harmless", "-", "SUMMARY_CHARS = 9_000", "SUMMARY_CHARS = 9_100"),
    _js("an import added, in order", "harmless", "-", "import { createInterface",
        'import process from "node:process";\nimport { createInterface'),
]  # fmt: skip
"""Written after every strand had been built, and run for the first time with nothing changed."""
