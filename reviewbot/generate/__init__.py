"""Generated kselftests: from a series' UAPI and diff to C sources. Pure: nothing is read but package data.

The way through it::

    specs = load_specs()                                       # kselftest: the packaged TOML
    scope = find_scope(base_header, patched_header, diff, specs)   # scope: which sample types
    files = render_kselftest(scope, specs)                     # kselftest: relative path → content
    names = programs(scope, specs)                             # the programs to run, in order

``diff`` is the normalised ``git diff -W base..patched``; the headers are the text of
include/uapi/linux/perf_event.h in both trees. The directory is called kselftest.DIRECTORY and builds with
``make -C DIR KHDR_INCLUDES="-isystem HEADERS/usr/include" OUTPUT=OUT``: static programs OUT/NAME.

A program prints KTAP on stdout and takes ``--kernel=base|patched|plain``. Case names are the same on every kernel. The
guest mounts proc and, at /sys/kernel/tracing, tracefs; it runs the programs as root with perf_event_paranoid at -1.
"""
