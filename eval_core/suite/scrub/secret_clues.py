"""Secrets found by a clue on their line: a word that names a secret in any language, a login, a call, a code."""

from __future__ import annotations

import re
from collections.abc import Iterator

from eval_core.suite.scrub.hits import Detector, Hit, secret_hit, value_hit
from eval_core.suite.scrub.secret_values import is_secret_value, key_strength, looks_random, password_shape, unwordly

__all__ = ["CLUE_DETECTORS", "SECRET_WORD"]

_FOREIGN = (
    "kennwort|passwort|schlüssel|zugangsdaten|geheimnis|mot de passe|code d['’]accès|clé (?:api|secrète|privée)"
    "|identifiants|contraseña|clave|credenciales|senha|chave|parola|credenziali|chiave|wachtwoord|sleutel|lösenord"
    "|passord|adgangskode|kodeord|salasana|salasõna|hasło|hasła|heslo|jelszó|şifre|parolă|lozinka|geslo|slaptažodis"
    "|kata sandi|mật khẩu|пароль|пароля|паролем|секрет|ключ|токен|лозинка|парола|κωδικός|κωδικό|σύνθημα"
    "|كلمة المرور|كلمة السر|كلمه عبور|رمز عبور|סיסמה|סיסמא|पासवर्ड|कूटशब्द|รหัสผ่าน|密码|密碼|密钥|密鑰|金鑰|秘钥|口令"
    "|contrasenya|contrasinal|pasahitza|cyfrinair|lykilorð|wagwoord|nenosiri|mật mã|құпиясөз|şifrə|пароли|ססמה|lösen"
    "|凭证|パスワード|暗証番号|秘密鍵|キー|비밀번호|암호|패스워드|인증키"
)
# In a name as well as in a sentence: setPassword, WIFI_PASS, auth-pass, "the password".
SECRET_WORD = re.compile(
    rf"(?i:passw(?:or)?d|passphrase|passcode|secret|credential|api[ _-]?key|private[ _-]?key|access[ _-]?key"
    rf"|auth[ _-]?key"
    rf"|auth[ _-]?token|access[ _-]?token|{_FOREIGN}|(?<![a-z])(?:pwd|pw|pass|creds?|psk|totp|otp)(?![a-z])"
    rf"|log(?:ged|ging)?[ _-]?(?:in|on)\b|sign(?:ed|ing)?[ _-]?in\b|\bwi-?fi\b|\bwlan\b|\bssid\b"
    rf"|\b[a-z]{{2,8}}pw\b|key[ _-]?material"
    rf"|\bverification\b|\bapp[ _-]?id\b|\b(?:key|token)(?=[ \t]+[\"']))"
    rf"|(?<=[a-z])(?:Pass|Pwd)(?![a-z])|\b(?i:bearer|token)(?= (?:is|was|to|of|for)\b|[:=])"
)
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
_HEXED = re.compile(r"[0-9a-f]{32}|[0-9a-f]{40}|[0-9a-f]{64}")


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
            drawn = shaped or (told and _HEXED.fullmatch(value) is not None)
            if unwordly(value, told=told) or (drawn and is_secret_value(value, "strong", "password", exact=True)):
                yield secret_hit(at, at + len(value), "prose", text)


# A login and, behind a sign, what goes with it; lines of protocols that log in.
_BESIDE_LOGIN = re.compile(
    r"(?<![\w/.])(?P<login>[A-Za-z][\w.-]{1,40}(?:@[\w.-]{3,60})?)[:,%](?P<value>[^\s\"'`/,;:@()<>\[\]{}=]{8,64})"
    r"(?=@|[\s\"'`,;)]|$)"
)
_SLASHED = re.compile(r"(?<![\w/.-])[A-Za-z][\w$#-]{1,30}/(?P<value>[^\s\"'`/@:]{5,64})@(?:/{0,2}[A-Za-z]|$)")
_LOGS_IN = re.compile(r"(?i)auth|login|user|cred|account|\btry\b")
_CHAP = re.compile(
    r"(?m)^\"?[\w.@-]+\"?[ \t]+(?:(?:\*|[\w.-]+)[ \t]+)?\"(?P<value>[^\"\s]{4,64})\"(?:[ \t]+(?:\*|[\d.]+))?[ \t]*$"
)
_DSN = re.compile(r"[\"'\s=][A-Za-z][\w.-]{0,40}:(?P<value>[^\s\"'`/:]{4,100}?)@(?:tcp|unix|\[)?[(\w]")
_PROTOCOL = re.compile(
    r"(?m)^(?:[-<>*]+[ \t]*|C: ?|\d\d:\S+ )?(?:PASS[ \t]+(?P<a>\S{4,100})"
    r"|\w{1,6}[ \t]+LOGIN[ \t]+\S+[ \t]+(?P<b>\S{4,100})"
    r"|AUTH(?:[ \t]+(?:PLAIN|LOGIN|\w+))?[ \t]+(?P<c>\S{6,200}))[ \t]*\r?$"
)
# A verb that makes or opens an account, a login, and its password by position.
_ACCOUNT = re.compile(
    r"(?i)(?<!\w)(?:add[_-]?user|user[_-]?add|create[_-]?user|change[_-]?password|set[_-]?password|auth-pass"
    r"|passwd|radtest"
    r"|user:password|user:create|--encrypt|authenticate_user|set[_-]?user|reset[_-]?password|smbpasswd"
    r"|set-?airport-?network|user[ \t]+\S+[ \t]+using|logon|obscure)\b"
    r"(?P<rest>[^\n|;&]{4,160})"
)
_OPTION_VALUE = re.compile(
    r"(?<![\w/-])(?:-{1,2}|/)(?P<name>[A-Za-z][\w-]{0,30})(?:[ \t]+|[:=])[\"']?(?P<value>[^\s\"'`\\"
    r"|<>]{6,128})(?=[\"'\s]|$)"
)
_GLUED = re.compile(r"(?<![\w-])-(?:p|hp|P|w)(?P<value>[^\s\"'`\\,-][^\s\"'`\\,]{6,64})(?=[\"'\s,]|$)")
_ARGUMENTS = re.compile(r"[\"']-{1,2}(?P<name>[A-Za-z][\w-]{0,30})[\"'],\s*[\"'](?P<value>[^\s\"']{4,200})[\"']")
_SECRET_LETTER = frozenset("pPwWkKaAxX")


def beside_logins(text: str, _key: str | None) -> Iterator[Hit]:
    """Find what is paired with a login, follows one by position, or is given to an option."""
    for match in _BESIDE_LOGIN.finditer(text):
        told = "@" in match["login"] or _LOGS_IN.search(text, max(0, match.start() - 30), match.start()) is not None
        if unwordly(match["value"], told=told) and not re.search(
            r"(?i)sha\d|md5|base64|https?$|digest", match["login"]
        ):
            yield value_hit(match, "value", "flag", text)
    for match in _DSN.finditer(text) if "@" in text else ():
        if is_secret_value(match["value"], "strong", "password", exact=True):
            yield value_hit(match, "value", "url-password", text)
    for match in _SLASHED.finditer(text) if "@" in text else ():
        if unwordly(match["value"], told=True):
            yield value_hit(match, "value", "url-password", text)
    for match in _CHAP.finditer(text):
        if unwordly(match["value"], told=True):
            yield value_hit(match, "value", "assignment", text)
    for match in _PROTOCOL.finditer(text):
        group = str(match.lastgroup)
        if unwordly(match[group], told=True) or looks_random(match[group]):
            yield value_hit(match, group, "assignment", text)
    for match in _ACCOUNT.finditer(text):
        for word in re.finditer(r"[^\s\"']{5,64}", match["rest"]):
            if unwordly(word.group(), told=True):
                at = match.start("rest") + word.start()
                yield secret_hit(at, at + len(word.group()), "flag", text)
    for match in _OPTION_VALUE.finditer(text) if "-" in text or "/" in text else ():
        name = match["name"]
        told = (len(name) == 1 and name in _SECRET_LETTER) or name.lower().endswith(
            ("pw", "pass", "pwd", "cookie", "rp")
        )
        if unwordly(match["value"], told=told) or (
            name == "hashes" and re.fullmatch(r"[0-9a-f]{32}:[0-9a-f]{32}", match["value"])
        ):
            yield value_hit(match, "value", "flag", text)
    for match in _GLUED.finditer(text):
        if unwordly(match["value"]):
            yield value_hit(match, "value", "flag", text)
    for match in _ARGUMENTS.finditer(text):
        name = match["name"]
        told = len(name) == 1 and name in _SECRET_LETTER and unwordly(match["value"], told=True)
        if told or is_secret_value(match["value"], key_strength(name), name, exact=True):
            yield value_hit(match, "value", "flag", text)


# A call that opens something takes its password by position; so does a call named for a secret.
_OPENS = re.compile(
    r"\b[\w.:>-]*(?i:connect\w*|mysqli?|database|open\w*|begin|login\w*|log_in|sign_?in|auth\w*|client|session"
    r"|credentials?"
    r"|hmac(?:\.new)?|createhmac|sign|encrypt|decrypt|cipher\w*|fernet|sendline|send_keys|fill|type|pass\w*"
    r"|secret\w*"
    r"|token\w*|\w*pass(?:word)?|\w*secret|\w*token|\w*key)\(\s*(?P<arguments>[^\n]{6,300})"
)
_ARGUMENT = re.compile(r"(?P<quote>[\"'`])(?P<value>[^\"'`\n]{1,128})(?P=quote)")


def arguments(text: str, _key: str | None) -> Iterator[Hit]:
    """Find drawn and chosen values among the quoted arguments of such calls."""
    for call in _OPENS.finditer(text) if "(" in text else ():
        for place, one in enumerate(_ARGUMENT.finditer(text, *call.span("arguments"))):
            value = one["value"]
            if " " in value:
                continue
            if unwordly(value, told=place >= 1) or (place >= 1 and _HEXED.fullmatch(value)):
                yield value_hit(one, "value", "assignment", text)


# Codes that let somebody in, and addresses that hold a key in their path.
_NUMBER = r"(?P<code>\d{4,8}|\d{3}[ -]\d{3})"
_CODES = re.compile(
    r"(?i)\b(?:(?:verification|security|confirmation|one[- ]time|2fa|mfa|two[- ]factor|login|auth\w*|sms|access"
    r"|pairing"
    r"|unlock|alarm|door|gate|entry|safe|lock|voicemail|activation|sign-?in|bestätigungs|sicherheits)[ -]?"
    rf"(?:code|pin|passcode|password|number)|otp|2fa|passcode|pin)(?: (?:is|was|code|ist|est"
    rf"|es))?[: ]{{1,3}}{_NUMBER}\b"
    r"|(?<![\w-])(?P<before>\d{4,8}) is your [^\n.]{0,40}(?:code|pin|password)\b"
    r"|\b(?:recovery|backup|scratch|2fa|emergency)[ _-](?:codes?|keys?)(?: (?:is|are))?[: \n-]{1,6}"
    r"(?P<codes>(?:[a-z0-9]{4,8}(?:[ -][a-z0-9]{4,8}){0,7}[,\s]{0,6}){1,16})"
    r"|\b(?:code|key)(?: is)?[: ]{1,3}(?P<grouped>[A-Z0-9]{4,5}(?:-[A-Z0-9]{4,5}){1,5})\b"
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
    for match in _PINGED.finditer(text) if "://" in text else ():
        yield value_hit(match, "value", "url-token", text)
    for match in _CODES.finditer(text):
        if match["code"] or match["before"]:
            yield value_hit(match, "code" if match["code"] else "before", "code", text)
        elif match["grouped"]:
            if any(map(str.isdigit, match["grouped"])) or match["grouped"].count("-") > 1:
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
        if hexed or looks_random(value):
            yield value_hit(match, group, "url-token", text)


CLUE_DETECTORS: tuple[Detector, ...] = (on_the_line, beside_logins, arguments, codes_and_links)
