#!/bin/sh
# From a fresh Debian 12 or 13 to a finished review, or to finished tests. It can be run again at any time: what is there
# is kept, and what was interrupted is continued.
#
#   ./bootstrap.sh demo              review the packaged example on a Debian kernel
#   ./bootstrap.sh test              static gates and quick tests
#   ./bootstrap.sh test --kernel     the same, then the tests that build and boot kernels
set -eu
cd "$(dirname "$0")"

usage="usage: ./bootstrap.sh demo | test [--kernel]"

# Without these nothing works. libc6-dev is only a recommendation of gcc; perl is checkpatch and more than perl-base.
needed="bc bison busybox-static ca-certificates cpio file flex gcc git kmod libc6-dev libelf-dev libssl-dev make perl
qemu-system-x86 rsync xz-utils"
# Without these a review is slower or knows less, and `reviewbot doctor` says what is lost.
useful="ccache pahole sparse"
# The reports' screenshot tests.
useful_for_test="chromium"

say() { printf '%s\n' "bootstrap: $*"; }

fail() {
    printf '%s\n' "bootstrap: $*" >&2
    exit 2
}

have_venv() { python3 -c 'import ensurepip, venv' 2>/dev/null; }

# Print those of the named packages that are not installed.
missing() {
    for package in "$@"; do
        case $(dpkg-query -W -f '${db:Status-Abbrev}' "$package" 2>/dev/null) in
            ii*) ;;
            *) printf '%s ' "$package" ;;
        esac
    done
}

has_candidate() { apt-cache policy "$1" 2>/dev/null | grep -q '^ *Candidate: [^(]'; }

apt() { DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=300 "$@"; }

install_packages() {
    if ! command -v apt-get >/dev/null; then
        say "this is not Debian; these must be installed by other means: $needed $useful"
        return
    fi
    # shellcheck disable=SC2086 # lists of words
    must=$(missing $needed) may=$(missing $useful)
    have_venv || must="python3-venv $must"
    if [ -z "$must$may" ]; then
        return
    fi
    must=${must% } may=${may% }
    say "Debian packages to install: $must${must:+ }$may"
    if [ "$(id -u)" != 0 ]; then
        command="apt-get install --no-install-recommends $must${must:+ }$may"
        [ -n "$must" ] || {
            say "going on without them; as root: $command"
            return
        }
        fail "needs root, once:  sudo sh -c 'apt-get update && $command'"
    fi
    if [ -n "$(dpkg --audit)" ]; then
        DEBIAN_FRONTEND=noninteractive dpkg --configure -a
    fi
    apt update || say "not every package list could be read; trying with those that are there"
    for package in $may; do
        if has_candidate "$package"; then
            must="$must $package"
        else
            say "this Debian has no $package; going on without it"
        fi
    done
    # shellcheck disable=SC2086 # a list of words
    apt install -y --no-install-recommends $must
}

# The virtual environment is made again when Python or this directory changed, and filled again when pyproject.toml did.
make_venv() {
    command -v python3 >/dev/null || fail "needs python3 (3.11 or later)"
    python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
        fail "needs Python 3.11 or later; $(command -v python3) is $(python3 -V)"
    place="$(python3 -V) $(command -v python3) $PWD"
    if [ "$(cat .venv/made-for 2>/dev/null)" != "$place" ] || ! .venv/bin/python -c 'import pip' 2>/dev/null; then
        say "making .venv"
        python3 -m venv --clear .venv
        printf '%s\n' "$place" >.venv/made-for
    fi
    wanted=$(cksum <pyproject.toml)
    if [ "$(cat .venv/filled-for 2>/dev/null)" != "$wanted" ]; then
        say "installing reviewbot and its libraries into .venv"
        .venv/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
        printf '%s\n' "$wanted" >.venv/filled-for
    fi
}

# Each gate runs, also after one that failed.
gate() {
    say "$*"
    program=$1
    shift
    ".venv/bin/$program" "$@" || failed="$failed $program"
}

case "${1-} ${2-}" in
    "demo " | "demo -"*) ;;
    "test " | "test --kernel") useful="$useful $useful_for_test" ;;
    *) fail "$usage" ;;
esac
install_packages
make_venv
if [ "$1" = demo ]; then
    exec .venv/bin/reviewbot "$@"
fi
failed=
gate ruff check
gate ruff format --check
gate mypy
gate pytest -n 2 --dist loadfile
if [ "${2-}" = --kernel ]; then
    gate pytest -m kernel
fi
if [ -n "$failed" ]; then
    say "failed:$failed"
    exit 1
fi
say "all passed"
