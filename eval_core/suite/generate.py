"""Generated sessions: as long as asked for, from a seed and a tree of real files, with ledger and probes."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from eval_core.base.errors import UserError
from eval_core.base.files import digest, read_text
from eval_core.base.messages import Message
from eval_core.base.tokens import count_messages
from eval_core.domain.case import Case
from eval_core.domain.fixture import TRIGGER, Fixture
from eval_core.domain.probe import Fact, Probe, ProbeBank, ProbeType
from eval_core.domain.session_ledger import LedgerLine, LineKind, SessionLedger, StatusAt

SESSION_TREE = Path(__file__).resolve().parents[1] / "data" / "session_tree.json.gz"
"""Modules of this program and its history, as they were once: sessions must not change with every commit."""
_CHARS = 3.6  # to a token, of what is planned; what is written is counted
_HISTORY = "HISTORY"
_LENGTHS = (8, 12, 16, 20, 25, 30, 40, 60, 120, 400)
"""Lines of an output: as in real sessions most are short, and a few take a good part of the window."""
_MOST_FILE = 200_000  # characters of a file of a user's own tree


@dataclass(frozen=True)
class SessionPlan:
    """Everything that decides what is generated, beside the tree."""

    name: str
    seed: int
    tokens: int = 90_000
    window: int = 16_000
    restated: float = 0.1
    """Chance that something old is said again, after every piece of work."""
    density: float = 2.2
    """Facts for each thousand tokens."""
    largest: int | None = None
    """Tokens of the largest tool output; by default a quarter of the window."""

    def __post_init__(self) -> None:
        quarter = self.window // 4
        limits: tuple[tuple[str, float, float, float], ...] = (
            ("--tokens", self.tokens, 2_000, 5_000_000),
            ("--window", self.window, 2_000, 2_000_000),
            ("--restated", self.restated, 0, 1),
            ("--density", self.density, 0.1, 10),
            ("--largest", self.most, 100, quarter),
        )
        for name, value, low, high in limits:
            if not low <= value <= high:
                hint = "; with more than a quarter of the window, rounds free nothing" if name == "--largest" else ""
                raise UserError(f"{name} {value:,}: give {low:,} to {high:,}{hint}")

    @property
    def most(self) -> int:
        """The tokens of the largest output."""
        return self.window // 4 if self.largest is None else self.largest

    @property
    def rounds(self) -> int:
        """How often a session of this length is compressed."""
        return max(1, round(self.tokens / (TRIGGER * self.window)))


def read_tree(path: Path = SESSION_TREE) -> dict[str, str]:
    """Return the text files that sessions quote: those of a folder, or of a packed tree."""
    if path.is_dir():
        files = {}
        for file in sorted(path.rglob("*")):
            parts = file.relative_to(path).parts
            if file.is_file() and file.stat().st_size <= _MOST_FILE and not any(part.startswith(".") for part in parts):
                try:
                    files["/".join(parts)] = read_text(file)
                except UserError:
                    continue  # no text
    else:
        try:
            files = json.loads(gzip.decompress(path.read_bytes()))
        except (OSError, EOFError, ValueError) as exc:
            raise UserError(f"{path}: the tree of generated sessions cannot be read ({exc}); give a folder") from None
    if sum(text.count("\n") for name, text in files.items() if name != _HISTORY) < 200:
        raise UserError(f"{path}: fewer than 200 lines of text; a session needs a real tree to quote")
    return files


# What a session establishes. Each has a word of its own by which it is found, and a topic by which it is asked for.

_NOUNS = (
    "harbor", "lattice", "meadow", "quarry", "saddle", "timber", "anchor", "beacon", "copper", "drift", "ember",
    "falcon", "garnet", "hollow", "island", "jasper", "kettle", "lantern", "marble", "nectar", "orchid", "pebble",
    "quiver", "ripple", "silver", "thistle", "umber", "velvet", "walnut", "zephyr",
)  # fmt: skip
_PARTS = (
    "upload worker", "invoice export", "login flow", "search index", "nightly report", "webhook sender",
    "rate limiter", "image cache", "audit trail", "mail queue", "billing sync", "session store", "schema migration",
    "feature flags", "metrics agent", "import job", "backup task", "permission check", "retry policy",
    "payment gateway", "tenant router", "document parser", "event bus", "health check",
)  # fmt: skip
_ASPECTS: dict[LineKind, str] = {
    "rule": "generated files|manual edits|production data|vendored code|shared settings",
    "request": "follow-up wish|extra endpoint|second export|cleanup|documentation page",
    "decision": "locking|batching|storage|serialisation|ordering|fallback|partitioning|caching",
    "value": "timeout|batch size|memory limit|queue length|retention|burst size|poll interval",
    "item": "open work|missing test|migration step|review comment|rollout step",
    "approval": "removal|restart|rename|downtime",
    "error": "failure|crash|broken test|warning",
    "path": "new module|new script|new fixture",
    "identifier": "new function|helper|entry point",
    "host": "staging host|primary host|replica",
    "hash": "fix commit|revert commit|release commit",
    "pull_request": "pull request|follow-up pull request",
}
_WEIGHTS: dict[LineKind, int] = {
    "decision": 20, "value": 18, "path": 12, "error": 12, "identifier": 10, "item": 8, "rule": 6, "host": 6,
    "request": 5, "hash": 5, "pull_request": 4, "approval": 2,
}  # fmt: skip
_CARRIERS: dict[LineKind, str] = {
    "rule": "talk", "request": "talk", "decision": "talk", "value": "talk", "item": "talk", "approval": "talk",
    "error": "tests", "host": "logs", "path": "write", "identifier": "write", "hash": "git", "pull_request": "git",
}  # fmt: skip
_REPORTED: tuple[LineKind, ...] = ("value", "host", "error", "path")
"""What a sub-agent may report instead."""
_PROBES: dict[LineKind, ProbeType] = {
    "decision": "decision", "rule": "decision", "path": "artifact", "identifier": "artifact", "hash": "artifact",
    "pull_request": "artifact", "item": "continuation", "request": "continuation", "approval": "continuation",
}  # fmt: skip
_ASKED: dict[LineKind, str] = {
    "rule": "Which of its names did the user say to leave alone, for {topic}?",
    "request": "What else did the user ask for, for {topic}?",
    "decision": "What was decided to be used for {topic}?",
    "value": "What is {topic} set to now?",
    "item": "What was still to be added, for {topic}?",
    "approval": "What did the user allow to be dropped, for {topic}?",
    "error": "Which error code did {topic} show?",
    "path": "Which file was written as {topic}?",
    "identifier": "How is the function named that was written as {topic}?",
    "host": "What is the name of {topic}?",
    "hash": "Which commit is {topic}?",
    "pull_request": "Which number has {topic}?",
}
_SAID: dict[LineKind, str] = {
    "rule": "Never edit `{token}` for {topic}: it must stay as it is.",
    "request": "Please also add `{token}` as {topic}.",
    "decision": "I decided to use `{token}` for {topic}, because the alternatives lose updates under load.",
    "value": "The setting of {topic} must be {token} from now on.",
    "item": "Still open for {topic}: add `{token}`.",
    "approval": "Asked whether `{token}` may be dropped, for {topic}.",
    "error": "ERROR {token}: {topic} stopped with an unexpected state",
    "path": "Wrote {token} as {topic}.",
    "identifier": "Wrote {token}() as {topic}.",
    "host": "connected to {token} as {topic}",
    "hash": "Committed {token} as {topic}.",
    "pull_request": "Opened pull request {token} as {topic}.",
}


@dataclass(eq=False)
class _Planted:
    """One thing that the session is going to say."""

    kind: LineKind
    token: str
    topic: str
    at: float
    """Where it is due, as a share of the session."""
    old: _Planted | None = None
    """What it takes the place of."""
    places: list[int] = field(default_factory=list)
    ended: int | None = None
    done: int | None = None
    needed: list[int] = field(default_factory=list)

    @property
    def text(self) -> str:
        """How people say it."""
        return _SAID[self.kind].format(token=self.token, topic=self.topic)


def _token(kind: LineKind, number: int, rng: random.Random) -> str:
    one, two = rng.sample(_NOUNS, 2)
    forms: dict[LineKind, str] = {
        "value": str(20_000 + 37 * number + rng.randrange(37)),
        "error": f"E{4000 + number}_{one.upper()}",
        "path": f"services/{one}/{two}_{number}.py",
        "host": f"{one}-{number}.svc.internal",
        "hash": f"{rng.randrange(16**6):06x}{number:04x}",
        "pull_request": f"#{4000 + number}",
    }
    return forms.get(kind, f"{one}_{two}_{number}")


def _planted(plan: SessionPlan, rng: random.Random) -> list[_Planted]:
    """Plan what is established where; a fifth of values and decisions take the place of an earlier one."""
    many = max(24, round(plan.density * plan.tokens / 1000))
    kinds = rng.choices(list(_WEIGHTS), weights=list(_WEIGHTS.values()), k=many)
    topics = {kind: rng.sample(every, len(every)) for kind, every in _topics().items()}
    found: list[_Planted] = []
    current: dict[LineKind, list[_Planted]] = {}
    for number, (kind, at) in enumerate(zip(kinds, sorted(rng.uniform(0.0, 0.97) for _ in kinds), strict=True)):
        earlier = [one for one in current.get(kind, ()) if one.at < at - 0.1]
        old = rng.choice(earlier) if kind in ("value", "decision") and earlier and rng.random() < 0.2 else None
        if old is not None:
            current[kind].remove(old)
        used, which = divmod(kinds[:number].count(kind), len(topics[kind]))
        topic = topics[kind][which] + (f" no. {used + 1}" if used else "")  # in long sessions topics come again
        new = _Planted(kind, _token(kind, number, rng), topic if old is None else old.topic, at, old)
        current.setdefault(kind, []).append(new)
        found.append(new)
    return found


def _topics() -> dict[LineKind, list[str]]:
    return {
        kind: [f"the {aspect} of the {part}" for part in _PARTS for aspect in words.split("|")]
        for kind, words in _ASPECTS.items()
    }


# What a session consists of: tool output from the tree, what is made, and talk.


@dataclass
class _Session:
    """The session so far, and where its texts come from."""

    plan: SessionPlan
    rng: random.Random
    tree: Mapping[str, str]
    messages: list[Message] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    calls: int = 0
    reads: list[tuple[str, int, int]] = field(default_factory=list)
    said: list[_Planted] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.files = [name for name in sorted(self.tree) if name != _HISTORY]
        self.lines = {name: self.tree[name].splitlines() for name in self.files}
        self.history = self.tree.get(_HISTORY, "").splitlines() or [f"{name}: change" for name in self.files]
        self.most = round(self.plan.most * _CHARS)

    @property
    def tokens(self) -> int:
        return sum(self.sizes)

    def add(self, role: str, text: str | None, *facts: _Planted, **more: Any) -> None:
        self.messages.append({"role": role, "content": text, **more})
        self.sizes.append(count_messages(self.messages[-1:]))
        for fact in facts:
            fact.places.append(len(self.messages) - 1)
            if fact not in self.said:
                self.said.append(fact)
            if fact.old is not None and fact.old.ended is None:
                fact.old.ended = len(self.messages) - 1
                self.said.remove(fact.old)

    def tool(
        self, name: str, arguments: Mapping[str, Any], output: str, *facts: _Planted, called: bool = False
    ) -> None:
        """Add a call and its output; with `called`, the call itself says the facts."""
        self.calls += 1
        function = {"name": name, "arguments": json.dumps(arguments)}
        call = {"id": f"call_{self.calls}", "type": "function", "function": function}
        self.add("assistant", None, *(facts if called else ()), tool_calls=[call])
        self.add("tool", output, *(() if called else facts), tool_call_id=f"call_{self.calls}")

    def slice(self, name: str, start: int, count: int) -> str:
        """Return numbered lines of a file, no more than the largest output."""
        lines = [f"{start + at + 1:>5}\t{line}" for at, line in enumerate(self.lines[name][start : start + count])]
        return "\n".join(lines)[: self.most]

    def read(self) -> None:
        """Read a file; one read in six gives again what an earlier one gave."""
        if self.reads and self.rng.random() < 1 / 6:
            name, start, count = self.rng.choice(self.reads)
        else:
            name = self.rng.choice(self.files)
            count = self.rng.choice(_LENGTHS)
            start = self.rng.randrange(max(1, len(self.lines[name]) - count))
            self.reads.append((name, start, count))
        self.tool("read_file", {"path": name, "offset": start + 1, "limit": count}, self.slice(name, start, count))

    def search(self) -> None:
        """Search the tree for a word of it."""
        words = [word for word in self._line().replace("(", " ").replace(".", " ").split() if word.isidentifier()]
        word = max(words, key=len, default="return")
        hits = [
            f"{name}:{number}: {line.strip()}"
            for name in self.files
            for number, line in enumerate(self.lines[name], 1)
            if word in line
        ]
        self.tool("search", {"pattern": word}, "\n".join(hits[: self.rng.choice(_LENGTHS)])[: self.most])

    def log(self) -> None:
        """Show a part of the history."""
        start = self.rng.randrange(max(1, len(self.history) - 25))
        lines = self.history[start : start + 25]
        self.tool("terminal", {"command": f"git log --oneline --skip {start} -25"}, "\n".join(lines))

    def diff(self) -> None:
        """Show a change of a file."""
        name = self.rng.choice(self.files)
        start, count = self.rng.randrange(max(1, len(self.lines[name]) - 60)), self.rng.choice(_LENGTHS)
        body = []
        for line in self.lines[name][start : start + count]:
            body += [f"-{line}", f"+{line}  # checked"] if line.strip() and self.rng.random() < 0.12 else [f" {line}"]
        head = [f"--- a/{name}", f"+++ b/{name}", f"@@ -{start + 1} +{start + 1} @@"]
        self.tool("terminal", {"command": f"git diff -- {name}"}, "\n".join([*head, *body])[: self.most])

    def tests(self, *facts: _Planted) -> None:
        """Run made tests, failing where an error is due."""
        names = [f"tests/{self.rng.choice(_NOUNS)}/test_{self.rng.choice(_NOUNS)}.py" for _ in range(4)]
        passed = [
            f"{self.rng.choice(names)}::test_{self.rng.choice(_NOUNS)}_{n} PASSED"
            for n in range(self.rng.choice(_LENGTHS[:-2]))
        ]
        failed = [f"{self.rng.choice(names)} FAILED\nE   {fact.text}\n    {self._line()}" for fact in facts]
        self.rng.shuffle(passed)
        end = f"{len(facts)} failed, {len(passed)} passed" if facts else f"{len(passed)} passed"
        command = f"pytest {self.rng.choice(names)}"
        self.tool("terminal", {"command": command}, "\n".join([*passed, *failed, end])[: self.most], *facts)

    def logs(self, *facts: _Planted) -> None:
        """Show lines of a made service log."""
        clock = self.rng.randrange(86_000)
        lines = []
        for _ in range(self.rng.choice(_LENGTHS)):
            clock += self.rng.randrange(9)
            at = f"{clock // 3600:02}:{clock // 60 % 60:02}:{clock % 60:02}"
            what = self.rng.choice(("served a request", "cache miss", "flushed the queue", "slow query", "heartbeat"))
            lines.append(f"{at} INFO {self.rng.choice(_NOUNS)}: {what} in {self.rng.randrange(900)} ms")
        kept = lines[: max(1, self.most // 60 - len(facts))]
        for fact in facts:
            kept.insert(self.rng.randrange(len(kept) + 1), f"{kept[0][:8]} INFO {fact.text}")
        self.tool("terminal", {"command": "tail -n 200 service.log"}, "\n".join(kept), *facts)

    def write(self, *facts: _Planted) -> None:
        """Write a file: what is due is its path or a function in it."""
        for fact in facts:
            body = "\n".join(self._line() for _ in range(30))
            if fact.kind == "path":
                arguments = {"path": fact.token, "content": f'"""{fact.topic}."""\n{body}'}
            else:
                path = f"services/{self.rng.choice(_NOUNS)}/core.py"
                arguments = {"path": path, "content": f"def {fact.token}():  # {fact.topic}\n{body}"}
            self.tool("write_file", arguments, "written", fact, called=True)

    def git(self, *facts: _Planted) -> None:
        """Commit or open a pull request."""
        for fact in facts:
            if fact.kind == "hash":
                changed = self.rng.choice(self.files)
                output = f"[work {fact.token}] {fact.topic}\n 1 file changed\n {changed}"
                self.tool("terminal", {"command": f"git commit -am '{fact.topic}'"}, output, fact)
            else:
                output = f"Creating pull request for work\nOpened {fact.token}: {fact.topic}"
                self.tool("terminal", {"command": f"gh pr create --title '{fact.topic}'"}, output, fact)

    def report(self, *facts: _Planted) -> None:
        """Let a sub-agent report."""
        findings = "\n".join(f"- {fact.text}" for fact in facts)
        seen = "\n".join(f"- looked at {self.rng.choice(self.files)}: {self._line().strip()}" for _ in range(12))
        self.tool("task", {"prompt": "Look into it and report."}, f"Report:\n{findings}\n{seen}", *facts)

    def talk(self, *facts: _Planted) -> None:
        """Say what is due, by whoever says such things."""
        for fact in facts:
            if fact.kind == "approval":
                self.add("assistant", f"May I drop `{fact.token}`, for {fact.topic}?", fact)
                self.add("user", f"Yes, drop `{fact.token}`.", fact)
                fact.done = len(self.messages) - 1
            elif fact.old is not None:
                self.add("user", f"Correction for {fact.topic}: not {fact.old.token}. {fact.text}", fact)
            else:
                self.add("user" if fact.kind in ("rule", "request", "value") else "assistant", fact.text, fact)

    def again(self) -> None:
        """Come back to something old: finish it, be asked for it, or mention it."""
        old = [fact for fact in self.said if len(self.messages) - fact.places[-1] > 40]
        if not old:
            return
        fact = self.rng.choice(old)
        if fact.kind == "item" and fact.done is None:
            self.add("assistant", f"Done for {fact.topic}: `{fact.token}` is added.", fact)
            fact.done = len(self.messages) - 1
            return
        if self.rng.random() < 0.5:
            self.add("user", f"Remind me about {fact.topic}, we need it now.")
            fact.needed.append(len(self.messages))
        self.add("assistant", f"As noted: {fact.text}", fact)

    def _line(self) -> str:
        return self.rng.choice([line for line in self.lines[self.rng.choice(self.files)] if line.strip()] or ["pass"])


def _due(session: _Session, waiting: list[_Planted], share: float) -> Iterator[tuple[str, list[_Planted]]]:
    """Yield what is due now, by who says it."""
    due: dict[str, list[_Planted]] = {}
    while waiting and waiting[0].at <= share:
        fact = waiting.pop(0)
        reported = fact.kind in _REPORTED and fact.old is None and session.rng.random() < 0.15
        due.setdefault("report" if reported else _CARRIERS[fact.kind], []).append(fact)
    yield from due.items()


def _write(plan: SessionPlan, tree: Mapping[str, str]) -> tuple[_Session, list[_Planted]]:
    # A seed of its own for each part: another density must not change which files are read.
    rng = random.Random(f"{plan.seed}/{plan.name}")  # noqa: S311 - texts, no secrets
    planted = _planted(plan, rng)
    session = _Session(plan, rng, tree)
    session.add("system", "You are a careful engineer. You work in the repository with the tools you are given.")
    session.add("user", "Go on with the services one by one, and keep me informed about what you decide.")
    waiting = list(planted)
    fillers: tuple[Callable[[], None], ...] = (
        session.read, session.read, session.read, session.search, session.log, session.diff, session.tests,
        session.logs,
    )  # fmt: skip
    while (tokens := session.tokens) < plan.tokens:
        for carrier, facts in _due(session, waiting, tokens / plan.tokens):
            getattr(session, carrier)(*facts)
        rng.choice(fillers)()
        if rng.random() < plan.restated:
            session.again()
    session.add("assistant", "That is done. Next I will look at what is still open.")
    session.add("user", "Good. Go on.")
    return session, [fact for fact in planted if fact.places]


def cut_places(messages: Sequence[Message], sizes: Sequence[int], rounds: int) -> list[int]:
    """Return where a session is compressed before its end: after equal numbers of tokens, no call cut off.

    The places depend on the session alone, so that base and candidate are compared round by round.
    """
    step, cuts, seen, number = sum(sizes) / rounds, [], 0, 1
    for at, size in enumerate(sizes):
        if number < rounds and seen >= number * step and messages[at].get("role") != "tool":
            cuts.append(at)
            number += 1
        seen += size
    return cuts


def _line_of(fact: _Planted, name: str, speakers: Sequence[str]) -> LedgerLine:
    status = []
    if fact.kind == "item":
        status = [StatusAt(at=fact.places[0], is_="open")]
        status += [StatusAt(at=fact.done, is_="done")] if fact.done is not None else []
    elif fact.kind == "approval" and fact.done is not None:
        status = [StatusAt(at=fact.places[0], is_="asked"), StatusAt(at=fact.done, is_="given")]
    end = fact.ended
    role = speakers[fact.places[0]]
    return LedgerLine(
        id=name,
        kind=fact.kind,
        anchors=[fact.token],
        text=fact.text,
        speaker="user" if role == "user" else "tool" if role == "tool" else "assistant",
        said=sorted({place for place in fact.places if end is None or place < end}),
        polarity="do_not" if fact.kind == "rule" else None,
        strength="must" if fact.kind == "rule" else None,
        status=status,
        superseded_at=end,
        topic=fact.topic,
        needed=fact.needed,
    )


def _ledger(plan: SessionPlan, session: _Session, facts: Sequence[_Planted]) -> SessionLedger:
    ids = {id(fact): f"{fact.kind}-{number}" for number, fact in enumerate(facts, 1)}
    speakers = [message["role"] for message in session.messages]
    successors = {ids[id(fact.old)]: ids[id(fact)] for fact in facts if fact.old is not None and id(fact.old) in ids}
    lines = [_line_of(fact, ids[id(fact)], speakers) for fact in facts]
    return SessionLedger(
        fixture=plan.name,
        lines=[line.model_copy(update={"superseded_by": successors.get(line.id)}) for line in lines],
    )


def _bank(plan: SessionPlan, ledger: SessionLedger, end: int, rng: random.Random) -> ProbeBank:
    """Ask for a third each of early, middle and late facts, and for every type in each third."""
    old = {line.superseded_by: line for line in ledger.lines if line.superseded_by is not None}
    current = [line for line in ledger.lines if line.superseded_at is None]
    probes = []
    for part, name in enumerate(("early", "middle", "late")):
        here = [line for line in current if part <= 3 * line.said[0] / end < part + 1]
        rng.shuffle(here)
        here.sort(key=lambda line: line.id not in old)  # values that took another's place first
        kinds: dict[ProbeType, LedgerLine] = {}
        for line in here:
            kinds.setdefault(_PROBES.get(line.kind, "recall"), line)
        for wanted, line in sorted(kinds.items()):
            facts = [Fact(fact=line.anchors[0], kind=line.fact.kind, evidence=line.said[:12])]
            if line.id in old:
                before = old[line.id]
                facts.append(Fact.model_validate({"not": before.anchors[0], "evidence": before.said[:12]}))
            question = _ASKED[line.kind].format(topic=line.topic)
            probes.append(
                Probe(id=f"{name}-{line.id.replace('_', '-')}", type=wanted, question=question, expected_facts=facts)
            )
    return ProbeBank(fixture=plan.name, probes=probes)


def generate(plan: SessionPlan, tree: Mapping[str, str] | None = None) -> Case:
    """Return a session with its probes and its ledger; the same plan and tree always give the same."""
    tree = read_tree() if tree is None else tree
    session, facts = _write(plan, tree)
    everything = "\n".join(tree.values())
    facts = [fact for fact in facts if fact.token not in everything]
    ledger = _ledger(plan, session, facts)
    fixture = Fixture(
        name=plan.name,
        description=f"Generated: {len(ledger.lines)} facts in {session.tokens:,} tokens.",
        model="generated",
        context_length=plan.window,
        messages=session.messages,
        segments=cut_places(session.messages, session.sizes, plan.rounds),
        notes=f"Generated from seed {plan.seed} and the tree {digest(dict(tree))[:16]}.",
    )
    rng = random.Random(f"{plan.seed}/probes")  # noqa: S311 - texts, no secrets
    return Case(fixture, _bank(plan, ledger, len(session.messages), rng), ledger=ledger)
