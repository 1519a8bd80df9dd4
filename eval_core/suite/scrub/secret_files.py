"""Secrets in files: key blocks, credential files, XML and database settings, tables and SQL."""

from __future__ import annotations

import re
from collections.abc import Iterator

from eval_core.suite.scrub.hits import Hit, is_mark, secret_hit, value_hit
from eval_core.suite.scrub.secret_values import SECRET_WORD, is_mixed, is_secret_value, key_strength

__all__ = ["columns", "files", "inserted", "inserted_secrets", "key_blocks"]

_BLOCK = re.compile(
    r"-----BEGIN (?P<label>(?:[A-Za-z0-9]+ )*(?:PRIVATE|SECRET|Static|ENCRYPTED) (?:KEY|key)(?: BLOCK"
    r"| V\d)?)-----(?P<body>.*?)(?P<end>-----END (?P=label)-----"
    r"|\Z|(?=-----BEGIN )|\n[ \t]*\n(?![A-Za-z0-9+/=]{20}|[\w-]+:)|(?=[^A-Za-z0-9+/=\s\\:,.\-]))",
    re.DOTALL,
)
_BLOCK_TAIL = re.compile(
    r"(?:[A-Za-z0-9+/=]{16,}(?:\\n|\s)+)*[A-Za-z0-9+/=]{2,}(?:\\n"
    r"|\s)*-----END (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----"
)
_PUTTY = re.compile(r"Private-Lines: \d+\s+(?P<value>(?:[A-Za-z0-9+/=]{4,}\s+)+)(?:Private-MAC: (?P<mac>[0-9a-f]+))?")
_NETRC = re.compile(r"\b(?:machine[ \t]+\S+|default)\s+login\s+\S+\s+password\s+(?P<value>\S+)")
_PGPASS = re.compile(r"(?m)^[\w.*-]+:(?:\d{2,5}|\*):[\w*-]+:[\w*-]+:(?P<value>[^\s:]{4,})$")
_ELEMENT = re.compile(r"<(?P<name>[\w.:-]{2,60})(?: [^<>]*)?>(?P<value>[^<>\s]{3,400})</(?P=name)>")
_SETTING = re.compile(
    r"(?i)\b(?:key|name|id|property)=(?P<q>[\"'])(?P<name>[\w.:-]{2,60})(?P=q)\s+value=(?P<r>[\"'])(?P<value>[^\"'\n"
    r"]{3,400})(?P=r)"
)
_VAULT_BLOCK = re.compile(r"\$ANSIBLE_VAULT;[\d.]+;\w+(?:;\w+)?\s+(?P<value>[0-9a-f]{20,}(?:\s+[0-9a-f]{20,})*)")
_TYPEFACES = ("code", "kbd", "samp", "var")  # HTML, where a tag named for code says nothing of its text
# Hashes of passwords, as systems and frameworks store them.
_HASHED = re.compile(
    r"(?<![\w$])(?P<value>\$[a-z0-9][a-z0-9-]{0,15}\$[\w./+$,=-]{20,}|\$1\$[\w./$]{16,}"
    r"|\{S?SHA\d*\}[A-Za-z0-9+/=]{20,}|SCRAM-SHA-\d+\$\d+:[\w+/=]{8,}\$[\w+/=]{20,}(?::[\w+/=]{20,})?"
    r"|\*[0-9A-Z]{40}(?!\w)|(?<=:\d{3}:)[0-9a-f]{32}:[0-9a-f]{32}(?=:::)|(?<=:\d{4}:)[0-9a-f]{32}:[0-9a-f]{32}(?=:::)"
    r"|pbkdf2[_:]sha\d+[$:]\d+[$:][\w+/=$:]{20,}|(?:scrypt|argon2)\$[\w+/=$,]{20,})"
)
# A block or an element whose name says secret, and the value one level below it.
_BELOW = re.compile(
    r"<(?P<tag>[\w.:-]{2,60})(?: [^<>]*)?>\s*<[Vv]alue(?: [^<>]*)?>(?P<value>[^<>\s]{3,200})</"
    r"|(?:variable|output|parameter|secret|setting)\s+\"(?P<block>[\w.-]{2,60})\"\s*\{[^{}]{0,200}?\b(?:default"
    r"|value)\s*=\s*\"(?P<value2>[^\"\n]{3,200})\""
)
# A quoted name and, after a comma, its quoted value; a call that logs in with a name and a password.
_LISTED = re.compile(r"[\"'](?P<name>[\w.-]{3,60})[\"']\s*,\s*[\"'](?P<value>[^\"'\n]{4,200})[\"']")
_LOGIN_CALL = re.compile(
    r"(?i)\b(?:auth|basicauth|httpbasicauth|login|log_in|signin|sign_in|authenticate|credentials?"
    r"|passwordauthentication|networkcredential|usernamepassword\w*)"
    r"\s*[=(:]\s*[\[(]?\s*[\"'][^\"'\n]{1,60}[\"']\s*,\s*[\"'](?P<value>[^\"'\n]{4,100})[\"']"
)
_STATEMENT = re.compile(
    r"(?i)\b(?:identified (?:with \w+ )?by|(?:with |encrypted |set )?"
    r"password(?: for [^=;\n]{1,60}=)?)(?:\s+to)?\s*(?:=\s*)?(?:password)?\s*\(?\s*N?['\"](?P<a>[^'\"\n]{4,100})['\"]"
    r"|(?m:^(?:[\w.:]+> ?)?(?-i:AUTH)(?: \w+)? (?P<b>\S{4,100})$)|\brequirepass[ \t]+[\"']?(?P<c>[^\s\"']{4,100})"
    r"|\bWIFI:(?:[STH]:[^;]*;)*P:(?P<d>[^;\n]{4,63});|\bwpa_passphrase[ \t]+\S+[ \t]+(?P<e>\S{8,63})"
    r"|\b(?i:password|passwd)\((?P<h>[A-Za-z0-9#@$!]{6,64})\)(?!\s*[{:])"
    r"|[ \t]/p(?:ass(?:word)?)?:(?P<f>[^\s\"']{4,100})|\bsend(?: --)?"
    r"[ \t]+[\"'](?P<g>[^\"'\n]{4,100}?)(?:\\+[rn])+[\"']"
)
_PHRASE = re.compile(
    r"(?i)\b(?:seed|recovery|mnemonic|backup|secret)[ _-]?(?:phrase|words"
    r"|mnemonic)?[\"' ]*[:=]+[\"' ]*(?P<value>[a-z]{3,8}(?:[ ,]+[a-z]{3,8}){11,23})\b"
)


def key_blocks(text: str, _key: str | None) -> Iterator[Hit]:
    """Find private keys, whole or cut off at either end."""
    if "-----BEGIN" in text or "PRIVATE KEY-----" in text or "KEY BLOCK-----" in text:
        for match in _BLOCK.finditer(text):
            if not is_mark(match.group("body").strip()):
                end = match.end() if not match.group("end").isspace() else match.start("end")
                body = text[match.start() : end].rstrip()
                yield secret_hit(match.start(), match.start() + len(body), "private-key", text)
        for match in _BLOCK_TAIL.finditer(text):
            yield secret_hit(match.start(), match.end(), "private-key", text)
    if "Private-Lines" in text:
        for match in _PUTTY.finditer(text):
            start, end = match.span("value")
            yield secret_hit(start, start + len(text[start:end].rstrip()), "private-key", text)
            if match.group("mac"):
                yield value_hit(match, "mac", "private-key", text)


# A password with its scheme before it, as directories and mail servers keep them.
_SCHEME = re.compile(
    r"\{(?:PLAIN|CLEARTEXT|CLEAR|CRYPT|S?MD5|SSHA\d*|SHA\d*|SHA\d+-CRYPT|BLF-CRYPT|ARGON2\w*|PBKDF2\w*|DIGEST-MD5)\}"
    r"(?P<value>[^\s:\"']{4,200})"
)


def files(text: str, _key: str | None) -> Iterator[Hit]:
    """Find passwords in the files that programs keep them in."""
    for pattern in (_NETRC, _PGPASS):
        for match in pattern.finditer(text):
            if is_secret_value(match.group("value"), "strong", "password", exact=True):
                yield value_hit(match, "value", "assignment", text)
    for pattern in (_ELEMENT, _SETTING) if "<" in text else ():
        for match in pattern.finditer(text):
            if match["name"].lower() in _TYPEFACES:
                continue
            if is_secret_value(match.group("value"), key_strength(match["name"]), match["name"], exact=True):
                yield value_hit(match, "value", "assignment", text)
    for match in _BELOW.finditer(text):
        name = match.group("tag") or match.group("block")
        group = "value" if match.group("tag") else "value2"
        if is_secret_value(match.group(group), key_strength(name), name, exact=True):
            yield value_hit(match, group, "assignment", text)
    for match in _LISTED.finditer(text):
        if (
            key_strength(match["name"]) == "strong"
            and is_mixed(match["value"])
            and is_secret_value(match["value"], "strong", match["name"], exact=True)
        ):
            yield value_hit(match, "value", "assignment", text)
    for match in _LOGIN_CALL.finditer(text):
        if is_secret_value(match["value"], "strong", "password", exact=True):
            yield value_hit(match, "value", "assignment", text)
    for match in _STATEMENT.finditer(text):
        group = str(match.lastgroup)
        sent = (
            group == "g"
            and not SECRET_WORD.search(text, max(0, match.start() - 200), match.start())
            and ("assword" not in text[max(0, match.start() - 200) : match.start()])
        )
        if not sent and is_secret_value(match.group(group), "strong", "password", exact=True):
            yield value_hit(match, group, "assignment", text)
    for pattern in (_VAULT_BLOCK, _PHRASE, _HASHED, _SCHEME):
        for match in pattern.finditer(text):
            yield value_hit(match, "value", "assignment", text)


# Tables: a header that names a column of secrets.
_SECRET_HEADER = re.compile(r"(?i)pass|pwd|secret|token|key|kennwort|contrase|senha|credential")


def columns(text: str, _key: str | None) -> Iterator[Hit]:
    """Find the cells of a column whose header names a secret, in Markdown, CSV and aligned tables."""
    if _SECRET_HEADER.search(text) is None:
        return
    offset, wanted, joint, width = 0, list[int](), "", 0
    for line in text.split("\n"):
        here, offset = offset, offset + len(line) + 1
        cells = _cells(line, joint) if wanted else []
        if wanted and re.fullmatch(r"[-+=:| \t]{3,}", line):
            continue
        if wanted and line.strip() and len(cells) == width:
            for number in wanted:
                start, value = cells[number]
                if is_secret_value(value, "strong", "password", exact=True) and is_mixed(value):
                    yield secret_hit(here + start, here + start + len(value), "assignment", text)
            continue
        wanted = []
        if len(line) < 400 and _SECRET_HEADER.search(line):
            joint, wanted, width = _header(line)


def _cells(line: str, joint: str) -> list[tuple[int, str]]:
    pattern = r"\S+(?: \S+)*" if joint == "  " else rf"[^{re.escape(joint)}]+"
    found = []
    for cell in re.finditer(pattern, line):
        bare = cell.group().strip(" \"'`")
        if bare:
            found.append((cell.start() + cell.group().index(bare), bare))
    return found


def _header(line: str) -> tuple[str, list[int], int]:
    for joint in ("|", "\t", ";", ",", "  "):
        cells = _cells(line, joint)
        if joint not in line or len(cells) < 2:
            continue
        if not all(re.fullmatch(r"[A-Za-z_][\w /()#.-]{0,30}", value) for _, value in cells):
            continue
        wanted = [
            number for number, (_, value) in enumerate(cells) if key_strength(value.replace(" ", "_")) == "strong"
        ]
        if wanted:
            return joint, wanted, len(cells)
    return "", [], 0


# SQL that names its columns before their values.
_INSERT = re.compile(
    r"(?i)\binsert\s+into\s+[\w.\"`\[\]]+\s*\((?P<names>[^()]{2,400})\)\s*values\s*(?P<rows>"
    r"(?:\([^()]*\)\s*,?\s*){1,50})"
)
_FIELD = re.compile(r"\s*(?:E?'(?P<text>(?:[^']|'')*)'|[^,']+)\s*(?:,|$)")


def inserted(text: str) -> Iterator[tuple[str, int, str]]:
    """Yield every text that an INSERT stores: its column, where it begins, and the text."""
    for match in _INSERT.finditer(text):
        names = [name.strip(' "`[]\n\t') for name in match["names"].split(",")]
        for row in re.finditer(r"\(([^()]*)\)", match["rows"]):
            start = match.start("rows") + row.start(1)
            for name, value in zip(names, _FIELD.finditer(row[1]), strict=False):
                if value["text"]:
                    yield name, start + value.start("text"), value["text"]


def inserted_secrets(text: str, _key: str | None) -> Iterator[Hit]:
    """Find the secrets among what an INSERT stores."""
    for name, start, value in inserted(text):
        if is_secret_value(value, key_strength(name), name, exact=True):
            yield secret_hit(start, start + len(value), "assignment", text)
