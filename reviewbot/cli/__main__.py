"""``python -m reviewbot.cli``."""

from reviewbot.cli import main

main()
