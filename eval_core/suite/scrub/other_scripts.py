"""Names in other scripts than Latin: after a label, beside a title, where somebody speaks, and by their form."""

from __future__ import annotations

import re
from collections.abc import Iterator

from eval_core.suite.scrub.hits import Hit
from eval_core.suite.scrub.people_fields import field_kind
from eval_core.suite.scrub.words import is_name_elsewhere, label_forms, word_list

_SCRIPT = "\u0370-\u1fff\u2c00-\ud7ff\uf900-\ufaff\ufb1d-\ufefc"
_HAN = "\u4e00-\u9fff々"
_KANA = "\u3040-\u30ff"
_HANGUL = "\uac00-\ud7a3"
_ANY, _LONGEST = re.compile(rf"[{_SCRIPT}]"), 40
_NAME = re.compile(rf"[{_SCRIPT}]{{1,20}}(?:[ ・·\u200c][{_SCRIPT}]{{1,20}}){{0,3}}")
_LABEL_WORDS = label_forms("people in other scripts")
_LABELLED = re.compile(rf"(?:{_LABEL_WORDS})[\"']?[ \t]*[:：=][ \t]*[\"']?(?P<value>{_NAME.pattern})")
_LABELLED_IN_ENGLISH = re.compile(
    rf"(?i:\b(?:full_?|customer_?|client_?|display_?)?name)[\"']? ?[:=] ?[\"'](?P<value>{_NAME.pattern})[\"']"
)
_LABELLED_LOOSELY = re.compile(
    rf"(?<![{_HAN}{_HANGUL}])(?:{_LABEL_WORDS})[ 　](?P<value>[{_HAN}]{{2,4}}|[{_HANGUL}]{{2,5}})(?![{_HAN}{_HANGUL}])"
)
_HONOURED = re.compile(
    rf"(?<![{_HAN}])(?P<value>[{_HAN}]{{1,4}}(?:[ 　][{_HAN}{_KANA}]{{1,4}})?|[\u30a0-\u30ff]{{2,8}}) ?(?:さん|様"
    rf"|さま|氏|くん|ちゃん|殿"
    rf"|先生|先輩|部長|課長|主任)(?![{_HAN}])"
    rf"|(?<![{_HANGUL}])(?P<value2>[{_HANGUL}]{{2,5}}) ?(?:님|씨|대리|과장|차장|부장|팀장|사원|주임|선배|교수"
    rf"|선생)(?![{_HANGUL}]{{2}})"
    rf"|(?<![{_HAN}])(?P<value3>[{_HAN}]{{1,4}})(?:先生|女士|小姐|经理|老师|同学|总监|工程师|主任|医生|师傅)"
)
# Titles of languages that write words apart; one or two words follow.
_TITLED = re.compile(
    r"(?<![\w])(?:السيدة?|الدكتورة?|د\.|الأستاذة?|أ\.|المهندسة?|م\.|آقای|خانم|دکتر|[לבהומ]?(?:מר|גב'|גברת|ד\"ר)"
    r"|שלום|היי|ฯ|คุณ|นาย|นางสาว"
    r"|นาง|श्रीमती|श्री|डॉ\.?"
    r"|κ\.|κα|κύριος|κυρία|г-н|г-жа|господин|госпожа|товарищ|тов\.|пан|пані|д-р|պարոն|տիկին|ბატონი|ქალბატონი)"
    rf"\s?(?P<value>[{_SCRIPT}]{{2,20}}(?: [{_SCRIPT}]{{2,20}})?)"
)
# Scripts with capitals: two capitalised words in a row, or one that ends as surnames and patronymics do.
_CAPITALISED = (
    r"[\u0391-\u03ab\u0386-\u038f\u0400-\u042f\u0490\u04d8\u04ae\u0531-\u0556]"
    r"[\u03ac-\u03ff\u1f00-\u1fff\u0430-\u045f\u0491\u04d9\u04af\u0561-\u0587'’-]+"
)
_PAIR = re.compile(rf"(?<![\w.])(?:{_CAPITALISED}|[А-ЯΑ-Ω]\.)(?: ?(?:{_CAPITALISED}|[А-ЯΑ-Ω]\.)){{1,3}}")
_NO_CAPITALISED = re.compile(rf"(?:{label_forms('capitalised words that are no names')})\Z")
_SPEAKER = re.compile(
    rf"(?m)^[\[(@]?(?P<value>[{_SCRIPT}]{{2,16}}(?: (?!上午|下午|오전|오후)[{_SCRIPT}]{{2,16}})?)[\])]?(?:[,，]? "
    rf"{{0,3}}[\[(]?|\s{{1,3}})"
    r"(?:上午|下午|오전|오후|今天|昨天|어제|오늘|сегодня|вчера)?\s?(?:\d{1,4}[-/.年]\d\d?[-/.月]?(?:\d{1,4}日?)? "
    r")?\d\d?:\d\d"
)
# Chinese and Korean names begin with one of a few hundred surnames.
_HAN_SURNAMES = label_forms("surnames in Han")
_HAN_DOUBLE = label_forms("double surnames in Han")
_GIVEN = label_forms("given names in Han")
_HAN_NAME = re.compile(
    rf"(?<![{_HAN}])(?P<value>(?:{_HAN_DOUBLE})[{_HAN}]{{1,2}}?|[{_HAN_SURNAMES}][{_GIVEN}]{{1,2}})"
    rf"(?=[^{_HAN}{_KANA}]|$|[你您他她说說的在已会會把负負那这這请請])"
    rf"|(?:问一下|问问|问|找|联系|請|请|让|由|给|跟|和|与|與|是|叫|@|感谢|谢谢|麻烦|通知|交给|转给|抄送)"
    rf"(?P<value2>(?:{_HAN_DOUBLE})[{_HAN}]{{1,2}}?|[{_HAN_SURNAMES}][{_GIVEN}]{{2}})(?=[^{_HAN}]|$"
    rf"|[你您他她说說的在已会會把负負那这這请請确確]|同学|老师|先生|女士)"
)
_SPACED_HAN = re.compile(
    rf"(?<![{_HAN}\u30a0-\u30ff])(?P<value>[{_HAN}]{{1,3}}[ 　][{_HAN}{_KANA}]{{1,3}})(?=です|と申|より| <"
    rf"|[、。,，(（<:：\d]|\s*$|[ 　]?様)",
    re.M,
)
_KATAKANA = re.compile(
    r"(?<![\u30a0-\u30ff])(?P<value>[\u30a1-\u30f6ー]{2,10}・[\u30a1-\u30f6ー]{2,12})(?![\u30a0-\u30ff])"
)
# How a name is read, in a cell of its own.
_READING = re.compile(
    r"(?:^|(?<=[|,\t;:]))\s?(?P<value>[\u30a1-\u30f6ー]{2,8}[ 　][\u30a1-\u30f6ー]{1,8})\s?(?=[|,\t;]|$)", re.M
)
_KOREAN_NAME = re.compile(
    rf"(?<![{_HANGUL}])(?P<value>(?:황보|제갈|남궁|선우|독고|사공|서문"
    rf"|[김이박최정강조윤장임한오서신권황안송류전홍고문양손배백허유남심노하곽성차주우구민진지엄채원])"
    rf"[{_HANGUL}]{{2}})(?=[ ]*(?:님|씨|대리|과장|부장|팀장)|\s{{2,}}|\s*[,(<:\d]|[ ](?:오전|오후)|(?:에게|한테|께서"
    rf"|이가|이랑)\b|$)",
    re.M,
)


def _hit(start: int, value: str) -> Hit:
    return Hit(start, start + len(value), "field-person", "name", value.lower())


def other_scripts(text: str, key: str | None) -> Iterator[Hit]:
    """Find names that are not written in Latin letters."""
    if text.isascii() or not _ANY.search(text):
        return
    whole = _NAME.fullmatch(text.strip()) if key is not None and len(text) <= _LONGEST else None
    if whole and _holds_name(str(key), whole.group()):
        yield _hit(text.index(whole.group()), whole.group())
    for pattern in _PLACES:
        for match in pattern.finditer(text):
            group = str(match.lastgroup)
            value = match[group].rstrip()
            if value not in word_list("greetings of other scripts") and len(value) > 1:
                yield _hit(match.start(group), value)
    yield from _capitalised(text)


def _holds_name(key: str, value: str) -> bool:
    """Tell the key of a person; under a plain `name`, two words or more are one, a single word may be a thing."""
    kind = field_kind(key)
    plain = kind == "none" and key.rpartition("_")[2].lower() == "name" and len(value.split()) > 1
    return plain or kind in ("person", "owner", "people", "first", "account")


_PLACES = (
    _KATAKANA,
    _READING,
    _LABELLED,
    _LABELLED_IN_ENGLISH,
    _LABELLED_LOOSELY,
    _HONOURED,
    _TITLED,
    _SPEAKER,
    _HAN_NAME,
    _SPACED_HAN,
    _KOREAN_NAME,
)


def _capitalised(text: str) -> Iterator[Hit]:
    """Yield runs of capitalised words without the greeting, the label or the title that they begin with."""
    for match in _PAIR.finditer(text):
        words = list(re.finditer(r"\S+?(?:\.|(?=\s|$|[А-ЯΑ-Ω]\.))", match.group()))
        while words and _NO_CAPITALISED.match(words[0].group()):
            words.pop(0)
        long = [word for word in words if len(word.group()) > 2]
        named = bool(long) and (len(words) > 1 or is_name_elsewhere(long[0].group()))
        if named and not any(_NO_CAPITALISED.match(word.group()) for word in words):
            start = match.start() + words[0].start()
            yield _hit(start, match.group()[words[0].start() : words[-1].end()].rstrip())
