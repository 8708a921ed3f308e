"""Debian linux-source packages, from suites that the machine's own sources need not name.

A private apt root in the cache (lists, package cache, sources.list, configuration) is updated and asked; the machine's
apt is never changed, and no root is needed. The mirror, the proxy settings and the signing keys are the machine's.
Packages are verified by apt as always. Formats: apt.conf(5), sources.list(5), apt-cache(8) madison.
"""

from __future__ import annotations

import functools
import re
import time
from pathlib import Path
from typing import TYPE_CHECKING

from reviewbot.errors import InfraError, UsageError
from reviewbot.run import Completed, run

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reviewbot.tools.cache import Cache

SUITES = ("bookworm", "bookworm-backports", "trixie", "trixie-backports", "sid", "experimental")
_KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
_FRESH_S = 6 * 3600
_SERIES = re.compile(r"[0-9]+\.[0-9]+")
_VERSION = re.compile(r"[0-9][A-Za-z0-9.+~:-]*")
# Some suites exist only for a while; this is what apt says of one that does not.
_ABSENT = re.compile(r"not have a Release file|no longer has a Release file|404 +Not Found|File not found|^Some index")
# A list that could not be fetched is a warning when an old one is there, or when no connection was made.
_COMPLAINT = re.compile(r"^(?:E: |W: (?=Failed to fetch))(.*)", re.MULTILINE)
# How the machine reaches the network; the rest of its apt configuration (hooks, pins, further index files) is not ours.
_CARRIED = re.compile(
    r"^Acquire::(https?|socks|Retries|ForceIPv[46]|Check-Valid-Until)\b.*;$", re.MULTILINE | re.IGNORECASE
)


def parse_request(request: str) -> tuple[str, str]:
    """Split ``7.2`` or ``7.2=7.2.9-1~bpo13+1`` into series and version (empty when none); UsageError otherwise."""
    series, equals, version = request.partition("=")
    if not _SERIES.fullmatch(series) or bool(equals) != bool(version) or (version and not _VERSION.fullmatch(version)):
        msg = f"{request!r} is not a Debian kernel: expected a series like 7.2, or 7.2=VERSION"
        raise UsageError(msg)
    return series, version


def available_debian(cache: Cache, series: str, *, refresh: bool = False) -> tuple[str, ...]:
    """Return the versions of linux-source-SERIES that the mirror has, newest first; empty when it has none.

    The package lists are fetched when they are older than six hours, or when refresh is set. Raises InfraError when the
    lists cannot be read; one that could not be fetched matters only when the others have no such package.
    """
    parse_request(series)
    trouble = _update(cache, refresh=refresh)
    lines = _ask(cache, "madison", f"linux-source-{series}").splitlines()
    versions = tuple(dict.fromkeys(line.split("|")[1].strip() for line in lines if line.count("|") >= 2))
    if trouble and not versions:
        raise _unreadable(trouble)
    return versions


def available_series(cache: Cache) -> tuple[str, ...]:
    """Return the kernel series of which the mirror has a linux-source package, newest first (``("7.3", "7.2")``)."""
    _update(cache, refresh=False)
    names = _ask(cache, "pkgnames", "linux-source-").split()
    found = [name.removeprefix("linux-source-") for name in names]
    return tuple(sorted((s for s in found if _SERIES.fullmatch(s)), key=_numbers, reverse=True))


def nearest(versions: Sequence[str], wanted: str) -> str:
    """Return the version that is nearest to wanted; versions are newest first, and not empty.

    It is the next older or the next newer one by upstream version, whichever is less far away part by part (7.2.9 is
    nearer to 7.2.11 than 7.3.0 is); of equals the newer. A release candidate is before its release.
    """
    if wanted in versions:
        return wanted
    target = _numbers(wanted)
    newer = [version for version in versions if _numbers(version) > target]
    others = [version for version in versions if _numbers(version) <= target]
    neighbours = [*newer[-1:], *others[:1]]
    return min(neighbours, key=lambda v: [abs(a - b) for a, b in zip(_numbers(v), target, strict=True)])


def download(cache: Cache, series: str, version: str, directory: Path) -> Path:
    """Fetch one linux-source package into the empty directory and return the .deb; InfraError when that fails."""
    done = _apt(
        cache, "apt-get", "--quiet", "download", f"linux-source-{series}={version}", cwd=directory, timeout_s=3600
    )
    debs = list(directory.glob("*.deb"))
    if not done.ok or not debs:
        msg = f"download of linux-source-{series} {version}: {_why(done)}"
        raise InfraError(msg)
    return debs[0]


def source_tarball(deb: Path, directory: Path) -> Path:
    """Unpack a linux-source package into directory and return the tarball that it holds.

    Raises UsageError when the package holds none.
    """
    done = run(["dpkg-deb", "--extract", str(deb), str(directory)], timeout_s=600)
    if not done.ok:
        msg = f"{deb.name}: {_why(done)}"
        raise InfraError(msg)
    tarballs = sorted(directory.glob("usr/src/linux-source-*.tar.*"))
    if not tarballs:
        msg = f"{deb.name}: holds no usr/src/linux-source-*.tar.*"
        raise UsageError(msg)
    return tarballs[0]


def _numbers(version: str) -> tuple[int, int, int, int]:
    # (7, 2, 9, 0) of 7.2.9-1; the last number is negative for a release candidate.
    match = re.match(r"(?:\d+:)?(\d+)\.(\d+)(?:\.(\d+))?(?:~rc(\d+))?", version)
    if match is None:
        return 0, 0, 0, 0
    major, minor, patch, candidate = match.groups()
    return int(major), int(minor), int(patch or 0), int(candidate) - 1000 if candidate else 0


def _update(cache: Cache, *, refresh: bool) -> str:
    # Fetch the package lists when they are due; return apt's complaint when one that exists could not be fetched.
    root = cache.dir("apt")
    stamp = root / "updated"
    with cache.lock("apt"):
        if not refresh and stamp.exists() and time.time() - stamp.stat().st_mtime < _FRESH_S:
            return ""
        try:
            _configure(cache)
        except OSError as error:
            raise _unreadable(error.strerror or str(error)) from error
        done = _apt(cache, "apt-get", "--quiet", "update", timeout_s=900)
        if not any(cache.dir("apt", "state", "lists").glob("*_Packages*")):
            raise _unreadable(_why(done))
        complaints = [c for c in _COMPLAINT.findall(done.stderr) if not _ABSENT.search(c)]
        if not complaints:
            stamp.touch()
        return complaints[0] if complaints else ""


def _unreadable(why: str) -> InfraError:
    return InfraError(f"package lists of Debian: {why}")


def _configure(cache: Cache) -> None:
    root = cache.dir("apt")
    for part in ("state/lists/partial", "cache/archives/partial", "etc/parts"):
        cache.dir("apt", *part.split("/"))
    (root / "state/status").touch()
    (root / "etc/sources.list").write_text("".join(f"{_source(suite)}\n" for suite in SUITES))
    carried = _CARRIED.finditer(run(["apt-config", "dump"], timeout_s=60).stdout)
    own = {
        "Dir::Etc::main": "/dev/null",
        "Dir::Etc::parts": root / "etc/parts",
        "Dir::Etc::sourcelist": root / "etc/sources.list",
        "Dir::Etc::sourceparts": root / "etc/parts",
        "Dir::Etc::preferences": "/dev/null",
        "Dir::Etc::preferencesparts": root / "etc/parts",
        "Dir::State": root / "state",
        "Dir::State::status": root / "state/status",
        "Dir::Cache": root / "cache",
        "Dir::Cache::srcpkgcache": "",  # as large as pkgcache, and only for a changed status file
        "APT::Sandbox::User": "root",
        "Acquire::Languages": "none",
        "Acquire::Retries": "2",
        "Acquire::GzipIndexes": "true",
        "Acquire::CompressionTypes::Order::": "gz",
    }
    lines = [f'{key} "{value}";' for key, value in own.items()] + [match[0] for match in carried]
    (root / "apt.conf").write_text("\n".join(lines) + "\n")


def _source(suite: str) -> str:
    signed = f"[signed-by={_KEYRING}] " if _KEYRING.exists() else ""
    return f"deb {signed}{_mirror()} {suite} main"


@functools.cache
def _mirror() -> str:
    # The archive that the machine itself uses; not its security archive, which has no backports.
    done = run(["apt-get", "indextargets", "--format", "$(ORIGIN)|$(LABEL)|$(REPO_URI)"], timeout_s=60)
    rows = [line.split("|", 2) for line in done.stdout.splitlines() if line.count("|") >= 2]
    debian = [uri for origin, label, uri in rows if origin == "Debian" and "Security" not in label]
    likely = [uri for _, _, uri in rows if uri.rstrip("/").endswith("/debian")]
    if not (debian or likely):
        msg = "apt knows no Debian mirror: check its sources, and run apt-get update"
        raise InfraError(msg)
    return [*debian, *likely][0].rstrip("/")


def _apt(cache: Cache, program: str, *args: str, cwd: Path | None = None, timeout_s: float = 120) -> Completed:
    config = {"APT_CONFIG": str(cache.dir("apt") / "apt.conf")}
    return run([program, *args], timeout_s=timeout_s, cwd=cwd, env=config)


def _ask(cache: Cache, *args: str) -> str:
    done = _apt(cache, "apt-cache", *args)
    if not done.ok:
        raise _unreadable(_why(done))
    return done.stdout


def _why(done: Completed) -> str:
    errors = [line for line in done.stderr.splitlines() if line.startswith(("E:", "dpkg-deb: error"))]
    return (errors or done.stderr.strip().splitlines() or [f"exit status {done.exit_status}"])[-1]
