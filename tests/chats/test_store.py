"""The shelf: files are opened when they changed, never written, and one that is bad hides no other."""

from __future__ import annotations

import asyncio
import builtins
import hashlib
import io
import json
import os
import shutil
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from chats.conftest import Now
from chats.makers import OLD, START, Home, append, log, push, put, request, session, whole, write
from pegboard.exactjson import NotJson
from pegboard.storage import Database
from pegboard.toolsets.chats import fields
from pegboard.toolsets.chats import reader as reader_module
from pegboard.toolsets.chats import reading as reading_module
from pegboard.toolsets.chats.chats import Chats, NotThere
from pegboard.toolsets.chats.table import ChatTable, Packed
from pegboard.toolsets.chats.tools import chat_tools

pytestmark = pytest.mark.anyio


class Opened:
    """Which files of the user were opened, and how much was read of them."""

    def __init__(self, home: Home) -> None:
        self.home = str(home.folder)
        self.paths: list[str] = []
        self.bytes = 0


class _Counted(io.BufferedReader):
    def __init__(self, raw: Any, opened: Opened) -> None:
        super().__init__(raw)
        self._opened = opened

    def read(self, size: int | None = -1, /) -> bytes:
        data = super().read(size)
        self._opened.bytes += len(data)
        return data

    def readline(self, size: int | None = -1, /) -> bytes:
        line = super().readline(-1 if size is None else size)
        self._opened.bytes += len(line)
        return line


@contextmanager
def watched(home: Home, monkeypatch: pytest.MonkeyPatch) -> Generator[Opened]:
    """Count every file below that home that is opened in any way."""
    opened = Opened(home)
    os_open, os_fdopen, plain = os.open, os.fdopen, builtins.open

    def note(path: Any) -> None:
        if isinstance(path, (str, os.PathLike)) and os.fspath(path).startswith(opened.home):
            opened.paths.append(os.fspath(path))

    def counted_open(path: Any, *args: Any, **more: Any) -> int:
        note(path)
        return os_open(path, *args, **more)

    def counted_fdopen(descriptor: int, mode: str, *args: Any, **more: Any) -> Any:
        del args, more
        return _Counted(io.FileIO(descriptor, mode.replace("b", "")), opened)

    def counted_plain(path: Any, *args: Any, **more: Any) -> Any:
        note(path)
        return plain(path, *args, **more)

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", counted_open)
        patch.setattr(os, "fdopen", counted_fdopen)
        patch.setattr(builtins, "open", counted_plain)
        yield opened
    assert os.fdopen is os_fdopen


async def texts(chats: Chats, session_id: str) -> list[str]:
    found = await chats.session(session_id)
    return [each.text for each in await chats.requests(found)]


async def test_what_was_read_is_kept_in_database(home: Home, database: Database, now: Now) -> None:
    """Another process, later, answers everything without opening a file."""
    home.chat("one", session("first\0 of \ud83d one", "second"))
    home.chat("two", log(whole(session("third"))), workspace="w2", folder=None)
    first = Chats(database, home.sources(), clock=now)
    before = await first.list()
    assert (await first.search("third")).total == 1
    await first.close()
    second = Chats(database, home.sources(), clock=now)
    with pytest.MonkeyPatch.context() as patch, watched(home, patch) as opened:
        assert await second.list() == before
        assert await texts(second, "one") == ["first\0 of \ufffd one", "second"]
        assert (await second.search("third")).total == 1
        assert await second.newest() is not None
    assert opened.paths == []
    await second.close()


async def test_changes_are_seen_and_only_they_are_read(chats: Chats, home: Home, now: Now) -> None:
    """A file that was written anew, one that is new, one that is gone."""
    one = home.chat("one", session("first"))
    home.chat("two", session("second"))
    assert (await chats.list()).total == 2
    write(one, b'{"requests": [{"message": "changed"}]}', OLD + 5)
    home.chat("three", session("third"))
    (one.parent / "two.json").unlink()
    now.later()
    with pytest.MonkeyPatch.context() as patch, watched(home, patch) as opened:
        page = await chats.list()
    assert sorted(each.session_id for each in page.items) == ["one", "three"]
    # What tells the folder of a workspace was written anew as well.
    assert sorted(Path(path).name for path in opened.paths) == ["one.json", "three.json", "workspace.json"]
    assert await texts(chats, "one") == ["changed"]
    with pytest.raises(NotThere, match="Session not found: two"):
        await chats.session("two")


async def test_a_deleted_chat_is_forgotten(database: Database, home: Home, now: Now) -> None:
    """Nothing of its text stays, in words or otherwise; so it is when everything is cleared."""
    chats = Chats(database, home.sources(), clock=now)
    path = home.chat("one", session("quokka"))
    home.chat("two", session("quokka"))
    assert (await chats.search("quokka")).total == 2
    path.unlink()
    now.later()
    assert (await chats.search("quokka")).total == 1
    await chats.clear()

    def rows(connection: Any) -> list[int]:
        return [
            connection.row(f"SELECT count(*) FROM {table}")[0]
            for table in ("chat_files", "chat_requests", "chat_words")
        ]

    assert await database.read(rows) == [0, 0, 0]
    assert (await chats.search("quokka")).total == 1
    await chats.close()


async def test_a_log_that_grows_is_read_on(chats: Chats, home: Home) -> None:
    """Of a long log, only what came since, and a little to see that it is still the same."""
    path = home.chat("one", log(whole(session("first", padding="x" * 500_000))))
    assert await texts(chats, "one") == ["first"]
    append(path, log(push(["requests"], request("second", 2)))[:-20])
    with pytest.MonkeyPatch.context() as patch, watched(home, patch) as opened:
        assert await texts(chats, "one") == ["first"]
    assert 0 < opened.bytes < 30_000
    path.write_bytes(log(whole(session("anew", padding="y" * 500_000)), push(["requests"], request("more", 2))))
    assert await texts(chats, "one") == ["anew", "more"]


async def test_a_log_that_was_half_written_is_whole_later(chats: Chats, home: Home) -> None:
    """The last line counts as soon as it is there."""
    line = log(push(["requests"], request("second", 2)))
    path = home.chat("one", log(whole(session("first"))) + line[:50])
    assert await texts(chats, "one") == ["first"]
    append(path, line[50:])
    assert await texts(chats, "one") == ["first", "second"]
    assert (await chats.session("one")).problem is None


async def test_a_damaged_log_tells_what_is_good(chats: Chats, home: Home) -> None:
    """Up to the broken line, which its record reports."""
    home.chat("one", log(whole(session("first"))) + b"garbage\n" + log(push(["requests"], request("second", 2))))
    assert await texts(chats, "one") == ["first"]
    assert "broken" in ((await chats.session("one")).problem or "")


async def test_a_file_caught_while_it_is_written_keeps_what_was_known(chats: Chats, home: Home) -> None:
    """A document cut short is no reason to forget the one before; the next look has it."""
    path = home.chat("one", session("first"))
    assert await texts(chats, "one") == ["first"]
    whole_text = path.read_bytes()
    write(path, whole_text[:100], OLD + 1)
    assert await texts(chats, "one") == ["first"]
    assert (await chats.session("one")).problem is not None
    write(path, whole_text.replace(b"first", b"later"), OLD + 2)
    assert await texts(chats, "one") == ["later"]
    assert (await chats.session("one")).problem is None


async def test_a_file_changed_within_a_tick_of_the_clock_is_read_again(chats: Chats, home: Home) -> None:
    """Same size, same time: what was read just after a change is not trusted."""
    path = home.chat("one", session("first"))
    os.utime(path)
    stamp = path.stat().st_mtime_ns
    assert await texts(chats, "one") == ["first"]
    path.write_bytes(path.read_bytes().replace(b"first", b"other"))
    os.utime(path, ns=(stamp, stamp))
    assert await texts(chats, "one") == ["other"]


BAD: dict[str, bytes] = {
    "empty.json": b"",
    "empty.jsonl": b"",
    "binary.json": bytes(range(256)) * 40,
    "binary.jsonl": bytes(range(256)) * 40,
    "zeros.json": b"\0" * 10_000,
    "zeros.jsonl": b"\0" * 10_000,
    "list.json": b"[1, 2]",
    "text.json": b'"requests"',
    "cut.json": b'{"version": 3, "requests": [{"mess',
    "deep.json": b'{"requests":' + b"[" * 100_000,
    "deep.jsonl": b'{"kind":0,"v":' + b"[" * 100_000 + b"\n",
    "numbers.json": b'{"requests": ' + b"9" * 10_000 + b"}x",
}


async def test_a_file_that_is_too_large_says_so_and_hides_no_other(
    chats: Chats, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A document, or a line of a log, over the limit is never parsed; of a log, what stands before it is a chat."""
    monkeypatch.setattr(reading_module, "LARGEST_WHOLE", 20_000)
    home.chat("good", session("quokka"))
    home.chat("large", session("x" * 30_000))
    long = log(whole(session("x" * 30_000)))
    home.chat("long", long)
    home.chat("later", log(whole(session("wombat"))) + long)
    with capture_logs() as logs:
        found = {each.session_id: each.problem for each in (await chats.list()).items}
    assert found["good"] is None
    assert (await chats.search("quokka")).total == 1
    assert (await chats.search("wombat")).total == 1
    assert "more than 20,000 bytes" in str(found["later"])
    told = {Path(entry["path"]).stem: entry["reason"] for entry in logs if entry["event"].startswith("chats.file.")}
    assert told.keys() == {"large", "long", "later"}
    assert all("more than 20,000 bytes" in reason for reason in told.values())


def test_a_large_text_is_parsed_in_parts_and_means_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """No other thread runs while a text is parsed: no part of it is larger than a bound, save one long string."""
    monkeypatch.setattr(fields, "_PART", 100)
    sizes: list[int] = []
    at_once = fields._at_once

    def parsed(data: bytes) -> Any:
        sizes.append(len(data))
        return at_once(data)

    monkeypatch.setattr(fields, "_at_once", parsed)
    value = {"a": [{"b": "é" * 10, "c": [1, None, 1.5]}] * 50, "d": {"e": ["x"] * 100}, "": "y"}
    assert fields.parse_json(json.dumps(value, indent=1).encode()) == value
    assert max(sizes) <= 100
    assert len(sizes) > 50
    for odd, meant in (
        (b"NaN", None),
        (b'"\xff"', "\N{REPLACEMENT CHARACTER}"),
        (b'"\\ud800"', "\N{REPLACEMENT CHARACTER}"),
    ):
        assert fields.parse_json(b'{"a": [' + b"1, " * 100 + odd + b"]}")["a"][100] == meant
    with pytest.raises(NotJson):
        fields.parse_json(b"[" * 5_000)


async def test_no_bad_file_hides_the_others(chats: Chats, home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """Empty, binary, cut, nested without end, too large, forbidden, or of a kind nobody thought of."""
    good = home.chat("good", session("quokka"))
    for name, data in BAD.items():
        write(good.parent / name, data)
    os.truncate(write(good.parent / "huge.json", b""), reading_module.MOST_BYTES + 1)
    forbidden = write(good.parent / "forbidden.json", b"{}")
    opening = reading_module.open_to_read

    def open_to_read(path: str) -> Any:
        # A test may run as root, who may read everything.
        if path == str(forbidden):
            raise PermissionError(13, "Permission denied")
        return opening(path)

    monkeypatch.setattr(reader_module, "open_to_read", open_to_read)
    assert [each.session_id for each in (await chats.list()).items] == ["good"]
    assert (await chats.search("quokka")).total == 1
    newest = await chats.newest()
    assert newest is not None
    assert newest.session_id == "good"
    for name in (*BAD, "huge.json", "forbidden.json"):
        found = await chats.session(Path(name).stem)
        assert found.chat_json_path is None
        assert found.problem


def test_a_file_may_be_as_large_as_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And not larger."""
    monkeypatch.setattr(reading_module, "MOST_BYTES", 10)
    path = write(tmp_path / "a.json", b"x" * 10)
    with reading_module.open_to_read(str(path)) as file:
        assert file.read() == b"x" * 10
    write(path, b"x" * 11)
    with pytest.raises(reading_module.UnreadableChat, match="it has 11 bytes, 10 is the most"):
        reading_module.open_to_read(str(path))


@pytest.mark.parametrize("fault", [OSError(24, "Too many open files"), PermissionError(13, "no"), MemoryError()])
async def test_what_passes_is_not_held_against_a_file(
    home: Home, database: Database, now: Now, monkeypatch: pytest.MonkeyPatch, fault: Exception
) -> None:
    """A file that could not be opened once is read as soon as it can be, in this process and in the next."""
    home.chat("one", session("first"))
    chats = Chats(database, home.sources(), clock=now)

    def refuse(_: str) -> Any:
        raise fault

    with monkeypatch.context() as patch:
        patch.setattr(reader_module, "open_to_read", refuse)
        assert (await chats.session("one")).problem
    other = Chats(database, home.sources(), clock=now)
    assert await texts(other, "one") == ["first"]
    now.later(3)
    assert await texts(chats, "one") == ["first"]
    assert (await chats.session("one")).problem is None
    await chats.close()
    await other.close()


async def test_what_is_wrong_with_a_file_is_logged_once(chats: Chats, home: Home, now: Now) -> None:
    """However often it is looked at, and though it grows; another reason is another line."""
    damaged = home.chat("one", log(whole(session("first"))) + b"garbage\n" + log(whole(session("second"))))
    broken = home.chat("two", b"nothing")
    with capture_logs() as logged:
        for _ in range(3):
            await chats.list()
            now.later()
            append(damaged, b"more\n")
            append(broken, b"more")
    assert sorted(entry["event"] for entry in logged) == ["chats.file.damaged", "chats.file.unreadable"]


async def test_a_file_of_a_time_that_nothing_can_keep_hides_no_other(chats: Chats, home: Home) -> None:
    """Beyond the year 2262 its nanoseconds have more than 63 bits."""
    home.chat("good", session("first"))
    far = home.chat("far", session("second"))
    os.utime(far, ns=(13_569_465_600 * 10**9, 13_569_465_600 * 10**9))
    assert far.stat().st_mtime_ns > 1 << 63
    assert {each.session_id for each in (await chats.list()).items} == {"good", "far"}
    assert await texts(chats, "far") == ["second"]


async def test_of_a_chat_that_grows_only_what_is_new_is_indexed(
    chats: Chats, home: Home, now: Now, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was asked before stays in the index as it is."""
    path = home.chat("one", session("first", "second"))
    assert (await chats.search("second")).total == 1
    indexed: list[int] = []
    put_words = ChatTable.put_words
    monkeypatch.setattr(
        ChatTable, "put_words", lambda self, number, *rest: indexed.append(number) or put_words(self, number, *rest)
    )
    write(path, json.dumps(session("first", "second", "third")).encode())
    now.later()
    assert (await chats.search("third")).total == 1
    assert len(indexed) == 1


async def test_what_cannot_be_kept_hides_no_other(
    chats: Chats, home: Home, now: Now, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a batch that cannot be written each file is written by itself; the one at fault is tried again later."""
    home.chat("one", session("first"))
    home.chat("two", session("second"))
    put_row = ChatTable.put

    def refuse(self: Any, path: str, *rest: Any) -> Any:
        if path.endswith("one.json"):
            raise OverflowError
        return put_row(self, path, *rest)

    with monkeypatch.context() as patch:
        patch.setattr(ChatTable, "put", refuse)
        assert [each.session_id for each in (await chats.list()).items] == ["two"]
        assert (await chats.session("one")).problem == "OverflowError"
    now.later()
    assert (await chats.list()).total == 2


@pytest.mark.parametrize("known", [False, True])
async def test_an_older_reading_never_replaces_a_newer_one(
    home: Home, database: Database, now: Now, monkeypatch: pytest.MonkeyPatch, *, known: bool
) -> None:
    """Of two processes the slower one sees that the other has read more, and takes that."""
    path = home.chat("one", log(whole(session("first"))))
    slow, quick = (Chats(database, home.sources(), clock=now) for _ in range(2))
    if known:
        assert await texts(slow, "one") == await texts(quick, "one") == ["first"]
        append(path, log(put(["customTitle"], "Mine")))
    has_read, may_write = asyncio.Event(), asyncio.Event()
    keep = slow.store._keep

    async def hesitating(readings: Any) -> Any:
        has_read.set()
        await may_write.wait()
        return await keep(readings)

    monkeypatch.setattr(slow.store, "_keep", hesitating)
    asking = asyncio.create_task(texts(slow, "one"))
    await has_read.wait()
    append(path, log(push(["requests"], request("second", 2))))
    assert await texts(quick, "one") == ["first", "second"]
    may_write.set()
    assert await asking == ["first", "second"]
    assert await texts(quick, "one") == ["first", "second"]
    assert (await quick.search("second")).total == 1
    for chats in (slow, quick):
        await chats.close()


async def test_what_another_process_changed_or_forgot_is_read_again(home: Home, database: Database, now: Now) -> None:
    """Its rows are not what this one remembers: it looks, and answers as the file is."""
    path = home.chat("one", session("first", "second"))
    here, there = (Chats(database, home.sources(), clock=now) for _ in range(2))
    before = await here.session("one")
    await there.clear()
    assert [each.text for each in await here.requests(before)] == ["first", "second"]
    write(path, json.dumps(session("first", "other")).encode(), OLD + 5)
    assert await texts(there, "one") == ["first", "other"]
    assert (await here.request(before, 2)).text == "other"
    for chats in (here, there):
        await chats.close()


async def test_another_file_of_the_same_size_and_time_is_read(chats: Chats, home: Home) -> None:
    """As a backup that was put back, or a folder that was copied with its times."""
    path = home.chat("one", session("first"))
    assert await texts(chats, "one") == ["first"]
    other = write(path.with_name("other.tmp"), path.read_bytes().replace(b"first", b"other"))
    other.replace(path)
    assert await texts(chats, "one") == ["other"]


async def test_a_name_that_is_no_utf_8_is_found_again(home: Home, database: Database, now: Now) -> None:
    """By the next process, too: what is kept is the name itself."""
    folder = os.fsencode(home.workspace() / "chatSessions")
    write(Path(os.fsdecode(folder + b"/caf\xe9.json")), json.dumps(session("quokka")).encode())
    for _ in range(2):
        chats = Chats(database, home.sources(), clock=now)
        assert (await chats.search("quokka")).total == 1
        newest = await chats.newest()
        assert newest is not None
        assert (await chats.request(newest, 1)).text == "quokka"
        await chats.close()


async def test_a_dialog_in_a_known_folder_opens_no_other_folders_files(chats: Chats, home: Home) -> None:
    """Where a place tells the folder, or almost: windows without one, exports, transcripts of other projects."""
    for number in range(20):
        write(home.user() / "globalStorage/emptyWindowChatSessions" / f"e{number}.json", b'{"requests": [{}]}')
        home.export(f"x{number}.json", session("x"))
        project = home.folder / ".claude/projects" / f"-home-ada-p{number}"
        write(
            project / f"t{number}.jsonl",
            log({"type": "user", "cwd": f"/home/ada/p{number}", "message": {"content": "hi"}}),
        )
    home.chat("mine", session("mine"), at=OLD - 1000)
    with pytest.MonkeyPatch.context() as patch, watched(home, patch) as opened:
        newest = await chats.newest(["/home/ada/shop"])
        assert await chats.newest(["/home/ada/none"]) is None
        other = await chats.newest(["/home/ada/p7"])
    assert newest is not None
    assert newest.session_id == "mine"
    assert other is not None
    assert other.session_id == "t7"
    assert {Path(path).name for path in opened.paths} == {"mine.json", "workspace.json", "t7.jsonl"}


async def test_the_current_dialog_is_not_looked_for_without_end(chats: Chats, home: Home, now: Now) -> None:
    """When the time is over, the newest of those that were read is the answer."""
    for number in range(100):
        home.chat(f"s{number}", session("hello"), at=OLD + number)
    read = chats.store._read

    async def slow(files: Any) -> None:
        now.later(5)
        await read(files)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chats.store, "_read", slow)
        newest = await chats.newest(patience=4)
    assert newest is not None
    assert newest.session_id == "s99"
    assert sum(chats.store.is_known(file) for file in await chats.store.files()) == 16


async def test_a_line_more_packs_one_request(chats: Chats, home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a long log only what changed is compressed again."""
    path = home.chat("one", log(whole(session(*(f"request {number}" for number in range(50))))))
    assert len(await texts(chats, "one")) == 50
    packed: list[str] = []
    pack = Packed.of

    def counted(request: Any) -> Packed:
        packed.append(request.text)
        return pack(request)

    monkeypatch.setattr(Packed, "of", counted)
    append(path, log(push(["requests"], request("one more", 51)), put(["requests", 7, "message", "text"], "changed")))
    assert (await texts(chats, "one"))[7::43] == ["changed", "one more"]
    assert packed == ["changed", "one more"]


async def test_a_fault_of_ours_hides_no_other_file(chats: Chats, home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even a file that makes the reader fail in an unforeseen way is only one file."""
    home.chat("one", session("first"))
    home.chat("two", session("second"))
    reading = reading_module.WholeReading.read

    def read(self: Any, stream: Any) -> Any:
        if "one" in stream.name:
            raise MemoryError
        return reading(self, stream)

    monkeypatch.setattr(reading_module.WholeReading, "read", read)
    monkeypatch.setattr(os, "fdopen", lambda descriptor, _: _named(descriptor))
    assert [each.session_id for each in (await chats.list()).items] == ["two"]


def _named(descriptor: int) -> Any:
    path = Path(f"/proc/self/fd/{descriptor}").readlink()
    os.close(descriptor)
    return path.open("rb")


def picture(folder: Path) -> dict[str, Any]:
    """Everything there is below a folder, to the last bit but the time it was looked at."""
    found: dict[str, Any] = {}
    for path in sorted(folder.rglob("*")):
        stat = path.lstat()
        data = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
        found[str(path)] = (stat.st_mode, stat.st_size, stat.st_mtime_ns, stat.st_ino, stat.st_nlink, data)
    return found


async def test_nothing_is_ever_written_where_chats_are(chats: Chats, home: Home) -> None:
    """Every tool on folders that forbid writing: no file comes, goes or changes."""
    home.chat("one", session("first"))
    home.chat("two", log(whole(session("second"))) + b"half")
    home.index("ghost")
    home.transcript("three", [{"type": "user", "message": {"content": "hello"}}])
    home.export("four.json", session("fourth"))
    folders = [home.folder, *(path for path in home.folder.rglob("*") if path.is_dir())]
    for path in home.folder.rglob("*"):
        path.chmod(0o555 if path.is_dir() else 0o444)
    before = picture(home.folder)
    for tool in chat_tools(chats):
        for session_id in ("one", "two", "three", "inner", "abc-123", "ghost", "nobody", "../../one", None):
            for more in ({"index": 1}, {"query": "first"}, {}):
                await tool.invoke({"sessionId": session_id, **more})
    assert picture(home.folder) == before
    for folder in folders:
        folder.chmod(0o755)


async def test_of_ten_thousand_sessions_a_second_call_opens_none(home: Home, database: Database, now: Now) -> None:
    """Neither in the same process nor in the next one."""
    data = json.dumps({"version": 3, "creationDate": START, "requests": [{"message": {"text": "hello"}}]}).encode()
    for number in range(10_000):
        folder = home.user() / "workspaceStorage" / f"w{number % 100}" / "chatSessions"
        if number < 100:
            home.workspace(f"w{number}", f"file:///home/ada/p{number}")
        path = folder / f"s{number}.json"
        path.write_bytes(data)
        os.utime(path, (OLD, OLD))
    first = Chats(database, home.sources(), clock=now)
    assert (await first.list()).total == 10_000
    second = Chats(database, home.sources(), clock=now)
    for chats in (first, second):
        now.later()
        with pytest.MonkeyPatch.context() as patch, watched(home, patch) as opened:
            assert (await chats.list(workspace="/home/ada/p7")).total == 100
            assert (await chats.newest(["/home/ada/p7"])) is not None
            assert (await chats.request(await chats.session("s5000"), 1)).text == "hello"
            with pytest.raises(NotThere):
                await chats.session("nobody")
        assert opened.paths == []
        await chats.close()
    shutil.rmtree(home.folder)


@pytest.mark.parametrize("kind", ["json", "jsonl"])
async def test_a_huge_session_is_not_read_twice(home: Home, database: Database, now: Now, kind: str) -> None:
    """200 MB, read once; a line more in a log of that size costs a line."""
    big = session(*(f"request {number}" for number in range(200)))
    for each in big["requests"]:
        each["result"]["metadata"]["renderedUserMessage"] = "x" * 1_000_000
    path = home.chat("big", big if kind == "json" else log(whole(big)))
    del big
    assert path.stat().st_size > 200_000_000
    chats = Chats(database, home.sources(), clock=now)
    assert (await chats.request(await chats.session("big"), 150)).text == "request 149"
    now.later()
    with pytest.MonkeyPatch.context() as patch, watched(home, patch) as opened:
        assert (await chats.request(await chats.session("big"), 151)).text == "request 150"
        assert (await chats.newest()) is not None
    assert opened.paths == []
    if kind == "jsonl":
        append(path, log(push(["requests"], request("one more", 999))))
        with pytest.MonkeyPatch.context() as patch, watched(home, patch) as opened:
            assert (await chats.request(await chats.session("big"), 201)).text == "one more"
        assert 0 < opened.bytes < 50_000
    await chats.close()
    path.unlink()


async def test_time_that_is_short_gives_a_part_and_says_so(chats: Chats, home: Home, now: Now) -> None:
    """The newest chats first; the next call goes on."""
    for number in range(200):
        home.chat(f"s{number}", session("hello"), at=OLD + number)
    seen: list[tuple[int, int]] = []

    def on_progress(done: int, total: int) -> None:
        seen.append((done, total))
        now.later(1.0)

    page = await chats.list(patience=1.0, on_progress=on_progress)
    assert (page.total, page.unread) == (64, 136)
    assert {each.session_id for each in page.items} <= {f"s{number}" for number in range(136, 200)}
    page = await chats.list(on_progress=on_progress)
    assert (page.total, page.unread) == (200, 0)
    assert seen == [(64, 200), (64, 136), (128, 136), (136, 136)]


async def test_those_who_look_in_other_places_share_the_index(home: Home, database: Database, tmp_path: Path) -> None:
    """Each sees its own chats, and takes none of the others' for deleted."""
    home.chat("one", session("quokka"))
    other = Home(tmp_path / "other")
    other.chat("two", session("quokka again"))
    here, there = Chats(database, home.sources()), Chats(database, other.sources())
    for _ in range(2):
        assert [hit.session.session_id for hit in (await here.search("quokka")).items] == ["one"]
        assert [hit.session.session_id for hit in (await there.search("quokka")).items] == ["two"]
    await here.close()
    await there.close()


async def test_two_processes_read_the_same_chats_at_once(home: Home, database: Database) -> None:
    """Each request is kept once and found once, whoever was quicker."""
    for number in range(30):
        home.chat(f"s{number}", log(whole(session("quokka", f"number {number}"))))
    several = [Chats(database, home.sources()) for _ in range(3)]
    pages = await asyncio.gather(*(chats.search("quokka") for chats in several for _ in range(2)))
    assert [page.total for page in pages] == [30] * 6
    rows = await database.read(lambda connection: connection.row("SELECT count(*) FROM chat_words"))
    assert rows == (60,)
    for chats in several:
        await chats.close()


async def test_a_call_that_is_given_up_leaves_nothing_half(chats: Chats, home: Home) -> None:
    """The next one has it all, though the reading went on without anybody waiting."""
    path = home.chat("one", log(whole(session("first"))))
    assert await texts(chats, "one") == ["first"]
    append(path, log(push(["requests"], request("second", 2))))
    asking = asyncio.create_task(texts(chats, "one"))
    await asyncio.sleep(0)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert await texts(chats, "one") == ["first", "second"]


async def test_the_dialog_that_is_going_on_is_always_as_it_is_now(chats: Chats, home: Home) -> None:
    """Nobody looks again which files there are, but at the latest of them each time."""
    path = home.chat("one", log(whole(session("first"))))
    home.chat("two", session("other"), at=OLD - 5)
    for number in range(2, 5):
        newest = await chats.newest()
        assert newest is not None
        assert (newest.session_id, newest.requests_count) == ("one", number - 1)
        append(path, log(push(["requests"], request("more", number))))
