"""`python -m bot` is `compression-eval`."""

from bot.cli import main

main()
