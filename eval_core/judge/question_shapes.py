"""What a question asks for, and what the line that answers it looks like."""

from __future__ import annotations

import re

__all__ = ["QUESTION_SHAPES"]

QUESTION_SHAPES = tuple(
    (re.compile(asked, re.IGNORECASE), re.compile(given, re.IGNORECASE))
    for asked, given in (
        (r"\bfiles?\b|\bmodule|\bpaths?\b|\bscript", r"[\w-]+\.(?:py|md|ya?ml|json|toml|sql|sh|txt|cfg|ini)\b"),
        (
            r"\berror|\bfail|\bexception|\bwrong|\bbroke|\bcode\b",
            r"error|exception|fail|traceback|denied|^E\s|\b\d{3,6}\b",
        ),
        (r"\bpull request|\bPRs?\b|\bissues?\b|\bticket", r"#\d+|pull/\d+|issues?/\d+"),
        (r"\bcommit|\bhash|\brevert", r"\b[0-9a-f]{7,40}\b"),
        (r"\btests?\b|\bsuite", r"\d+ (?:passed|failed)|test_\w+"),
        (r"\bschedul|\bcron|\bwhen\b|\btimes?\b|\bday|\bweekday", r"(?:[\d*/,-]+ ){4}[\d*/,a-z-]+|\d\d?:\d\d"),
        (
            r"\bdecid|\bdecision|\bchose|\bwhy\b|\breason|\binstead|\bapproach",
            r"decid|because|instead|chose|reason|rather|so that|keep",
        ),
        (
            r"\bnext\b|\bremain|\bopen\b|\bleft\b|\bpending|\bcontinue|\btodo",
            r"next|remain|pending|todo|still|left|follow|in_progress|not yet",
        ),
        (
            r"\bmust not|\bnever|\boff.limits|\bnot allowed|\bconstraint|\brule|\bforbid|\bden",
            r"never|don'?t|do not|must not|off.limits|denied|only",
        ),
        (r"\bbranch", r"branch|checkout|HEAD|\b\w+/[\w.-]+"),
        (r"\bversion|\bport\b|\bsize|\blimit|\bhow many|\bvalue|\bnumber|\bcount", r"\d"),
        (
            r"\bfunction|\bmethod|\bclass\b|\bhelper|\bcolumn|\btable|\bkey\b|\bsetting|\bname",
            r"\b\w+_\w+\b|\bdef |\bclass |\w+\(\)",
        ),
    )
)
