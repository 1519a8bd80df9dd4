"""What speaks for and against a word being somebody's: the words beside it, the marks around it, its line."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from eval_core.suite.scrub.named_fields import field_kind
from eval_core.suite.scrub.ordinary_words import is_ordinary, is_person_name, is_strange

__all__ = ["Line", "NeighbourLines", "Place", "evidence", "may_stand_under"]

# What stands before a name: a label (judged by `field_kind`), or a word of these.
_LABEL = re.compile(
    r"(?P<words>(?:[^\W\d_][\w-]*[ _]){0,2}[^\W\d_][\w-]*)"
    r"(?P<sep>[\"'\])]{0,2}(?::s)?\s*(?:[:=>#|]|\.|\s-)?\s*[\"'\[(<{‘“]{0,2}@?|\s+)\Z"
)
_STRONG_WORDS = (
    "ask asked ping pinged tell told thanks thank poke remind reminded dm emailed mailed cc fao attn guardian "
    "colleague teammate mr mrs ms mx dr dra prof herr frau herrn hr señor señora sr sra signor signora sig dott "
    "dottssa monsieur madame mme mlle pan pani pana hra fru dhr mevr mevrouw meneer patient pat hi hello hey dear "
    "hallo hej hei liebe lieber bonjour salut cher chère hola estimado estimada querida querido ciao gentile olá oi "
    "prezado prezada kære kjære bästa beste drogi droga witaj ahoj moi merhaba sayın szia guest caller callee agent "
    "organiser organizer operator uploader oncall impersonating kinit whois passwd finger userdel useradd usermod "
    "logname frag fråga zapytaj pregúntale demande chiedi pergunte spør spørg vraag kysy kérdezd zeptej spytaj nick "
    "alias invited mentor buddy supervisor spouse wife husband daughter son sister brother mother father mon tue "
    "wed thu fri sat sun monday tuesday wednesday thursday friday saturday sunday yesterday presenter moderator "
    "speaker instructor nurse physician surgeon lawyer notary landlord tenant driver pilot captain chauffeur "
    "courier signatory chair scribe"
)
_WEAK_WORDS = (
    "by from for with as to and or call called meet met via per signed today tomorrow med mit avec con com z od von "
    "van par por da de di du af av fra från för für pour para till til aan hos chez bei u k pro voor do dla optional "
    "required "
    "primary secondary calls calling "
    "accepted declined tentative present absent excused left lead named name driver user's behalf backup shadow "
    "host cover"
)
_STRONG = frozenset(_STRONG_WORDS.split())
_WEAK = frozenset(_WEAK_WORDS.split())
_HOST_WORDS_TEXT = (
    "host node machine server from on at to box ssh address target endpoint peer computer device workstation "
    "hostname name linux darwin via client source destination printer laptop desktop mac into reboot rebooted"
)
_HOST_WORDS = frozenset(_HOST_WORDS_TEXT.split())
_HALVES = re.compile(r"(?i)\bfirst\b.*\blast\b|\blast\b.*\bfirst\b")
_NOT_PEOPLE_TEXT = "agent id ids type interface guide manual story stories experience role roles group"
_NOT_PEOPLE = frozenset(_NOT_PEOPLE_TEXT.split())
_DID = (
    r"approved|asked|says|said|told|wrote|writes|commented|replied|reviewed|merged|pushed|submitted|requested|joined"
    r"|left|locked|unlocked|logged|signed|connected|disconnected|authenticated|uploaded|downloaded|confirmed"
    r"|acknowledged|acked|escalated|resolved|reopened|assigned|mentioned|invited|booked|called|reported|joins|quit"
    r"|declined|accepted|checked in|checked out|clocked|scanned|opened|closed|edited|shared|reacted|typed|starred"
    r"|forked|wants|thinks|knows|noticed|suggested|promised|owns|prefers|is (?:away|out|off|on|typing|online|offline"
    r"|now|back|busy|idle)|has (?:joined|left|quit|been|signed|logged|the|succeeded|failed)|voted|answered|posted|sent"
    r"|received|tried|attempted|deployed|rebooted|completed|claimed|took|mailed|emailed|paid|ordered|and I|to (?:update"
    r"|check|review|write|fix|ask|send|prepare|follow|confirm|call|own|talk)"
    r"|from [a-z]+ (?:says|said|asked|wants|told|wrote|thinks)"
    r"|sagt|meint|schreibt|schrieb|hat|a écrit"
    r"|dit|dice|escribió|scrive|skrev|sier|sade|zegt|schreef|napisał|pisze|mówi"
)
_WEAK_DID = (
    r"will|should|would|can|could|is|has|was|added|removed|created|deleted|started|stopped|triggered|changed|updated"
    r"|found|fixed|broke|needs|needed|at \+?\d|ALL=|on pts|from \d|from host\d"
)
_BETWEEN = r"[\"'\])>]{0,2}(?: \([^()\n]{1,30}\)| \[[^\[\]\n]{1,60}\])?:? "
_VERB = re.compile(rf"{_BETWEEN}(?:{_DID})\b", re.IGNORECASE)
_WEAK_VERB = re.compile(rf"{_BETWEEN}(?:{_WEAK_DID})(?![a-z])")
_ACTS = re.compile(
    r" (?:[a-z]{3,}(?:(?<!s)s|ed)|saw|took|gave|went|got|made|ran|put|had|does|did|doesn't|didn't|won't|isn't|hasn't"
    r"|can't"
    r"|already|still|just|also|thinks)(?= |[,.;!?]?$|, )"
)
_CALLED = re.compile(
    r"(?i)(?:^|[\s\"'>])(?:done|hi|hey|hello|thanks|thank you|thx|sorry|sure|ok|okay|yes|no|yep|right|great|welcome"
    r"|morning"
    r"|good (?:morning|evening|afternoon)|cheers|congrats|congratulations|please|bye|regards|danke|merci|gracias|grazie"
    r"|obrigad[oa]|tack|takk|dank je|kiitos|dzięki|bonjour|salut|hola|ciao|olá|hallo|hej),? \Z|[a-z], \Z"
)
_CALLED_AFTER = re.compile(r"[!?](?:\s|$)| ?[—–-] |,? ?$|,\s")
_SIGNED = re.compile(r"[a-zà-ÿ)][.!?…]\)? \Z")
_POSSESSIVE = re.compile(r"['’]s? ")
_OWNED = re.compile(
    r"['’]s? (?:(?:old|new|last|first|other|own) )?(?:MacBook|iMac|iPhone|iPad|Mac|PC|AirPods|Pixel|Galaxy"
    r"|Watch|Kindle|ThinkPad|Surface|Backup|Drive|(?i:branch|laptop|phone|computer|desktop|machine|desk|team|PR|fork"
    r"|account|calendar|ticket|review"
    r"|comments?|idea|patch|change|commit|mail|email|message|question|suggestion|fix|backup|printer|tablet"
    r"|workstation|key"
    r"|door|car|office|shift|cover|manager|boss|number|address|birthday|place|house|login|profile|inbox|notes|draft"
    r"|request"
    r"|approval|permission|home|folder|hotspot|wi-?fi|tv|speaker|stuff|documents|files|turn|report|PRs))\b"
)
_SAYS = re.compile(
    r"[\"'*_]{0,2}(?::(?=\s\S|$)|>(?= ?\S)| ?[»|›—–] )|,? \[?\d\d?:\d\d|\s{2,}\d\d?:\d\d|\*? \[\d\d?:\d\d"
)
_TALK = re.compile(
    r"(?i)[\"'*_]{0,2}: (?=.*(?:\b(?:i|i'm|i'll|you|we|me|my|your|pls|please|thanks|ok|okay|yes|no|lol|hey|on it"
    r"|sure|can|did|sorry|let's|don't|it's|that's|done)\b|\?$))"
)
_TIME_BEFORE = re.compile(
    r"\d\d?:\d\d(?::\d\d)?(?:[.,]\d+)?Z?(?: ?[AaPp]\.?[Mm]\.?)?[\])]?[ \t>)*•·|,—–-]{0,4}[<@(*~+]{0,2}\Z"
)
_TURNED_BEFORE = re.compile(r"(?:^|[;|\t>([:\]\".]|  |\d,?)\s?(?P<other>[A-ZÀ-Þ][\w'’-]{2,})[,;^] ?\Z")
_TURNED_AFTER = re.compile(r"[,;^] ?(?P<other>[A-ZÀ-Þ][\w'’-]{2,})(?= ?(?:$|[;|\t(<)\"\]]|  |\d|- ))")
_REALM = re.compile(r"@(?!example\b)(?:[A-Za-z][\w-]*(?![\w(/@])|\d{1,3}\.\d|\s)")
_NAMESPACE = re.compile(
    r"(?:(?:github|gitlab|bitbucket|codeberg|sr)\.(?:com|org|ht)[:/]~?|(?:docker|ghcr|quay)\.io/)\Z"
)
_PUBLISHED = re.compile(r"(?i)\b(?:push\w*|pull\w*|origin|fork\w*|clone\w*|remote|upstream|fetch)\b|^To ")
_ID_BEFORE = re.compile(r"(?<![\w.])\d{1,6}[(/] ?\Z|:[x*!]?:\d+:(?:[\w.-]+,)*\Z")
_ADDRESS_AFTER = re.compile(r",? ?[<(\[]?person\d+@example\.com")
_DOMAIN_BEFORE = re.compile(r"(?<![\w\\/.$%-])(?!NT |BUILTIN|[A-Za-z]:)(?P<domain>[A-Za-z][\w.-]{1,20})\\{1,2}\Z")
_FRAMES = frozenset(("[]", "<>", "()", "''", '""', "‘’", "“”", "||", "**"))
_ZONE = re.compile(
    r"\.(?:lan|local|home|intranet|corp|internal|fritz\.box|home\.arpa|localdomain)\b"
    r"|\.[\w-]+\.(?:[\w-]+\.)?[a-z]{2,6}\b(?!\()"
)
_PROGRAM = re.compile(r" [\w./-]+(?:\[\d+\])?: | [\w.-]+ (?:\d+|-) (?:-|\w+) ")
_PORT = re.compile(r":(?:\d{2,5}\b|/|\\)|\\\w|/(?=[\w$])")

# What a line speaks of.
_CLOCK = re.compile(r"(?<![\d:.])\d{1,2}:\d\d(?::\d\d)?(?![\d:])|\b\d{4}-\d\d-\d\d\b|\b\d\d?/[A-Z][a-z]{2}/\d{4}\b")
_SOMEBODY = re.compile(
    r"(?<![\w@/\\.-])(?:Person\d+|user\d+|person\d+@example\.com|host\d+)(?![\w/\\-])|REDACTED-(?:phone|address|birth)"
)
_NETWORK = re.compile(r"(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?![\w.])|\+1 \d{3}-555-01\d\d|02:00:00:00:")
_SESSION = re.compile(
    r"(?i)(?<![a-z])(?:log(?:ged|in|on|out|off)\w*|sign(?:ed|s|ing)?[ -](?:in|out|off)|sessions?|auth\w*|joined"
    r"|left|(?:dis)?connect\w*|online|offline|users?|accounts?|members?|attendees?|assigne\w+|review\w*|ticket|invited"
    r"|meeting|call(?:er|ed)?|chat|shift|seat|desk|badge|employee|contact|approv\w+|owner\w*|author\w*|granted|denied"
    r"|accepted|rejected|request(?:ed|er|or)|submitted|printed|checked|booked|borrow\w*|customer|guest|password|sudo"
    r"|uid|gid|tty|pts|ext|sip)(?![a-z])"
)
_CODE_LINE = re.compile(
    r"(?<!;);\s*$|\{\s*$|=>|->|==|!=|\+=|:=|\)\s*:\s*$|\w\(\)|[a-z]\([\w\"']+[,)=]|^\s*(?:def|class|import|from \S+ "
    r"import"
    r"|return|const|let|var|func|fn|public|private|static|if|while|export|raise|assert|elif|else|try|#include|package"
    r"|using|use)\b"
    r"|^\s*@\w+\(|\(\?[:=!<iP]|\\[bswd]\b|&&|\|\||^\s*(?:[\"']\w+[\"'],\s*){3}"
)
_COMMAND_LINE = re.compile(
    r"^\s*(?:[$#>%❯] )?(?:sudo )?(?:pip3?|npm|npx|yarn|pnpm|apt(?:-get)?|brew|cargo|go|docker|podman|kubectl|helm|git"
    r"|gem|composer|uv|poetry|conda|make|dnf|yum|apk|pacman|snap|terraform|ansible\S*|systemctl|service|python3?|node"
    r"|cd|ls|cat|grep|find|sed|awk|rm|cp|mv|mkdir|echo|export|Collecting|Downloading|Installing|Requirement"
    r"|Successfully|Get:\d+|Fetched|Unpacking|Preparing|Selecting|Setting up|Building|Compiling)\b(?!:)"
)
_LISTING = re.compile(r"\s*(?:\d+\s+){0,2}[-dlbcps][rwxsStT-]{9}")
_VERSION_AFTER = re.compile(
    r"[ \t]*(?:[=~<>!]=|@|/|-|:| \(?v?)\d+(?:\.\d+)+(?!\.\d+\.\d)|[ \t]+v?\d+\.\d+\.\d+(?![\d:]|\.\d)|[ \t]+\(\d+\.\d"
)
_CODE_AFTER = re.compile(r"\s+[-+*/|]?=\s|[/_(\\{]|::|\[|\.[a-z]{2,}\b|=(?!=)|-[a-z0-9]|->")
_CODE_BEFORE = re.compile(r"[_$\\.]\Z|\D/\Z|--?\Z|::\Z|import \Z|\w-\Z|<!?/?\Z(?<=</)")
_JOINTS = re.compile(r"  +|\t+|\s*\|\s*|;|,(?=\S)|,\s?\"")
_OPENED = re.compile(r"(?:^\s*|  |\t|[|;,]\s?|[,;|]\")\"?@?\Z")
_CLOSED = re.compile(r"\"?(?:\s*$|  |\t| ?[|;,]|\s+:\s)")
_DATA = re.compile(
    r"[-+*~]?[\d.,:/%x+-]*\d[\d.,:/%+-]*(?:[KMGTkmg]i?B?|ms|s|d|h|m|%|Z)?[:,)]?|[-+*?|]|\[?\d\S*"
    r"|[-dlbcps][rwxsStT-]{9}\S?"
    r"|(?:Person|user|host)\d+\S*|/\S*|pts/\d+|tty\w*|[A-Z]|Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec|Mon|Tue"
    r"|Wed|Thu"
    r"|Fri|Sat|Sun|root|staff|wheel|users|admin|[\"'(\[]?REDACTED-\S*|[A-Z]{2,}|Yes|No|yes|no|true|false"
    r"|\d+[A-Za-z]+\d*"
)
_CAPITALS_BEFORE = re.compile(r"(?:[A-Z][\w-]* ){1,2}\Z")
_CAPITALS_AFTER = re.compile(r"(?: [A-Z][\w-]*){1,2}")
_SENTENCE = re.compile(r"(?:\A|[.!?:]\s|^\s*(?:[-*>#]+|\d+[.)])\s)\s*[\"'(]*\Z")
_FOREIGN_WORDS = (
    "och att det som inte är på jag med hon från till nu också ett men vi kan ska också ikke jeg hun og også på for så "
    "että ja ei se hän oli kun niin myös joka ovat ale jest nie się na że po czy już od dla przez jak był być mam dziś "
    "una uno los las del que por con para está pero muy más como esta este ella hay yo al ese eso nos ya le les des "
    "est "
    "pas sur dans avec une qui pour mais aussi elle il nous vous ce cette du au aux et je tu ne sa ses leur ça j'ai y "
    "che "
    "non per sono della anche questo lei il di gli nel alla ho um uma não foi ele ela você isso do da dos das ao os "
    "em já "
    "ser são pra antes depois amanhã het een niet van maar ook zijn naar bij wij dit dat heeft wel jsem není jako až "
    "podle "
    "jsou ještě už bir ve için değil ile çok bu şu ama var yok ben sen daha gibi és nem hogy egy csak kell meg már az "
    "nu și este sunt din pentru care mai cu sau je su nije koji ili za samo bet ir yra kad tai arba un ka ar vai lai "
    "ma on ning kui aga tidak yang dan untuk dengan ini itu dari sudah belum ke saya kami của và là không cho được với "
    "này đã có người das der die und ist nicht ich mit von auf für wir sie auch noch bitte hat wird dem den ein eine "
    "einen "
    "beim zum zur vom heute morgen bei nach kein schon"
)
_FOREIGN = frozenset(_FOREIGN_WORDS.split()) - frozenset(
    ["on", "for", "so", "die", "van", "ha", "se", "den", "an", "as", "it", "no"]
)
_NOUNS_ARE_CAPITALS = re.compile(
    r"(?i)\b(?:der|die|das|und|ist|nicht|ich|mit|von|auf|für|wir|ein|eine|bitte|beim|zum|zur)\b"
)


@dataclass(frozen=True, slots=True)
class Line:
    """A line and what it speaks of, found out once for all its words."""

    text: str
    person: bool
    placed: bool
    session: bool
    code: bool
    command: bool
    listing: bool
    joints: int
    foreign: bool

    @classmethod
    def of(cls, text: str) -> Line:
        """Read a line."""
        words = re.findall(r"(?<![\w./-])[^\W\d_]+(?![\w/(])", text)
        foreign = sum(word.lower() in _FOREIGN for word in words)
        english = sum(word.islower() and len(word) > 2 and is_ordinary(word) for word in words)
        return cls(
            text,
            _SOMEBODY.search(text) is not None,
            (_CLOCK.search(text) or _NETWORK.search(text)) is not None,
            _SESSION.search(text) is not None,
            _CODE_LINE.search(text) is not None,
            _COMMAND_LINE.match(text) is not None,
            _LISTING.match(text) is not None,
            len(_JOINTS.findall(text.strip())),
            foreign >= 2 and foreign + 1 >= english,
        )


_KNOWN = re.compile(
    r"(?<![\w-])(?:(?P<name>Person)|(?P<user>user)|(?P<host>host)|person)\d+(?:@example\.com)?(?![\w-])"
)
_NEAR = 2  # how many lines up and down are compared


class NeighbourLines:
    """The lines of a text, to compare what stands at the same place of neighbouring lines."""

    def __init__(self, lines: Sequence[str]) -> None:
        self._lines = lines
        self._people: dict[int, dict[tuple[str, str], str]] = {}
        self._announced: list[bool] | None = None

    def evidence(self, at: int, start: int, end: int, kind: str) -> Iterator[str]:
        """Yield what neighbouring lines say about the word at a place of one."""
        line = self._lines[at]
        if (
            kind != "host"
            and not _CODE_LINE.search(line)
            and (kind == "name" or _fills_a_place(line, start, end))
            and self._is_announced(at)
        ):
            yield "announced above"
        here = _position(line, start, end)
        near = [row for row in range(at - _NEAR, at + _NEAR + 1) if row != at and 0 <= row < len(self._lines)]
        if not line[:start].rstrip().endswith("=") and any(
            (self._known(row).get(here) == "host") == (kind == "host") for row in near if here in self._known(row)
        ):
            yield "in line with a person"

    def _is_announced(self, row: int) -> bool:
        if self._announced is None:
            self._announced = list(_announced(self._lines))
        return self._announced[row]

    def _known(self, row: int) -> dict[tuple[str, str], str]:
        if row not in self._people:
            line = self._lines[row] if len(self._lines[row]) <= _ROW_LIMIT else ""
            found = {_position(line, *match.span()): match.lastgroup or "user" for match in _KNOWN.finditer(line)}
            self._people[row] = found
        return self._people[row]


def _fills_a_place(line: str, start: int, end: int) -> bool:
    before, after = line[:start], line[end:]
    if _OPENED.search(before):
        return _CLOSED.match(after) is not None or (not before.strip() and len(after.split()) <= 3 and after[:1] == " ")
    return _ID_BEFORE.search(before) is not None


_ROW_LIMIT = 240
_GAP = re.compile(r"\s+")
_FIELD = re.compile(r"[\w.@:-]*\w|\"[^\"]*\"")


def _position(line: str, start: int, end: int) -> tuple[str, str]:
    """Return the place of a word in its line: the marks before it, with every other word alike, and what follows."""
    before = _FIELD.sub("w", _GAP.sub(" ", line[max(0, start - 80) : start]))
    return before, line[end : end + 1].strip()


_PEOPLE_ABOVE = frozenset(
    [
        "standup",
        "stand-up",
        "rota",
        "roster",
        "oncall",
        "on-call",
        "shift",
        "shifts",
        "crew",
        "staff",
        "people",
        "names",
        "who",
        "team",
        "attending",
        "absent",
        "home",
        "users",
        "roles",
        "role",
        "accounts",
        "passwd",
        "group",
        "logins",
        "whoami",
        "owners",
    ]
)
_HEADING_WORD = re.compile(r"[A-ZÀ-Þ]?[a-zà-ÿ]+|[A-ZÀ-Þ]+|[\u0370-\u1fff]+")
_ASKED = re.compile(r"[$#>%❯] \S")


@cache
def _is_for_people(word: str) -> bool:
    return word in _PEOPLE_ABOVE or field_kind(word.rstrip("s")) in ("account", "owner", "people")


def _announced(lines: Sequence[str]) -> Iterator[bool]:
    """Tell of each line whether the heading of its paragraph speaks of people."""
    announced = filled = False
    for line in lines:
        bare = line.strip()
        if bare:
            filled = filled or (announced and any(map(str.isalpha, bare)))
        elif filled:
            announced = filled = False
        yield announced
        if bare and not announced and len(bare) <= 80 and not _CODE_LINE.search(line):
            words = [word.lower() for word in _HEADING_WORD.findall(bare)]
            if len(words) <= 4 or bare.endswith(":") or _ASKED.match(bare):
                announced = any(map(_is_for_people, words)) or (_ASKED.match(bare) is not None and "%u" in bare.lower())


class Place:
    """A word in its line."""

    def __init__(self, line: Line, start: int, end: int, kind: str) -> None:
        self.line, self.kind = line, kind
        self.token = line.text[start:end]
        self.before = line.text[max(0, start - 60) : start]
        self.after = line.text[end : end + 80]
        self.domain = kind == "user" and _DOMAIN_BEFORE.search(self.before) is not None


def may_stand_under(kind: str, label: str) -> bool:
    """Tell whether a field of this kind may hold a word of that kind."""
    if kind == "host" or label == "host":
        return kind == label
    return label in ("account", "owner", "people", "person", "first")


def evidence(place: Place) -> Iterator[str]:
    """Yield the names of what speaks for and against a word, as the table of weights knows them."""
    line = place.line
    if line.person:
        yield "a person on the line"
    if line.placed:
        yield "a time or an address on the line"
    if line.session:
        yield "words of sessions on the line"
    yield from _against(place)
    yield from _words_before(place)
    if place.before[-1:] + place.after[:1] in _FRAMES:
        yield "framed"
    if _is_between_data(place):
        yield "between data"
    elif _is_cell(place):
        yield "cell"
    if not place.before.strip("|│ \t*-") and (
        not place.after.strip("|│ \t") or re.match(r"\s*(?:[|│:]|\s\s)", place.after)
    ):
        yield "opens a row"
    yield from _of_machines(place) if place.kind == "host" else _of_people(place)


def _against(place: Place) -> Iterator[str]:
    line, before, after = place.line, place.before, place.after
    if place.kind == "host":
        if re.match(r"[_(=]|\.(?:py|js|ts|md|txt|json|ya?ml|log|sh|go|rs)\b|::", after) or re.search(r"[_$]\Z", before):
            yield "code around it"
    else:
        framed = re.search(r"(?:TODO|FIXME|XXX|HACK|\d)\(\Z", before) and after.startswith(")")
        if (
            not framed
            and (_CODE_AFTER.match(after) or _CODE_BEFORE.search(before))
            and not (place.domain or _NAMESPACE.search(before))
        ):
            yield "code around it"
        quoted = place.kind == "name" and before[-1:] in ("'", '"') and after[:1] == before[-1:]
        if line.code and not framed and not quoted:
            yield "a line of code"
        if line.command:
            yield "a command"
    if place.kind == "user" and place.token.isalpha() and (line.foreign or not line.text.isascii()):
        yield "a word among foreign words"
    if _VERSION_AFTER.match(after):
        yield "a version after it"
    if before.endswith("`"):
        yield "quoted as code"
    if place.kind == "name" and (not is_person_name(_run(place)) or after.startswith(" and contributors")):
        yield "a company's name"
    acts = _VERB.match(after) or _ACTS.match(after)
    if place.token[0].isupper() and not place.token.isupper() and not acts and _SENTENCE.search(before):
        yield "begins a sentence"


def _run(place: Place) -> str:
    """Return the capitalised words around a word, together with it."""
    before, after = _CAPITALS_BEFORE.search(place.before), _CAPITALS_AFTER.match(place.after)
    return f"{before[0] if before else ''}{place.token}{after[0] if after else ''}"


def _words_before(place: Place) -> Iterator[str]:
    label = _LABEL.search(place.before)
    if label is None:
        return
    words = label["words"].lower().replace("_", " ").split()
    last, joined = words[-1], " ".join(words[-2:])
    marked = bool(label["sep"].strip(" ."))
    kinds = [field_kind(last), field_kind(joined)]
    if marked and last in ("first", "last") and _HALVES.search(place.line.text):
        kinds.append("first")
    if marked and len(words) > 1 and last not in _NOT_PEOPLE:
        kinds.append(field_kind(words[-2]))
    if last not in _NOT_PEOPLE and any(may_stand_under(place.kind, kind) for kind in kinds):
        yield "labelled" if marked or last == "hostname" else "told"
    elif place.kind == "host":
        if last in _HOST_WORDS:
            yield "labelled" if marked and ":" in label["sep"] else "weak word before"
    elif last in _STRONG:
        yield "strong word before"
    elif last in _WEAK and not marked:
        yield "weak word before"


def _of_people(place: Place) -> Iterator[str]:
    line, before, after, kind = place.line, place.before, place.after, place.kind
    if _VERB.match(after):
        yield "verb after"
    elif _WEAK_VERB.match(after) or (kind == "name" and _ACTS.match(after)):
        yield "weak verb after"
    if before.endswith("@") and (before.strip("@ \t") or after.strip()):
        yield "mentioned"
    if kind == "user":
        if _NAMESPACE.search(before) and after[:1] == "/" and _PUBLISHED.search(line.text):
            yield "a namespace"
        if _REALM.match(after):
            yield "at a realm"
    if _ADDRESS_AFTER.match(after):
        yield "beside a name"
    if place.domain:
        yield "a domain before it"
    if _ID_BEFORE.search(before):
        yield "an id before it"
    if _speaks(place):
        yield "speaks"
    elif kind == "name" and not after.strip() and _SIGNED.search(before):
        yield "signs"
    if kind != "name":
        return
    if re.search(r"Person\d+[ ,]{1,2}\Z", before) or re.match(r",? Person\d", after):
        yield "beside a name"
    if _POSSESSIVE.match(after):
        yield "possessive"
        if _OWNED.match(after):
            yield "owns a thing"
    other = _TURNED_BEFORE.search(before) or _TURNED_AFTER.match(after)
    if other and is_strange(other["other"]):
        yield "surname and given name"
    if _CALLED.search(before) and _CALLED_AFTER.match(after):
        yield "called by name"
    if line.foreign and not _SENTENCE.search(before) and not _NOUNS_ARE_CAPITALS.search(line.text):
        yield "a capital inside a foreign sentence"


def _speaks(place: Place) -> bool:
    """Tell a word at the place of a speaker: after the time, or at the beginning of a line that somebody says."""
    line, before, after = place.line, place.before, place.after
    if _TIME_BEFORE.search(before):
        return _SAYS.match(after) is not None or not after.strip(" \t,)]>*")
    if before.strip(" \t[<(*@•>|-") or not _SAYS.match(after):
        return False
    if line.placed:
        return place.kind == "name" or after[0] != " "
    return place.kind == "name" and _TALK.match(after) is not None


def _of_machines(place: Place) -> Iterator[str]:
    before, after = place.before, place.after
    if before.endswith("@"):
        yield "an account before it"
    if (
        _ZONE.match(after)
        or (re.search(r"(?://|\\\\)\Z", before) and re.match(r"[:/\\\s\"']|\Z", after))
        or (_PORT.match(after) and (place.line.placed or not before.strip()))
    ):
        yield "a port, a share or a zone"
    if re.search(r"\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)? \Z", before) and _PROGRAM.match(after):
        yield "before a program's message"


def _is_cell(place: Place) -> bool:
    """Tell a word that fills a cell of a row with times, addresses or people."""
    line = place.line
    if line.joints < 2 or not (line.placed or line.person or place.kind == "host"):
        return False
    return _OPENED.search(place.before) is not None and _CLOSED.match(place.after) is not None


def _is_between_data(place: Place) -> bool:
    """Tell a word of a record: numbers, times, addresses or signs stand to both of its sides."""
    left, right = place.before.split(), place.after.split()
    if place.before and not place.before[-1].isspace() and place.before[-1] not in "\"'([":
        return False
    if not right or (place.after[:1] not in (" ", "\t", '"', "'", ")", "]", ",")):
        return False
    if not left and not (place.line.placed or place.line.person):
        return False
    before = not left or _DATA.fullmatch(left[-1]) is not None
    follows = right[1] if len(right) > 1 and right[0] in "\"')]," else right[0]
    numbers = sum(any(map(str.isdigit, field)) for field in place.line.text.split())
    return before and _DATA.fullmatch(follows) is not None and numbers >= 2
