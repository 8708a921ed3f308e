"""The command line: argv and environment to a Request; the only print, the only exit.

One module a group of commands. Exit status: 0 pass or warn, 1 fail, 2 the request cannot be used, 3 no answer (the
machine failed, or it was stopped).
"""

from reviewbot.cli.entry import app, main

__all__ = ["app", "main"]
