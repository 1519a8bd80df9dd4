"""Secrets in sentences: values on a line that names a secret, in about 40 languages; codes; sign-in links."""

from __future__ import annotations

import re
from collections.abc import Iterator

from eval_core.suite.scrub.hits import Hit, secret_hit, value_hit
from eval_core.suite.scrub.ordinary_words import is_foreign_word, is_ordinary
from eval_core.suite.scrub.secret_values import (
    FOREIGN_SECRETS,
    HEXED,
    SECRET_WORD,
    is_drawn,
    is_mixed,
    is_no_name,
    is_ordinary_code,
    is_password,
    is_secret_value,
    key_strength,
    looks_random,
    password_shape,
    unwordly,
)

__all__ = ["after_hints", "announced", "codes_and_links", "on_the_line", "prose"]

_ODD_CASE = re.compile(r"(?=.*[._@-])(?=.*[a-z][A-Z])(?=.*[A-Z]{2}).+|.*[a-z][A-Z][a-z]?[A-Z].*")
_PROSE = re.compile(
    r"(?i)(?:\b(?P<name>password|passwort|passphrase|passwd|pass|pwd|pin|token|secret|api[ -]?key|access key"
    r"|secret key|key|credentials?|mot de passe|contraseña|clave|senha|hasło|hasła|wachtwoord|lösenord(?:et)?"
    r"|passord(?:et)?|adgangskode"
    r"|kodeord|salasana|heslo|jelszó|şifre|parola|pw|пароль)\b(?!@)|(?P<cjk>密码|密碼|口令|パスワード|비밀번호))"
    r"[^\n.:=\"'`]{0,30}?(?:[ \t]+(?:is|was|ist|lautet|are|est|es|é|är|er|on|to|of|now|это)[ \t]+"
    r"|[ \t]*[：:=是は][ \t]*"
    r"|[ \t]+)(?P<quote>[\"'`«“]?)(?P<value>[^\s\"'`»”,;]{4,100})"
)
# The secret may come first ("use ... as the password"), or beside a login ("log in with app / ...").
_TURNED = re.compile(
    r"(?i)(?:\b(?:use|try|take|enter|type|set)[ \t]+[\"'`]?(?P<a>[^\s\"'`,;]{6,60})[\"'`]?[ \t]+(?:as|for)"
    r"[ \t]+(?:the[ \t]+|your[ \t]+|my[ \t]+)?(?:\w+[ \t]+){0,2}(?:password|passphrase|pin|pass|token|secret)\b"
    r"|\b(?:log(?:ging)?[ -]?(?:in|on)|sign(?:ing)?[ -]?in|login|credentials?|creds|wi-?fi|wlan|vpn|guest"
    r"|account|access|user|hasło|passwor[dt]|mot de passe|contraseña|senha|пароль)\b[^\n.:]{0,24}?[: \t]+"
    r"[\w.@+-]{2,40}[ \t]?(?:/|:|,|and|with)[ \t]?[\"'`]?(?P<b>[^\s\"'`,;/]{6,60}))"
)
# After "token" or "key" a version, a name with a number or a path is more likely than a secret.
_ORDINARY_WORD = re.compile(
    r"[a-z]+(?:\+[a-z0-9]+)+|[a-z]{2,}\d*(?:-(?:[a-z]+|v?\d{1,4}))+|(?:[a-z]{2,}-)+[0-9a-f]{8,64}"
    r"|v?\d[\d.,:/-]*\w{0,3}|[A-Za-z]+[-_.]?\d{1,3}|[\w./-]+/[\w./-]+|#\d+"
)
_CHECKSUM = re.compile(r"[0-9a-f]{32}|[0-9a-f]{40}|[0-9a-f]{64}")
_SAID = (
    "password",
    "passwort",
    "passphrase",
    "pin",
    "mot de passe",
    "contraseña",
    "senha",
    "пароль",
    "密码",
    "パスワード",
)


def prose(text: str, _key: str | None) -> Iterator[Hit]:
    """Find "the password is ..." in sentences."""
    for match in _TURNED.finditer(text):
        group = str(match.lastgroup)
        value = match.group(group).rstrip(".:!?)")
        drawn = any(map(str.isdigit, value)) and re.search(r"[^\w/.:-]|[A-Z].*\d|\d[A-Z].*-|_\w*\d|-\w*\d", value)
        if drawn and is_secret_value(value, "strong", "password", exact=True):
            yield secret_hit(match.start(group), match.start(group) + len(value), "prose", text)
    for match in _QUOTED_PHRASE.finditer(text):
        if _is_phrase(match["value"]):
            yield value_hit(match, "value", "prose", text)
    for match in _PROSE.finditer(text):
        start = match.start("value")
        name = (match.group("name") or "password").lower()
        value = match.group("value").rstrip(".:!?)")
        if re.search(r"\\(?:f[A-Z0-9]|[*(-])|[=<>]=|^SHA\d+:", value) or value[0] == "(":
            continue  # markup, a version that is pinned, a remark
        odd = re.search(r"\d|\w[!#%$^&*+]\w", value) or (_ODD_CASE.fullmatch(value) and unwordly(value, told=True))
        pin = name == "pin" and value.isdigit() and 4 <= len(value) <= 8
        grouped = name not in ("key", "token") and re.fullmatch(r"[a-z]{4}(?:-[a-z]{4}){3}", value)
        if not pin and not grouped and (len(value) < 4 or not odd or not re.search(r"[^\W\d]", value)):
            continue
        told = re.search(
            r"[：:=是は]|\b(?:is|was|ist|lautet|are|est|es|é|är|er|on|to|now)\s*[\"'`«“]?\Z",
            text[match.start() : start],
        )
        kinds = len({("d" if c.isdigit() else "a" if c.isalpha() else "s") for c in value})
        if not told and not (kinds == 3 and len(value) >= 8):
            continue
        before = re.search(r"[\w-]+(?=[ _-]?\Z)", text[max(0, match.start() - 24) : match.start()])
        if name in ("key", "token") and before and key_strength(f"{before[0].rstrip('-_')}_{name}") == "none":
            continue  # an idempotency key, a partition key
        if name == "secret" and before and before[0] in ("get", "describe", "delete", "create", "edit"):
            continue  # the name of a secret
        ordinary = name not in _SAID and (_ORDINARY_WORD.fullmatch(value) or _CHECKSUM.fullmatch(value))
        if pin or (not ordinary and is_secret_value(value, "strong", "password", exact=True)):
            yield secret_hit(start, start + len(value), "prose", text)


_QUOTED = re.compile(r"(?P<quote>[\"'`])(?P<value>[^\s\"'`]{6,128})(?P=quote)|[«“„](?P<curly>[^\s«»“”„]{6,128})[»”“]")
_BARE = re.compile(
    r"(?<![^\s(:=,：，、是は])(?:[\w.$-]+=)?(?P<value>[!-&*-~]{6,128}?)(?=[\s)'\"`,;]|[.:](?:\s|$)|$|[^\x00-\x7f])"
)
# What says that the secret follows: a colon, or a form of "to be", in the languages above.
_TOLD = re.compile(
    r"(?:(?:^|[\s(])(?:is|was|now|to|are|be|been|ist|lautet|war|est|était|es|era|è|é|és|är|er|on|je|jest|este|e"
    r"|là|adalah|ialah"
    r"|это|є|είναι|هي|هو|है|คือ|van|with|mit|avec|con|com|as|pass\w*|pwd?|word|using|-{1,2}[a-z][\w-]*)|[:=：/→]"
    r"|是|は|为|為|는|은)[ \t]*[\"'`«“„]?\Z",
    re.IGNORECASE,
)
_SHAPE = re.compile(r"[A-Za-z0-9!#%$^&*+@~?_.-]{8,64}")
_NAMES_IT = re.compile(r"[\w\]-]*[\s\"'`:=(]{1,12}")


# Words that a secret often follows, and other things as often: only what is drawn, or a word with a sign and a number.
_HINT = re.compile(
    r"(?i)\b(?:keys?|communit(?:y|ies)|token|licen[cs]e|seed|unlock|activation|auth|authenticat\w+|sasl|cookie"
    r"|admin|root"
    r"|router|switch|vnc|rdp|vpn|snmp\w*|bios|ilo|idrac|bmc|ipmi|safe|vault|default|initial|temporary|temp)\b"
    r"(?P<rest>[^\n]{6,100})"
)
_SURE = re.compile(r"[A-Za-z]{3,}[!$%?*&]{1,2}\d{2,6}[!#$?*]?|[A-Za-z@$013]{3,}\d{2,6}[!#$?*]{1,2}")


def after_hints(text: str, _key: str | None) -> Iterator[Hit]:
    """Find draws, and words with a sign and a number, that follow a word which only hints at a secret."""
    for hint in _HINT.finditer(text):
        for match in _BARE.finditer(text, *hint.span("rest")):
            value = match["value"].strip("\"'`").rstrip(".,")
            hexed = HEXED.fullmatch(value) is not None and re.match(
                r"(?i)token[ :=]+\Z", text[hint.start() : match.start("value")]
            )
            if is_drawn(value) or hexed or (_SURE.fullmatch(value) and unwordly(value, told=True)):
                at = match.start("value") + match["value"].index(value)
                yield secret_hit(at, at + len(value), "prose", text)


def on_the_line(text: str, _key: str | None) -> Iterator[Hit]:
    """Find what is shaped like a secret on a line that names one: in quotes, or between spaces."""
    done = 0
    for word in SECRET_WORD.finditer(text):
        start, end = text.rfind("\n", 0, word.start()) + 1, text.find("\n", word.end())
        end = len(text) if end < 0 else end
        if end - start > 300:
            start, end = max(start, word.start() - 120), min(end, word.end() + 120)
        if end <= done:
            continue
        start, done = max(start, done), end
        for match in _QUOTED.finditer(text, start, end):
            group = "value" if match["value"] else "curly"
            if unwordly(match[group], told=True):
                yield value_hit(match, group, "prose", text)
        for match in _BARE.finditer(text, start, end):
            value = match["value"].strip("\"'`").rstrip(".,")
            at = match.start("value") + match["value"].index(value)
            told = text[at - 1 : at] == "=" or (
                match.start() > word.start()
                and (
                    _TOLD.search(text, max(start, at - 24), at) is not None
                    or _NAMES_IT.fullmatch(text, word.end(), at) is not None
                )
            )
            shaped = _SHAPE.fullmatch(value) is not None and password_shape(value)
            drawn = shaped or (told and HEXED.fullmatch(value) is not None)
            if unwordly(value, told=told) or (drawn and is_secret_value(value, "strong", "password", exact=True)):
                yield secret_hit(at, at + len(value), "prose", text)


# A phrase of plain words in quotes, right after the word for it.
_QUOTED_PHRASE = re.compile(
    rf"(?i:passphrase|password|pass phrase|{FOREIGN_SECRETS})\w*(?: (?:is|was|ist|est|es|è|é|är|er|on"
    rf"|jest))?[ :=]{{1,3}}[\"“„«'`]"
    r"(?P<value>[^\W\dA-Z_]{2,12}(?:[ -](?:[^\W\dA-Z_]{2,12}|\d{1,4})){3,11})[\"”“»'`]"
)
_SENTENCES_TEXT = (
    "the and are was must have has not your you with for from this that may can will should than least most any "
    "all der die das und nicht mit für los las que con para por les des pas pour une non per una och att inte med "
    "jest nie bir ile için invalid incorrect required failed wrong empty missing short long match enter reset "
    "change"
)
_SENTENCES = frozenset(_SENTENCES_TEXT.split())


def _is_phrase(value: str) -> bool:
    """Tell words that were drawn from a sentence about passwords."""
    return not any(word in _SENTENCES for word in re.split(r"[ -]", value))


# What mail providers hand out for programs: four groups of four letters that are no words.
_APP_PASSWORD = re.compile(r"(?<![\w-])[a-z]{4}(?: [a-z]{4}){3}(?![\w-]| [a-z])")
_FOREIGN_CODE = re.compile(
    r"(?i)(?:vahvistuskood|bekräftelsekod|bekreftelseskod|bestätigungscode|code de (?:vérification|confirmation)"
    r"|código de (?:verificación|confirmación|verificação)|codice di (?:verifica|conferma)|kod weryfikacyjny"
    r"|ověřovací kód|doğrulama kodu|verificatiecode|код подтверждения|код підтвердження|验证码|驗證碼|認証コード"
    r"|인증번호|mã xác (?:minh|nhận)|kode verifikasi|κωδικός επιβεβαίωσης)[^\n\d]{0,40}(?P<value>\d{4,8})(?!\d)"
)


# Codes that let somebody in, and addresses that hold a key in their path.
_NUMBER = r"(?P<code>\d{4,8}|\d{3}[ -]\d{3})"
_CODES = re.compile(
    r"(?i)\b(?:(?:verification|security|confirmation|one[- ]time|2fa|mfa|two[- ]factor|login|auth\w*|sms|access"
    r"|pairing"
    r"|unlock|alarm|door|gate|entry|safe|lock|voicemail|activation|sign-?in|bestätigungs|sicherheits)[ -]?"
    rf"(?:code|pin|passcode|password|number)(?: (?:for|of|to) [\w ]{{1,40}}?)?|otp|2fa|passcode"
    rf"|pin(?: [A-Z]{{2,5}})?)(?: (?:is|was"
    rf"|code|ist|est"
    rf"|es))?[: ]{{1,3}}{_NUMBER}\b"
    r"|(?<![\w-])(?P<before>\d{4,8}) is your [^\n.]{0,40}(?:code|pin|password)\b"
    r"|\b(?:recovery|backup|scratch|2fa|emergency)[ _-](?:codes?|keys?)(?: (?:is|are))?[: \n-]{1,6}"
    r"(?P<codes>(?:[a-z0-9]{4,8}(?:[ -][a-z0-9]{4,8}){0,7}[,\s]{0,6}){1,16})"
    r"|\b(?:code|key)(?: is)?[: ]{1,3}(?P<grouped>[A-Z0-9]{4,5}(?:-[A-Z0-9]{4,5}){1,5})\b"
    r"|(?<![\w-])(?P<licence>(?-i:[A-Z0-9]{5}(?:-[A-Z0-9]{5}){3,4}|[A-Z0-9]{4}(?:-[A-Z0-9]{4}){3,7}"
    r"|\d{6}(?:-\d{6}){7}))(?![\w-])"
    r"|\b(?:authenticator|2fa|totp|two[- ]factor|setup|secret|manual(?:ly)?|enter(?: this)?)\b[^\n:]{0,60}[: ]{1,3}"
    r"(?P<spaced>[a-z0-9]{4}(?: [a-z0-9]{4}){3,7})(?![\w])"
)
_ONE_CODE = re.compile(r"[a-z0-9]{4,8}(?:-[a-z0-9]{4,8})+|\d{4} \d{4}|\d{6,8}", re.IGNORECASE)
_SEGMENT = re.compile(
    r"(?i)\b(?:https?|wss?)://[\w.:-]+/(?:[\w.~-]+/){0,6}?(?:(?:v\d|t|push|ping|http|token|key|in|hook|rpc|ws|bot)/"
    r"(?P<a>(?:[a-z]{2,6}-)?[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|[0-9a-f]{32,64}"
    r"|[\w+=-]{24,200}(?:/[\w+=/-]{8,200})?)|(?P<b>[\w+-]{28,200}={0,2}))(?=[/?#\s\"'<>)]|$)"
)
_PINGED = re.compile(
    r"://[\w.-]*(?:ping|hook|push)[\w.-]*/(?P<value>[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})"
)


def codes_and_links(text: str, _key: str | None) -> Iterator[Hit]:
    """Find codes that were sent to somebody, and keys in the path of an address."""
    for match in _FOREIGN_CODE.finditer(text):
        yield value_hit(match, "value", "code", text)
    for match in _APP_PASSWORD.finditer(text):
        if sum(is_ordinary(word) or is_foreign_word(word) for word in match.group().split()) < 2:
            yield secret_hit(match.start(), match.end(), "code", text)
    for match in _PINGED.finditer(text) if "://" in text else ():
        yield value_hit(match, "value", "url-token", text)
    for match in _CODES.finditer(text):
        if match["code"] or match["before"]:
            yield value_hit(match, "code" if match["code"] else "before", "code", text)
        elif group := next((name for name in ("licence", "spaced") if match[name]), None):
            mixed = any(map(str.isdigit, match[group])) and any(map(str.isalpha, match[group]))
            if mixed or match[group].count("-") == 7:
                yield value_hit(match, group, "code", text)
        elif match["grouped"]:
            drawn = any(map(str.isdigit, match["grouped"])) or match["grouped"].count("-") > 1
            if drawn and not is_ordinary_code(match["grouped"]):
                yield value_hit(match, "grouped", "code", text)
        else:
            for one in _ONE_CODE.finditer(match["codes"]):
                if any(map(str.isdigit, one.group())):
                    at = match.start("codes") + one.start()
                    yield secret_hit(at, at + len(one.group()), "code", text)
    for match in _SEGMENT.finditer(text) if "://" in text else ():
        group = str(match.lastgroup)
        value = match[group]
        hexed = group == "a" and re.fullmatch(r"(?:[a-z]{2,6}-)?[0-9a-f-]{32,}", value)
        if hexed or (looks_random(value) and not re.fullmatch(r"[0-9a-f]+", value)):
            yield value_hit(match, group, "url-token", text)


# A line that announces a secret, and the secret alone on the next one; lists of logins for a program that sets them.
_ANNOUNCED = re.compile(
    r"(?im)^[^\n]{0,160}\b(?:password|passphrase|token|secret|api key|access key|private key|kennwort|passwort"
    r"|credential)s?\b[^\n]{0,80}:[ \t]*\n(?:[ \t]*\n)?[ \t]*[\"'`]?(?P<value>[^\s\"'`]{8,400})[\"'`]?[ \t]*$"
)
_FORM_DATA = re.compile(r"form-data; name=\"(?P<name>[\w.-]{2,60})\"\r?\n\r?\n(?P<value>[^\s]{4,200})")
_SET_LIST = re.compile(r"(?i)chpasswd\b[\s\S]{0,60}?\n[ \t]*(?:- )?[a-z_][\w-]{0,31}:(?P<value>\S{5,100})")
_OPENVPN_LOGIN = re.compile(r"<auth-user-pass>\s+\S+\s+(?P<value>\S+)\s+</auth-user-pass>")
_ACL = re.compile(
    r"(?im)(?:\bACL SETUSER \S+[^\n]*?|^[ \t]*user[ \t]+\S+[^\n]*?\bon\b[^\n]*?)[ \t]>(?P<value>\S{4,100})"
    r"|pass\w*[^\n<]{0,60}<<<[ \t]*\$?[\"'](?P<here>[^\"'\n\\]{5,100})"
)
_ATTRIBUTE = re.compile(r"\bname=[\"'](?P<name>[\w.:-]{3,80})[\"'][^<>]{0,80}>\s*(?P<value>[^<>\s]{4,200})\s*</")
_SAID_PAIR = re.compile(
    r"(?i)\b(?:try|use|with|as|login|via|is|using)[ \t]+[\"'`]?[a-z][\w.@-]{1,30}[:/]"
    r"(?P<value>[^\s\"'`/:@]{6,60})(?=[\"'`\s,.]|$)"
)
_PLIST = re.compile(r"<key>(?P<name>[\w.:-]{3,60})</key>\s*<string>(?P<value>[^<>\s]{4,400})</string>")


def announced(text: str, _key: str | None) -> Iterator[Hit]:
    """Find secrets that a line, a tag or a command before them announces."""
    for match in _ANNOUNCED.finditer(text):
        value = match["value"]
        hexed = re.fullmatch(r"[0-9a-f]{16,}", value)
        if hexed or (
            is_mixed(value) and is_no_name(value) and is_password(value) and not re.search(r"[(){}=:]", value)
        ):
            yield value_hit(match, "value", "prose", text)
    for pattern in (_SET_LIST, _OPENVPN_LOGIN, _ACL):
        for match in pattern.finditer(text):
            group = str(match.lastgroup)
            if is_password(match[group]) and "$" not in match[group][:2]:
                yield value_hit(match, group, "assignment", text)
    for pattern in (_ATTRIBUTE, _PLIST, _FORM_DATA) if "</" in text or "form-data" in text else ():
        for match in pattern.finditer(text):
            name = re.split(r"[.:]", match["name"])[-1]
            if is_secret_value(match["value"], key_strength(name), name, exact=True):
                yield value_hit(match, "value", "assignment", text)
    for match in _SAID_PAIR.finditer(text):
        value = match["value"].rstrip(".,")
        shaped = password_shape(value) or looks_random(value) or unwordly(value, told=True)
        if is_mixed(value) and is_password(value) and shaped:
            yield secret_hit(match.start("value"), match.start("value") + len(value), "prose", text)
