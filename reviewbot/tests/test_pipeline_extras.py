"""Whole reviews with further kernels on the miniature tree; the machine reads what a kernel would do from its image."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import jsonschema

from reviewbot.errors import InfraError
from reviewbot.model import Report, Status, VerdictKind
from reviewbot.pipeline import review
from reviewbot.progress import Progress
from reviewbot.report.html import render_html
from reviewbot.report.results import parse_results, results_schema
from reviewbot.request import Request
from reviewbot.tests.extrabench import SYMBOLS, TREE, Runner
from reviewbot.tests.minitree import FILES, commit, make_repo, patch_of
from reviewbot.tools.cache import Cache
from reviewbot.tools.git import must
from reviewbot.tools.tree import add_git

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from reviewbot.tools.vng import Boot

VARIED = FILES["lib/one.c"] + "#ifndef CONFIG_EXTRA\nint without_extra;\n#endif\n"
SPLAT = VARIED.replace("int without_extra;", 'const char marked[] = "mark:splat";')


class Stopped(Runner):
    """Somebody presses Ctrl-C while a kernel of stage variants boots."""

    def boot(self, image: Path, share: Path, log: Path, **more: object) -> Boot:
        if "variants" in str(log):
            raise KeyboardInterrupt
        return super().boot(image, share, log, **more)


class Failing(Runner):
    """The machine fails while a kernel of stage variants boots."""

    def boot(self, image: Path, share: Path, log: Path, **more: object) -> Boot:
        if "variants" in str(log):
            msg = "qemu is gone"
            raise InfraError(msg)
        return super().boot(image, share, log, **more)


def run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, machine: type[Runner] = Runner, **more: object
) -> tuple[Report, Path]:
    monkeypatch.setattr("reviewbot.pipeline.Machine", machine)
    repo = make_repo(tmp_path / "origin", TREE)
    base = must(repo, "rev-parse", "HEAD")
    cache = Cache(tmp_path / "cache")
    add_git(cache, "mini", repo)
    commit(repo, {"lib/one.c": text}, "lib: change it")
    series, fragment = tmp_path / "series.mbox", tmp_path / "mini.config"
    series.write_text(patch_of(repo, base))
    fragment.write_text("".join(f"# a test\nCONFIG_{s}=y\n" for s in SYMBOLS))
    known: dict[str, object] = {
        "source": str(series),
        "tree": "mini",
        "fragments": (str(fragment),),
        "out": tmp_path / "out",
        "command": "reviewbot review",
    }
    with Progress(quiet=True) as progress:
        return review(Request(**(known | more)), cache, progress)  # type: ignore[arg-type]  # free-form options


def stage_of(report: Report, name: str) -> tuple[Status, str]:
    return next((s.status, s.summary) for s in report.stages if s.stage == name)


def doubts(report: Report) -> list[str]:
    """Return what the answer says of the further kernels."""
    return [r for r in report.reasons if r.startswith(("variants", "coverage", "debug")) and "no test" not in r]


def test_the_further_kernels_come_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    report, out = run(tmp_path, monkeypatch, VARIED, debug=True, coverage=True)
    assert [s.stage for s in report.stages][-5:] == ["boot", "selftest", "variants", "coverage", "debug"]
    assert stage_of(report, "variants") == (
        Status.PASS,
        "with CONFIG_EXTRA=n: patched builds and boots; no test was compiled",
    )
    assert stage_of(report, "coverage") == (Status.SKIP, "no test was compiled")
    assert stage_of(report, "debug")[0] is Status.PASS
    assert doubts(report) == []
    page = (out / "index.html").read_text()
    for words in ("variants", "CONFIG_EXTRA=n", "debug kernel"):
        assert words in page
    assert render_html(parse_results((out / "results.json").read_text())) == page
    for stage in report.stages:
        assert [log.path for log in stage.logs if not (out / log.path).exists()] == []


def test_what_a_variant_shows_decides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    report, out = run(tmp_path, monkeypatch, SPLAT)
    assert stage_of(report, "boot")[0] is Status.PASS
    assert stage_of(report, "variants")[0] is Status.FAIL
    assert report.verdict is VerdictKind.FAIL
    assert any("CONFIG_EXTRA=n: WARNING at lib/one.c" in reason for reason in report.reasons)
    saved = (out / "results.json").read_text()
    jsonschema.Draft202012Validator(results_schema()).validate(json.loads(saved))
    assert parse_results(saved).stages == report.stages


def test_ctrl_c_while_a_variant_boots(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    report, out = run(tmp_path, monkeypatch, VARIED, machine=Stopped, debug=True)
    saved = json.loads((out / "results.json").read_text())
    assert saved["run"]["stopped_by"] == "SIGINT"
    assert saved["verdict"] == "inconclusive"
    last = saved["stages"][-1]
    assert (last["stage"], last["status"]) == ("variants", "error")
    assert last["summary"].startswith("stopped by SIGINT")
    assert report.verdict is VerdictKind.INCONCLUSIVE


def test_a_machine_that_fails_there_is_a_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    report, _ = run(tmp_path, monkeypatch, VARIED, machine=Failing)
    assert stage_of(report, "variants") == (Status.ERROR, "the machine failed: qemu is gone")
    assert doubts(report) == ["variants did not finish: the machine failed: qemu is gone"]
    assert report.verdict is VerdictKind.WARN


def test_what_does_not_build_has_no_further_kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    report, _ = run(tmp_path, monkeypatch, VARIED.replace("return 1;", "return 1"), debug=True)
    for name in ("variants", "debug"):
        assert stage_of(report, name) == (Status.SKIP, "not run: no kernel to boot")
    assert [s.required for s in report.stages if s.stage in ("variants", "debug")] == [False, False]


def test_nothing_to_vary_is_no_doubt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    report, _ = run(tmp_path, monkeypatch, FILES["lib/one.c"].replace("return 1", "return 0 + 1"))
    assert stage_of(report, "variants") == (Status.SKIP, "no Kconfig symbol decides about a line that the series adds")
    assert doubts(report) == ["variants did not run: no Kconfig symbol decides about a line that the series adds"]
