"""A kernel tree in miniature, as a git repository: enough for what reads commits and headers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from reviewbot.model import AppliedPatch, ApplyResult, ApplyState, Blame
from reviewbot.tools.git import must

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

AUTHOR = "Alex Example <alex@example.com>"


@dataclass(slots=True)
class MiniTree:
    repo: Path
    base: str = ""
    patches: list[AppliedPatch] = field(default_factory=list)

    def start(self, files: Mapping[str, str]) -> None:
        self.repo.mkdir(parents=True, exist_ok=True)
        must(self.repo, "init", "--quiet", "--initial-branch=main")
        self.base = self.commit("base\n\nSigned-off-by: Alex Example <alex@example.com>\n", files)

    def commit(self, message: str, files: Mapping[str, str | None], *, author: str = AUTHOR) -> str:
        for name, text in files.items():
            path = self.repo / name
            if text is None:
                path.unlink()
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        must(self.repo, "add", "--all")
        must(self.repo, "commit", "--quiet", "--allow-empty", f"--author={author}", "-m", message)
        return must(self.repo, "rev-parse", "HEAD")

    def patch(
        self, message: str, files: Mapping[str, str | None], *, author: str = AUTHOR, role: Blame = Blame.SERIES
    ) -> str:
        commit = self.commit(message, files, author=author)
        subject = message.splitlines()[0]
        self.patches.append(AppliedPatch(subject=subject, commit=commit, role=role, files=tuple(files)))
        return commit

    def applied(self) -> ApplyResult:
        before = [p.commit for p in self.patches if p.role is Blame.PREREQUISITE]
        return ApplyResult(
            state=ApplyState.APPLIED,
            summary="applied",
            base_commit=self.base,
            prerequisite_commit=before[-1] if before else self.base,
            tip_commit=self.patches[-1].commit if self.patches else self.base,
            patches=tuple(self.patches),
        )
