"""An index of a public-inbox archive: which mail has which id, answers what, carries which change-id and patch-id.

In: an inbox. Out: whole threads, and patches by message id, change-id or patch id. The index is an SQLite file beside
the cache; it grows with the archive, reads each mail once, and can be deleted at any time.
"""

from __future__ import annotations

import contextlib
import hashlib
import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING

from reviewbot.errors import InfraError, UsageError
from reviewbot.parse.attached import read_mails
from reviewbot.parse.footers import parse_footers
from reviewbot.parse.light import read_light
from reviewbot.parse.patchid import patch_id
from reviewbot.tools.cache import Cache, default_root
from reviewbot.tools.git import git_bytes
from reviewbot.tools.inbox import epochs, mails_of
from reviewbot.tools.objects import read_objects

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from reviewbot.parse.patch import Mail

    # Number, epoch, object id, message id.
    _Row = tuple[int, str, str, str]
    # Of one patch or mail: message id, change-id, patch id, what it answers.
    _Entry = tuple[str, str, str, tuple[str, ...]]


_SCHEMA = """
CREATE TABLE IF NOT EXISTS epoch (path TEXT PRIMARY KEY, head TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS mail (id INTEGER PRIMARY KEY, epoch TEXT NOT NULL, oid TEXT NOT NULL, msgid TEXT NOT NULL,
  change_id TEXT NOT NULL, patch_id TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS parent (mail INTEGER NOT NULL, msgid TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS mail_msgid ON mail (msgid);
CREATE INDEX IF NOT EXISTS mail_change ON mail (change_id) WHERE change_id != '';
CREATE INDEX IF NOT EXISTS mail_patch ON mail (patch_id) WHERE patch_id != '';
CREATE INDEX IF NOT EXISTS parent_msgid ON parent (msgid);
CREATE INDEX IF NOT EXISTS parent_mail ON parent (mail);
"""
_MOST_IN_THREAD = 5000


def thread_of(inbox: Path, msgid: str, index: Path | None = None) -> list[Mail]:
    """Return every mail of the thread that msgid is part of. Raises UsageError when the inbox does not have it."""
    with opened(inbox, index) as table:
        mails = table.thread([msgid])
    if not mails:
        msg = f"{msgid}: not in the inbox {inbox}"
        raise UsageError(msg)
    return mails


@contextlib.contextmanager
def opened(inbox: Path, index: Path | None = None) -> Iterator[InboxIndex]:
    """Open the index of an inbox, brought up to date first. index is its file; in the cache otherwise."""
    repos = epochs(inbox)
    if index is None:
        name = hashlib.sha256(str(inbox.resolve()).encode()).hexdigest()[:16]
        index = Cache(default_root()).dir("inboxes") / f"{name}.sqlite"
    try:
        with contextlib.closing(sqlite3.connect(index)) as database:
            database.executescript(_SCHEMA)
            table = InboxIndex(database)
            for repo in repos:
                table.update(repo)
            yield table
    except sqlite3.Error as error:
        msg = f"{index}: {error}"
        raise InfraError(msg) from error


class InboxIndex:
    """The open index; see opened()."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._db = database

    def update(self, repo: Path) -> None:
        """Read the mails that came to this epoch since the last time."""
        head = git_bytes(repo, "rev-parse", "HEAD").decode().strip()
        known = self._db.execute("SELECT head FROM epoch WHERE path = ?", (str(repo),)).fetchone()
        if known and known[0] == head:
            return
        since = known[0] if known else ""
        with self._db:
            for oid, entries in mails_of(repo, _entries, since=since):
                self._add(repo, oid, entries or ())
            self._db.execute("INSERT OR REPLACE INTO epoch VALUES (?, ?)", (str(repo), head))

    def _add(self, repo: Path, oid: str, entries: Sequence[_Entry]) -> None:
        for msgid, change, identity, parents in entries:
            row = (str(repo), oid, msgid, change, identity)
            cursor = self._db.execute(
                "INSERT INTO mail (epoch, oid, msgid, change_id, patch_id) VALUES (?,?,?,?,?)", row
            )
            self._db.executemany("INSERT INTO parent VALUES (?, ?)", [(cursor.lastrowid, p) for p in parents])

    def thread(self, msgids: Sequence[str]) -> list[Mail]:
        """Return the mails that are connected with the ids through References and In-Reply-To, oldest first."""
        wanted = set(msgids)
        rows: dict[int, _Row] = {}
        fresh = set(msgids)
        while fresh and len(rows) < _MOST_IN_THREAD:
            found: dict[int, _Row] = {}
            for one in fresh:
                found |= {r[0]: r for r in self._rows(one)}
            found = {key: row for key, row in found.items() if key not in rows}
            rows |= found
            around = {row[3] for row in found.values()} | {p for key in found for p in self._parents(key)}
            fresh = {one for one in around if one and one not in wanted}
            wanted |= fresh
        return self._mails([rows[key] for key in sorted(rows)])

    def by_change_id(self, change_id: str) -> list[str]:
        """Return the message ids of the mails with this change-id."""
        return [r[0] for r in self._db.execute("SELECT msgid FROM mail WHERE change_id = ? ORDER BY id", (change_id,))]

    def by_patch_id(self, identity: str) -> list[Mail]:
        """Return the patches with this stable patch id, oldest first."""
        query = "SELECT id, epoch, oid, msgid FROM mail WHERE patch_id = ? ORDER BY id"
        return self._mails(self._db.execute(query, (identity,)).fetchall())

    def _rows(self, msgid: str) -> list[_Row]:
        query = (
            "SELECT id, epoch, oid, msgid FROM mail WHERE msgid = ? UNION "
            "SELECT mail.id, epoch, oid, mail.msgid FROM mail "
            "JOIN parent ON parent.mail = mail.id WHERE parent.msgid = ?"
        )
        return self._db.execute(query, (msgid, msgid)).fetchall()

    def _parents(self, mail: int) -> list[str]:
        return [row[0] for row in self._db.execute("SELECT msgid FROM parent WHERE mail = ?", (mail,))]

    def _mails(self, rows: Sequence[_Row]) -> list[Mail]:
        mails = []
        for epoch in dict.fromkeys(row[1] for row in rows):
            oids = list(dict.fromkeys(row[2] for row in rows if row[1] == epoch))
            found = read_objects(Path(epoch), oids)
            mails += [mail for one in found if one is not None for mail in read_mails(one.data)]
        return mails


def _entries(raw: bytes) -> list[_Entry]:
    return [_entry(mail) for mail in read_light(raw)]


def _entry(mail: Mail) -> _Entry:
    change = parse_footers([mail.patch.message, mail.below]).change_id if mail.kind in ("patch", "cover") else ""
    identity = patch_id(mail.patch.diff) if mail.kind == "patch" else ""
    return mail.patch.msgid, change, identity, mail.parents
