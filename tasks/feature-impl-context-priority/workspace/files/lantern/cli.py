"""Command line of lantern."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from lantern.context_files import find_context_files
from lantern.doctor import report


def main(args: list[str]) -> int:
    """Run one command."""
    if args == ["context"]:
        for path in find_context_files(Path.cwd()):
            print(path)
        return 0
    if args == ["doctor"]:
        print("\n".join(report(os.environ)))
        return 0
    print("usage: lantern context | doctor", file=sys.stderr)
    return 2
