"""A miniature kernel tree: enough of kbuild for configure and build, in milliseconds.

Its Makefile knows allnoconfig, olddefconfig, bzImage and headers; lib/*.c are compiled by the real compiler. The image
is no kernel: a boot of it says that qemu did not start one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reviewbot.tools.cache import Cache
from reviewbot.tools.git import must
from reviewbot.tools.tree import Tree, add_git

if TYPE_CHECKING:
    from pathlib import Path

MAKEFILE = """\
O ?= .
OBJS := $(patsubst %.c,%.o,$(sort $(wildcard lib/*.c)))
allnoconfig:
	grep -v '=n$$' $(KCONFIG_ALLCONFIG) | grep -v CONFIG_DROPPED > $(O)/.config || true
olddefconfig:
	@:
bzImage: $(addprefix $(O)/,$(OBJS))
	@mkdir -p $(O)/arch/x86/boot $(O)/include/config
	cat $^ > $(O)/arch/x86/boot/bzImage
	touch $(O)/vmlinux
	echo 1.0.0-mini > $(O)/include/config/kernel.release
$(O)/%.o: %.c include/mini.h
	@mkdir -p $(dir $@)
	@echo '  CC      $*.o'
	@echo 'deps := $(abspath $<) include/mini.h' > $(dir $@).$(notdir $@).cmd
	@$(CC) -Wall -Iinclude -c -o $@ $<
headers:
	@mkdir -p $(O)/usr/include && cp -r include/uapi/. $(O)/usr/include/
"""
UAPI = """\
enum perf_event_sample_format {
	PERF_SAMPLE_IP				= 1U << 0,

	PERF_SAMPLE_MAX = 1U << 1,		/* non-ABI */
};
"""
FILES = {
    "Makefile": MAKEFILE,
    "Kconfig": 'config MINI\n\tbool "mini"\n\nconfig DROPPED\n\tbool "gone"\n\tdepends on ABSENT\n',
    "Documentation/mini.rst": "Mini\n====\n\nA tree.\n",
    "include/mini.h": "int one(void);\nint two(void);\n",
    "include/uapi/linux/perf_event.h": UAPI,
    "lib/one.c": '#include "mini.h"\n\nint one(void)\n{\n\treturn 1;\n}\n',
    "lib/two.c": '#include "mini.h"\n\nint two(void)\n{\n\tint unused_here;\n\n\treturn 2;\n}\n',
}


def make_repo(path: Path, files: dict[str, str] = FILES) -> Path:
    """Make a git repository with one commit."""
    path.mkdir(parents=True)
    must(path, "init", "--quiet", "--initial-branch=main")
    commit(path, files, "mini: start")
    return path


def commit(repo: Path, files: dict[str, str], subject: str) -> str:
    """Write the files, commit them, and return the commit id."""
    for name, text in files.items():
        file = repo / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    must(repo, "add", "--all")
    must(repo, "commit", "--quiet", "--message", f"{subject}\n\nSigned-off-by: Alex Example <alex@example.com>")
    return must(repo, "rev-parse", "HEAD")


def patch_of(repo: Path, base: str) -> str:
    """Return the commits after base as one mbox."""
    return must(repo, "format-patch", "--stdout", f"{base}..HEAD") + "\n"


def add_tree(tmp_path: Path) -> tuple[Cache, Tree, Path]:
    """Return a cache that holds the miniature tree as ``mini``, the tree, and the repository that it came from."""
    repo = make_repo(tmp_path / "origin")
    cache = Cache(tmp_path / "cache")
    return cache, add_git(cache, "mini", repo), repo
