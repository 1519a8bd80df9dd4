"""Status codes in prose: what tells an exit status or an HTTP status from a count."""

from __future__ import annotations

from eval_core.facts.fact_spellings import SUFFIX_UNITS, WORD

_SURE = r"exit(?:ed|s|_code|code)?|returncode|codes?|rc|errno|signal"
_VAGUE = r"return|status(?:es)?|error|http"
_BETWEEN = r"(?:with|of|was|is|now|still|codes?|status|value|a|an|changed|from|to|non|zero|nonzero)(?![a-z])"
NAMED_CODE = (
    rf"(?<![a-z])(?:(?:{_SURE})(?![a-z])(?:[\s:=()\[\]'#>|*-]++|{_BETWEEN})*+"
    rf"|(?:{_VAGUE})(?![a-z])(?:[\s=()\[\]'#>|*-]++|{_BETWEEN})*+)(?:\d{{3}}/){{0,5}}"
)
"""Leads up to a code, whatever follows it. After a colon, "error: 2 files" may go on with a count."""
LISTED_CODE = rf"(?<![a-z])(?:{_SURE}|{_VAGUE})(?![a-z])(?:[\s:=()\[\]'#>|*,/-]++|\d{{1,6}}|and|or|{_BETWEEN})*+"
"""Leads up to one of several codes; what follows must not make it a count (exit code 0, 1 test failed)."""

# What may follow a code in a sentence, and the phrases that name one: 503 Service Unavailable.
_GOES_ON = (
    r"from|on|in|at|for|by|with|to|and|or|but|then|when|while|after|before|because|since|as|is|was|were|are|has|had"
    r"|again|twice|once|until|during|unless|if|which|that|this|its|us|instead|not|so|via|every|per|due|always|sometimes"
    r"|errors?|responses?|status(?:es)?|codes?|replies|reply|answers?|pages?(?! ?\d)|handlers?|bod(?:y|ies)|results?"
    r"|rate|upstream|timeout|ok|created|accepted|continue|switching|moved|found|see other|bad (?:request|gateway)"
    r"|unauthori[sz]ed|forbidden|method not|proxy|request (?:timeout|entity|uri|header)|conflict|gone|length required"
    r"|precondition|payload|unsupported|unprocessable|locked|too (?:many|early)|upgrade required|internal|gateway"
    r"|service unavailable|temporary|permanent"
)
_PLURAL = r"(?:[a-z]+(?<!s)s|people|persons|men|women|children|data)"
_OUTCOMES = r"(?:pass|fail|skipp|succeed|finish|complet)(?:ed|ing)"
_NOUN = rf"(?!(?:{_GOES_ON})(?!{WORD}))"
_COUNTED = rf" {_NOUN}(?:{_PLURAL}|{_OUTCOMES}|[a-z]+ {_NOUN}{_PLURAL})(?!{WORD})"
NOT_MEASURED = rf"(?!\s?%|[\s-]{SUFFIX_UNITS}(?!{WORD})| of (?:\d|the |all ))"
NOT_COUNTED = f"(?!{_COUNTED})"
NOT_LISTED = rf"{NOT_MEASURED}(?! {_NOUN}[a-z])"
NOT_NUMBERED = "(?<![#$€£])" + "".join(
    f"(?<!{word} )" for word in ("line", "lines", "port", "page", "pid", "row", "step", "build", "order")
)
CODES_BEFORE = (
    rf"(?<![a-z])(?:{_SURE}|{_VAGUE}|errors|retr(?:y|ies|ied|ying) on|respon(?:ds?|ded|ses?)|return(?:s|ed)"
    r"|answer(?:s|ed)|got)(?![a-z])[^.;\n]{0,24}$"
)
"""Before digits with commas: says that they are a list of codes and not one number."""
