"""Denials: does what leads up to a decision turn it into its opposite?"""

from __future__ import annotations

import re

FOREIGN_DENIALS = (
    r"nicht|nie|niemals|kein(?:e[nmrs]?)?|ne|pas|jamais|nunca|jamás|não|non|niet|nooit|geen|не|никогда|нельзя"
)
_DENIALS = (
    rf"not|never(?:, ever)?|no longer|without|cannot|no|nor|neither|nobody|no one|\w{{1,8}}n't|refus(?:e[ds]?|ing)"
    rf"|forbidden|prohibited|{FOREIGN_DENIALS}"
)
_BEFORE_GERUND = r"avoid(?:s|ed|ing)?|stop(?:s|ped|ping)?|refrain(?:s|ed)? from|against|instead of|rather than"
"""These deny what is done: "avoid using Redis"; what follows "avoid" as a noun is only named."""
# Words that carry a denial on to what follows. A verb of its own ends it: "never touch the billing module" denies the
# touching, not the module; "not only" and "do not forget to" affirm.
_CARRIES = (
    r"ever|again|yet|also|even|then|to|be|been|have|a|an|any|at all|by default|under any circumstances|in any case"
    r"|may|can|could|should|must|will|would|shall|mehr|plus|meer|mais|de|zu"
    r"|(?:going|want|wanted|need|needed|allowed|permitted|supposed|able|plans?|planning|planned|intend|try|trying|wish"
    r"|had|decided?|agreed?|choose|chosen|reason|expected|required|meant) to"
    r"|(?!(?:only|merely|simply|solely|exclusively) )[a-z]{2,14}ly"
)
_LISTED = r"(?:\w{1,8}n't|cannot|never|(?:do|does|did|must|should|shall|may|can|will|would) not):[ -]{1,4}"
_STRUCK = r"(?<![^\s(\[-])~~(?!\s)[^~]{0,60}"
# "不得不" is a must, "要不要" a question, "分别" means each.
_CHINESE = (
    r"(?:(?<![得能可差要会會])不|[没沒]有?|(?<![特分区區差类類级級个個])[别別]|[勿未]|[无無]需|禁止|避免)"
    r"(?:[要再会會能得想准必用]|可以?|应该?|應該?|需要?|打算|建[议議]|允[许許]){0,3}[ '(「『]{0,2}"
)


def _leading_up(denials: str) -> re.Pattern[str]:
    # "Not, as agreed, use Redis" is one clause; "no, use Redis" and "if not, use Redis" are two.
    aside = r"(?:(?<!\bno), [^,.;:!?]{1,40},)?"
    plain = rf"(?<![a-z])(?:{denials}){aside}(?: (?:{_CARRIES})){{0,4}} ['(\[]{{0,2}}"
    return re.compile(f"(?:{plain}|{_LISTED}|{_STRUCK}|{_CHINESE})$")


_DENIED = _leading_up(_DENIALS)
_DENIED_GERUND = _leading_up(f"{_DENIALS}|{_BEFORE_GERUND}")
_DENIES = re.compile(rf"(?<![a-z])(?:{_DENIALS})(?![a-z-])|[不没沒勿未]|[无無]需|禁止")
_CHINESE_PHRASE = re.compile(r"[\u3400-\u9fff]{4}")


def denials(text: str) -> int:
    """Count the words that deny something."""
    return len(_DENIES.findall(text.lower()))


def denied_before(value: str) -> re.Pattern[str] | None:
    """Return what must not lead up to a value: for a decision its denial, for a name or another denial nothing."""
    if not (" " in value or _CHINESE_PHRASE.search(value)) or _DENIES.search(value):
        return None
    return _DENIED_GERUND if value.split(" ", 1)[0].endswith("ing") else _DENIED
