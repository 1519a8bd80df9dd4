"""Names that belong to nobody: accounts of systems and services, and ordinary words that are also names."""

from __future__ import annotations

import re

__all__ = ["GENERIC_USERS", "is_common_word", "is_generic"]

_GENERIC = (
    "user users root admin administrator ubuntu debian fedora centos alpine arch ec2-user azureuser opc vagrant pi "
    "runner node app www www-data nobody daemon bin sys git gitlab github jenkins circleci travis build builder ci "
    "deploy "
    "deployer dev developer docker postgres mysql redis nginx apache http httpd vscode codespace gitpod coder jovyan "
    "sandbox agent worker service test tester guest public shared default me you someone username yourname your_name "
    "your-name your-username name example foo bar linuxbrew homebrew conda codex claude hermes openhands swe workspace "
    "project runneradmin containeradministrator all container operator ops staff wheel sudo nogroup mail web owner "
    "alluser "
    "allusers myuser myname xxx lib src home uid bot support info hello contact sales security team noreply no-reply "
    "donotreply do-not-reply postmaster webmaster mailer-daemon abuse help billing notifications notification updates "
    "actions dependabot renovate devnull demo system hostmaster marketing press jobs office accounts feedback "
    "newsletter"
)


GENERIC_USERS = frozenset(_GENERIC.split())


_PLACEHOLDER = re.compile(
    r"(?:user|person|host)\d*|(?:test|demo|sample|dummy|fake|mock|example|temp|tmp)[-_]?(?:user|account|admin|login|name|er)?\d*",
    re.IGNORECASE,
)


def is_generic(name: str) -> bool:
    """Tell a role or a placeholder from somebody's name."""
    return name.lower() in GENERIC_USERS or _PLACEHOLDER.fullmatch(name) is not None or len(name) < 2


_WORDS_AND_NAMES = (
    "mark will may rose grant page art bill frank grace hope joy dean chase drew max rob sue pat ray lane miles "
    "wade young "
    "long king price stone wood brown green white black gray day case best field fields reader major june april august "
    "summer autumn dawn iris ivy lily pearl ruby jade amber crystal faith guy jack jay lance mason parker piper "
    "pierce rich "
    "sky stone sterling ward west wolf bot ops team dev test code open api app data the and for"
)


_NAME_WORDS = frozenset(_WORDS_AND_NAMES.split())


def is_common_word(word: str) -> bool:
    """Tell a name that is an ordinary word as well, and so cannot be taken out wherever it stands."""
    return word.lower() in _NAME_WORDS or len(word) < 3
