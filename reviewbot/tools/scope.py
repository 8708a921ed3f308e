"""Which tests a tree asks for: the sample types of a series, or of a tree as it is, read from git.

In: a repository and its commits, the series and the specs. Out: a Scope, or the kselftest directory made of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reviewbot.errors import UsageError
from reviewbot.generate.kselftest import programs, render_kselftest
from reviewbot.generate.scope import Scope, find_scope
from reviewbot.parse.uapi import UapiError
from reviewbot.tools.git import git, must
from reviewbot.tools.kselftest import write_directory

if TYPE_CHECKING:
    from pathlib import Path

    from reviewbot.generate.spec import Specs
    from reviewbot.model import ApplyResult, Series

HEADER = "include/uapi/linux/perf_event.h"


def read_scope(repo: Path, applied: ApplyResult, series: Series, specs: Specs, *, every: bool = False) -> Scope:
    """Return the sample types that the commits from base to tip add or touch; every type with every=True.

    A series that base has already is read from its own text. Raises UapiError for a tree without the header.
    """
    if applied.base_commit == applied.tip_commit:
        header = must(repo, "show", f"{applied.base_commit}:{HEADER}")
        diff_text = "\n".join(p.diff for p in series.patches)
        return find_scope(header, header, diff_text, specs, every=every)
    headers = [must(repo, "show", f"{commit}:{HEADER}") for commit in (applied.base_commit, applied.tip_commit)]
    diff = git(
        repo,
        *("diff", "--no-ext-diff", "--no-textconv", "--no-color", "--no-renames", "-W"),
        *("--src-prefix=a/", "--dst-prefix=b/", applied.base_commit, applied.tip_commit),
    )
    return find_scope(headers[0], headers[1], diff.stdout, specs, every=every)


def read_plain_scope(repo: Path, commit: str, specs: Specs) -> Scope:
    """Return the scope of a tree without a series: every sample type that it has. Raises UapiError as read_scope()."""
    header = must(repo, "show", f"{commit}:{HEADER}")
    return find_scope(header, header, "", specs, every=True)


def write_selftests(
    repo: Path, applied: ApplyResult, series: Series, directory: Path, *, specs: Specs, every: bool = False
) -> tuple[str, ...]:
    """Write the kselftest directory of the series and return the names of its programs.

    Raises UsageError when there is nothing to generate.
    """
    try:
        scope = read_scope(repo, applied, series, specs, every=every)
    except UapiError as error:
        msg = f"{HEADER}: {error}"
        raise UsageError(msg) from error
    if scope.empty:
        msg = "the series adds and touches no perf sample type, record or bit of them"
        raise UsageError(msg)
    write_directory(directory, render_kselftest(scope, specs))
    return programs(scope, specs)
