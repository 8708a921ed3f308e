"""tools/make.py: what ccache keeps never stands for something else."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from reviewbot.tools.make import Make, compiler

if TYPE_CHECKING:
    from pathlib import Path

MAKEFILE = """\
all: image.o
image.o: ../source/image.S image.bin
\t$(CC) -Wp,-MMD,$@.d -D__ASSEMBLY__ -c -o $@ $<
"""


@pytest.mark.skipif(not shutil.which("ccache"), reason="no ccache")
def test_what_an_assembly_source_includes_is_compiled_again(tmp_path: Path) -> None:
    # arch/x86/boot/compressed/piggy.S: two compressed kernels of the same size make the same text of it.
    source, build = tmp_path / "source", tmp_path / "build"
    source.mkdir()
    build.mkdir()
    (source / "Makefile").write_text(f"%:\n\t$(MAKE) -C {build} -f {source}/Makefile.build $@\n")
    (source / "Makefile.build").write_text(MAKEFILE)
    (source / "image.S").write_text('\t.section ".rodata..compressed","a"\n\t.incbin "image.bin"\n')
    make = Make(
        source=source, build=build, compiler=compiler(), ccache_dir=tmp_path / "ccache", log=tmp_path / "make.log"
    )
    for content in (b"the kernel of base", b"that of the series"):
        (build / "image.o").unlink(missing_ok=True)
        (build / "image.bin").write_bytes(content)
        done = make("all")
        assert done.ok, done.output
        assert content in (build / "image.o").read_bytes()
