"""The commands as people and scripts use them: real processes, real files, exit codes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from forking import COLD_START, warm_start
from harness import serving, toy, toy_after, write_config
from screen import on_screen
from servers.toy import BUILT_IN
from servers.toy_http import http_toy

COUNT = len(BUILT_IN)


def pegboard(
    *args: str, config: Path | None = None, stdin: str = "", cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command."""
    named = [] if config is None else ["--config", str(config)]
    command = [*warm_start(), *args[:1], *named, *args[1:]]
    return subprocess.run(
        command, input=stdin, capture_output=True, text=True, timeout=60, check=False, cwd=cwd, env=dict(os.environ)
    )


def ok(*args: str, **options: Any) -> str:
    done = pegboard(*args, **options)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(params=["alone", "beside a running gateway"])
def config(request: pytest.FixtureRequest, tmp_path: Path) -> Generator[Path]:
    """A config with one good server; whoever answers, the answers are the same."""
    path = write_config(tmp_path / "pegboard.json", {"one": toy(tools=["x"]), "off": toy({"enabled": False})})
    if request.param == "alone":
        yield path
    else:
        with serving(path):
            yield path


def test_looking_and_calling(config: Path) -> None:
    """`tools`, `describe`, `call` and `servers` answer alike, as tables for people and as JSON for programs."""
    # A list waits only a moment for a server that was never seen, and less than a start takes on a busy machine.
    pegboard("refresh", config=config)
    tools = json.loads(ok("tools", "--json", config=config))
    assert (tools["success"], tools["data"]["total"]) == (True, COUNT + 1)
    table = ok("tools", "--prefix", "one__e", config=config)
    assert "one__echo" in table
    assert "2 tools" in table
    assert pegboard("tools", "--server", "nobody", config=config).returncode == 2
    described = json.loads(ok("describe", "one__echo", "--json", config=config))["data"]
    assert (described["server"], described["availability"]["status"]) == ("one", "available")
    arguments = json.dumps({"big": 2**80, "é": None})
    assert ok("call", "one__echo", arguments, config=config).strip() == arguments
    assert ok("call", "one__echo", "-", config=config, stdin='{"from": "stdin"}').strip() == '{"from": "stdin"}'
    rows = {row["name"]: row for row in json.loads(ok("servers", "--json", config=config))["data"]["servers"]}
    assert (rows["one"]["tools"], rows["off"]["state"]) == (COUNT + 1, "disabled")
    assert "off" in ok("servers", config=config)


def test_words_to_find_need_no_quotes(config: Path) -> None:
    """What is typed without them is the same."""
    typed, quoted = (json.loads(ok("find", *words, "--json", config=config)) for words in (["echo", "it"], ["echo it"]))
    assert [row["name"] for row in typed["data"]["tools"]] == [row["name"] for row in quoted["data"]["tools"]]
    assert typed["data"]["tools"]


def test_exit_codes_tell_what_went_wrong(config: Path) -> None:
    """1: the tool failed; 2: the call was wrong; 4: the server could not be reached."""
    assert pegboard("call", "one__fails", config=config).returncode == 1
    assert pegboard("call", "one__refuses", config=config).returncode == 1
    for wrong in (("call", "one__nope"), ("call", "one__echo", "{"), ("call", "one__echo", "[]"), ("describe", "nope")):
        done = pegboard(*wrong, config=config)
        assert done.returncode == 2, wrong
        assert done.stderr.startswith("pegboard: ")
        assert done.stdout == ""
    assert pegboard("tools", "--status", "odd", config=config).returncode == 2
    off = pegboard("call", "off__echo", config=config)
    assert off.returncode == 4
    assert f"`pegboard enable --config {config} off` enables it" in off.stderr
    failed = pegboard("call", "off__echo", "--json", config=config)
    assert json.loads(failed.stdout)["error"]["code"] == "TOOL_UNAVAILABLE"


def test_adding_switching_and_removing_servers(config: Path) -> None:
    """Each changes the file in place, and a running gateway takes it over."""
    with http_toy() as listening:
        command = toy()
        added = ok("add", "two", "--env", "K=V", "--", command["command"], *command["args"], config=config)
        assert f"{COUNT} tools" in added
        assert f"{COUNT} tools" in ok("add", "Three-Docs", listening.url, "--header", "X-Key=abc", config=config)
        entries = json.loads(config.read_text())["mcpServers"]
        assert entries["two"]["env"] == {"K": "V"}
        assert entries["Three-Docs"] == {"type": "http", "url": listening.url, "headers": {"X-Key": "abc"}}
        assert pegboard("add", "two", "--", "x", config=config).returncode == 3
        assert json.loads(ok("tools", "--server", "three_docs", "--json", config=config))["data"]["total"] == COUNT
        ok("disable", "two", config=config)
        assert json.loads(config.read_text())["mcpServers"]["two"]["enabled"] is False
        ok("enable", "two", config=config)
        ok("remove", "Three-Docs", config=config)
        assert "Three-Docs" not in json.loads(config.read_text())["mcpServers"]
        assert pegboard("remove", "nobody", config=config).returncode == 2


def test_a_server_that_cannot_be_reached_is_added_and_said_so(config: Path) -> None:
    """The entry is there, the exit code is 4, and the message says what is wrong."""
    done = pegboard("add", "gone", "--", "no-such-command-here", config=config)
    assert done.returncode == 4
    assert "no-such-command-here" in done.stderr
    assert "gone" in json.loads(config.read_text())["mcpServers"]


def test_refresh_asks_all_servers_at_once(tmp_path: Path) -> None:
    """All in parallel; those that fail are named, and the exit code is 4."""
    servers = {f"s{n}": toy(start_delay=0.8) for n in range(4)}
    path = write_config(tmp_path / "pegboard.json", servers)
    out = ok("refresh", config=path)
    assert [line.split(":")[0] for line in out.splitlines()] == ["s0", "s1", "s2", "s3"]
    write_config(path, {**servers, "gone": {"command": "no-such-command-here"}})
    done = pegboard("refresh", "--json", config=path)
    assert done.returncode == 4
    answers = json.loads(done.stdout)["data"]["servers"]
    assert answers["s0"]["data"]["registered"] == COUNT
    assert answers["gone"]["error"]["code"] == "TOOL_UNAVAILABLE"
    assert pegboard("refresh", "nobody", config=path).returncode == 2


def test_doctor_finds_what_is_wrong_and_says_what_to_do(tmp_path: Path) -> None:
    """Config, commands, connections, left-out tools and storage, each with advice."""
    bad_tool = {"name": "bad", "inputSchema": {"type": "array"}}
    path = write_config(
        tmp_path / "pegboard.json",
        {
            "good": toy(raw_tools=[bad_tool]),
            "gone": {"command": "no-such-command-here"},
            "unset": {"url": "http://127.0.0.1:9/${NOPE}"},
            "Odd Name": toy({"enabled": False}),
        },
    )
    done = pegboard("doctor", "--json", config=path)
    assert done.returncode == 4
    findings = {(f["about"], f["level"]): f for f in json.loads(done.stdout)["data"]["findings"]}
    assert "no-such-command-here" in findings["server gone", "error"]["said"]
    assert findings["server gone", "error"]["advice"]
    assert "${NOPE}" in findings["server unset", "error"]["said"]
    assert "'bad' is left out" in findings["server good", "warning"]["said"]
    assert "odd_name" in findings["config", "warning"]["said"]
    assert ("storage", "ok") in findings
    assert "→" in pegboard("doctor", config=path).stdout
    path.write_text("{")
    assert pegboard("doctor", config=path).returncode == 3


def test_doctor_looks_at_a_postgresql_storage(tmp_path: Path, postgres_url: str) -> None:
    """Reachable or not, with advice, and never with the password; other commands say the same."""
    before, _, name = postgres_url.rpartition("/")
    path = write_config(tmp_path / "pegboard.json", {"one": toy()}, storage=postgres_url)
    done = pegboard("doctor", "--json", config=path)
    assert done.returncode == 0, done.stdout
    said = {f["about"]: f for f in json.loads(done.stdout)["data"]["findings"]}
    assert said["storage"]["level"] == "ok"
    assert said["storage"]["said"].endswith(f"/{name}")
    path = write_config(tmp_path / "pegboard.json", {"one": toy()}, storage=f"{before}/nothing")
    wrong = pegboard("doctor", config=path)
    assert wrong.returncode == 1
    assert 'database "nothing" does not exist' in wrong.stdout
    assert "→ check that PostgreSQL runs there" in wrong.stdout
    others = [pegboard(*command, config=path) for command in (("tools",), ("serve", "--port", "0"), ("stdio",))]
    assert all("does not exist" in other.stderr for other in others)
    assert [other.returncode for other in others] == [1, 1, 1]
    for each in (done, wrong, *others):
        assert "tulip" not in each.stdout + each.stderr


def test_a_bad_config_is_one_message_and_exit_3(tmp_path: Path) -> None:
    """Every command that reads the config says file, place and reason, and does nothing."""
    path = tmp_path / "pegboard.json"
    path.write_text('{"mcpServers": {"one": {"command": "x"}}, "pegboard": {"expose": 5}}')
    for command in (("tools",), ("servers",), ("serve", "--port", "0"), ("call", "x"), ("refresh",)):
        done = pegboard(*command, config=path)
        assert done.returncode == 3, command
        assert done.stderr.startswith(f"pegboard: {path}:1:")
    missing = pegboard("tools", config=tmp_path / "nothing.json")
    assert missing.returncode == 3


def test_a_mistake_in_one_entry_costs_that_server_alone(tmp_path: Path) -> None:
    """It is invalid, and says where and why; the other servers answer, alone and beside a gateway."""
    servers = {"one": toy(), "odd": {"comand": "uvx"}, "args": toy({"args": "x"})}
    path = write_config(tmp_path / "pegboard.json", servers)

    def look() -> None:
        rows = {row["name"]: row for row in json.loads(ok("servers", "--json", config=path))["data"]["servers"]}
        assert [rows[name]["state"] for name in ("odd", "args")] == ["invalid", "invalid"]
        assert 'mcpServers.odd.comand is not a key: use "command"' in rows["odd"]["lastError"]
        assert f"{path}:1:" in rows["args"]["lastError"]
        assert ok("call", "one__echo", "{}", config=path).strip() == "{}"

    look()
    with serving(path):
        look()
        refused = pegboard("call", "odd__x", config=path)
        assert (refused.returncode, 'use "command"' in refused.stderr) == (2, True)


def test_a_config_found_in_a_folder_is_used_only_when_trusted(tmp_path: Path) -> None:
    """It could run commands, so it takes `pegboard trust` once, by a person or by a script that says so."""
    folder = tmp_path / "project"
    write_config(folder / "pegboard.json", {"one": toy()})
    before = pegboard("tools", "--json", cwd=folder)
    assert "pegboard trust" in before.stderr
    assert not [tool for tool in json.loads(before.stdout)["data"]["tools"] if tool["server"]]
    for answer in ("", "n\n", "y\n"):
        refused = pegboard("trust", cwd=folder, stdin=answer)
        assert (refused.returncode, "--yes" in refused.stderr, "one:" in refused.stdout) == (2, True, True)
    assert "pegboard trust" in pegboard("tools", cwd=folder).stderr
    assert "one:" in ok("trust", "--yes", cwd=folder)
    assert json.loads(ok("tools", "--json", cwd=folder))["data"]["total"] == COUNT


def test_trust_is_in_what_was_looked_at(tmp_path: Path) -> None:
    """A file that changed is not used until it is trusted again, which shows what changed and all that would run."""
    folder = tmp_path / "project"
    path = write_config(folder / "pegboard.json", {"one": toy({"env": {"API_KEY": "s3cr3t-one"}})})
    assert pegboard("trust", cwd=tmp_path).returncode == 2
    ok("trust", "--yes", cwd=folder)
    ok("disable", "one", cwd=folder)
    assert "has not changed" in ok("trust", cwd=folder)
    text = json.dumps({"mcpServers": {"evil": {"command": "evil", "args": ["--token", "s3cr3t-two"]}}}, indent=2)
    path.write_text(text)
    looked = pegboard("servers", "--json", cwd=folder)
    assert "changed since it was trusted" in looked.stderr
    assert json.loads(looked.stdout)["data"]["servers"] == []
    diff = ok("trust", "-y", str(path), cwd=tmp_path)
    assert "+ server evil: runs evil --token s3cr3t-two" in diff
    assert "- server one: env API_KEY=[redacted]" in diff
    assert [row["name"] for row in json.loads(ok("servers", "--json", cwd=folder))["data"]["servers"]] == ["evil"]
    path.write_text("{")
    assert pegboard("trust", cwd=folder).returncode == 3


def test_where_the_folders_config_is_not_trusted_nothing_is_changed(tmp_path: Path) -> None:
    """A change would go to another file than the one that lies there; `--config` says which one is meant."""
    folder, own = tmp_path / "project", tmp_path / "own.json"
    local = write_config(folder / "pegboard.json", {"one": toy()})
    users = write_config(Path(os.environ["PEGBOARD_CONFIG_DIR"]) / "config.json", {"one": toy(), "two": toy()})
    ok("trust", "--yes", cwd=folder)
    local.write_text(local.read_text() + " ")
    before = users.read_bytes(), local.read_bytes()
    for command in (["add", "x", "--", "nothing"], ["remove", "two"], ["enable", "two"], ["disable", "two"]):
        refused = pegboard(*command, cwd=folder)
        assert refused.returncode == 3
        assert all(word in refused.stderr for word in (str(local), "pegboard trust", "--config"))
        assert (users.read_bytes(), local.read_bytes()) == before
    own.write_bytes(before[0])
    ok("disable", "two", cwd=folder, config=own)


def test_a_config_that_the_environment_names_must_be_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As one that is named by `--config`; a first `add` makes it."""
    monkeypatch.setenv("PEGBOARD_CONFIG", str(tmp_path / "named.json"))
    refused = pegboard("servers")
    assert (refused.returncode, "named.json: there is no such file" in refused.stderr) == (3, True)
    assert "PEGBOARD_CONFIG" in refused.stderr
    pegboard("add", "one", "--", sys.executable, "-c", "")
    assert "one" in ok("servers")


def test_a_gateway_that_cannot_use_its_config_any_more_says_so(tmp_path: Path) -> None:
    """`servers` shows what runs, and notes that the file says something else, with the mistake in it."""
    path = write_config(tmp_path / "pegboard.json", {"off": toy({"enabled": False})})
    with serving(path):
        path.write_text("{")
        deadline = time.monotonic() + 30
        while not (done := pegboard("servers", config=path)).stderr and time.monotonic() < deadline:
            time.sleep(0.1)
    assert (done.returncode, "off" in done.stdout) == (0, True)
    assert "runs with an older config" in done.stderr
    assert f"{path}:1:" in done.stderr


def test_serving_without_any_config_says_how_to_begin(tmp_path: Path) -> None:
    """Where it listens, how to connect a client, how to add a first server."""
    command = [*warm_start(), "serve", "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=tmp_path)
    try:
        assert process.stdout is not None
        said = "".join(process.stdout.readline() for _ in range(15))
        assert "listens on http://127.0.0.1:" in said
        assert "pegboard install claude-code" in said
        assert "Add your first server" in said
        assert "pegboard add" in said
    finally:
        process.terminate()
        assert process.wait(20) == 0
        if process.stdout is not None:
            process.stdout.close()


def test_help_names_every_command_and_loads_nothing_heavy() -> None:
    """`--help` answers from a light import; the SDK, pydantic and rich stay out."""
    out = ok("--help")
    running, changing = ["serve", "stdio", "trust"], ["add", "remove", "enable", "disable", "refresh"]
    for name in [*running, *changing, "servers", "tools", "describe", "call", "doctor"]:
        assert f"\n  {name} " in out
        assert "Usage" in ok(name, "--help")
    heavy = "{'mcp', 'pydantic', 'pydantic_core', 'rich', 'starlette', 'httpx2', 'structlog'}"
    probe = f"import sys; from pegboard.cli.app import app; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_sighup_reloads_the_config(tmp_path: Path) -> None:
    """A signal does at once what looking at the file does in a moment."""
    import signal

    path = write_config(tmp_path / "pegboard.json", {"one": toy()})
    command = [*warm_start(), "serve", "--config", str(path), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.send_signal(signal.SIGHUP)
        deadline = time.monotonic() + 20
        while "config.reloaded" not in process.stderr.readline():
            assert time.monotonic() < deadline
        process.terminate()
        process.communicate(timeout=20)
        assert process.returncode == 0


def test_memories_for_people(tmp_path: Path) -> None:
    """Every `memory` command, alone and beside a running gateway, on the same memories."""
    path = write_config(tmp_path / "pegboard.json", {}, toolsets=["memory"])

    def run(command: str, *args: str, **options: Any) -> str:
        return ok("memory", command, "--config", str(path), *args, **options)

    assert "version 1" in run(
        "add", "shop:pay", "--summary", "Payments", "--text", "-", "--link", "b", stdin="Stripe it is"
    )
    with serving(path):
        assert "Stripe it is" in run("get", "shop:pay")
        assert "version 2" in run("update", "shop:pay", "--text", "Adyen it is", "--version", "1")
        stale = pegboard("memory", "update", "shop:pay", "--config", str(path), "--text", "x", "--version", "1")
        assert (stale.returncode, "version 2" in stale.stderr) == (2, True)
        assert "shop:pay" in run("search", "adyen")
        assert "1 of 1" in run("fulltext", "adyen", "payments", "--all")
        assert "→ b" in run("linked", "shop:pay")
    assert "shop:money" in run("rename", "shop:pay", "shop:money")
    listed = json.loads(run("list", "--json", "--prefix", "shop:"))
    assert [row["key"] for row in listed["data"]["memories"]] == ["shop:money"]
    run("add", "shop:zoo", "--summary", "Animals")
    orders = [json.loads(run("list", "--json", *how))["data"]["memories"] for how in ((), ("--recent",))]
    assert [[row["key"] for row in rows] for rows in orders] == [["shop:money", "shop:zoo"], ["shop:zoo", "shop:money"]]
    assert "deleted" in run("delete", "shop:money")
    missing = pegboard("memory", "get", "shop:money", "--config", str(path))
    assert (missing.returncode, "no memory" in missing.stderr) == (2, True)
    for links in ("{", "{}"):
        wrong = pegboard("memory", "add", "x", "--config", str(path), "--links", links)
        assert (wrong.returncode, "--links" in wrong.stderr) == (2, True)


def test_any_memory_can_be_shown(tmp_path: Path) -> None:
    """Paths, marks, markup and escape sequences in a memory are shown as text; only `--json` has all of it."""
    path = write_config(tmp_path / "pegboard.json", {}, toolsets=["memory"])

    def run(command: str, *args: str, **options: Any) -> str:
        return ok("memory", command, *args, "--config", str(path), **options)

    text = "C:\\needle\\[red] </mark> <mark> \x1b[31mneedle\x9b2J [/nowhere]"
    assert "\x1b" not in run("add", "shop:bug:one", "--summary", "sum\x1b[1mmary", "--text", "-", stdin=text)
    for command in (("search", "needle"), ("fulltext", "needle"), ("get", "shop:bug:one"), ("list",)):
        shown = run(*command)
        assert "shop:bug:one" in shown
        assert "sum[1mmary" in shown
        assert not {"\x1b", "\x9b"} & set(shown)
        if command[0] != "list":
            assert "C:\\needle\\[red] </mark>" in shown
    assert json.loads(run("get", "shop:bug:one", "--json"))["data"]["text"] == text
    refused = pegboard("memory", "get", "no\x9b2Jsuch", "--config", str(path))
    assert "\x9b" not in refused.stderr


def test_a_long_memory_is_read_on(tmp_path: Path) -> None:
    """Whatever did not fit is said so, with the option that shows the rest: of a text, of links, of a page."""
    path = write_config(tmp_path / "pegboard.json", {}, toolsets=["memory"], memory={"answerSize": 12_500})

    def run(command: str, *args: str, **options: Any) -> str:
        return ok("memory", command, *args, "--config", str(path), **options)

    links = [{"key": f"other{n:03}"} for n in range(150)]
    rows: list[dict[str, Any]] = [{"key": "long", "text": "word " * 3000 + "end", "links": links}]
    rows += [{"key": f"page{n}", "summary": "s" * 3000, "links": [{"key": f"page{n + 1}"}]} for n in range(30)]
    rows.append({"key": "hub", "links": [{"key": f"page{n}"} for n in range(30)]})
    run("import", "-", stdin="\n".join(map(json.dumps, rows)))
    first = text = run("get", "long")
    while "offset " in text.partition("→")[0]:
        assert "end" not in text
        text = run("get", "long", "--offset", text.partition("offset ")[2].partition("]")[0])
    assert "word end\n" in text
    shown = first.count("→")
    assert f"{150 - shown} more: memory get with --links-offset {shown}" in first
    rest = run("get", "long", "--links-offset", str(shown), "--unsorted")
    assert f"→ other{shown:03}" in rest
    assert f"--links-offset {shown + rest.count('→')}" in rest
    assert "fit into an answer: go on with offset" in run("list")
    assert "fit into an answer: go on with offset" in run("search", "page")
    assert "fit into an answer: read on from" in run("linked", "hub", "--breadth", "20", "--total", "50")


def test_keywords_are_parted_as_everywhere(tmp_path: Path) -> None:
    """Commas part keywords on the command line as they do over MCP and REST; quotes keep them together."""
    path = write_config(tmp_path / "pegboard.json", {}, toolsets=["memory"])

    def found(*keywords: str) -> list[str]:
        answer = ok("memory", "fulltext", *keywords, "--json", "--config", str(path))
        return sorted(row["key"] for row in json.loads(answer)["data"]["results"])

    for key, text in (("a", "stripe only"), ("b", "paypal"), ("c", "only, stripe")):
        ok("memory", "add", key, "--text", text, "--config", str(path))
    assert found("stripe,paypal") == found("stripe", "paypal") == ["a", "b", "c"]
    assert found('"only, stripe"') == ["c"]
    assert found('"only, stripe"', "paypal") == ["b", "c"]
    assert pegboard("memory", "fulltext", " , ", "--config", str(path)).returncode == 2


@pytest.mark.parametrize("command", [("memory", "add", "a", "--text", "-"), ("call", "memory_add", "-")])
def test_input_that_is_no_text_is_a_wrong_call(tmp_path: Path, command: tuple[str, ...]) -> None:
    """Bytes that are not UTF-8 are told with their place, whatever the locale says, and exit 2."""
    path = write_config(tmp_path / "pegboard.json", {}, toolsets=["memory"])
    for locale in ("C.UTF-8", "C"):
        done = subprocess.run(
            [*COLD_START, *command, "--config", str(path)],
            input=b'{"key": "caf\xe9"}',
            capture_output=True,
            timeout=60,
            check=False,
            env={**os.environ, "LC_ALL": locale},
        )
        assert (done.returncode, b"not UTF-8" in done.stderr, b"Traceback" in done.stderr) == (2, True, False)


def test_memories_move_out_and_in(tmp_path: Path) -> None:
    """`export` and `import` carry everything over, tell what is wrong with a line, and leave no half file behind."""
    here = write_config(tmp_path / "here" / "pegboard.json", {}, storage=f"sqlite:{tmp_path / 'here.db'}")
    there = write_config(tmp_path / "there" / "pegboard.json", {}, storage=f"sqlite:{tmp_path / 'there.db'}")
    for config, key in ((here, "a"), (here, "b"), (there, "b")):
        toolsets = json.loads(config.read_text("utf-8"))
        toolsets["pegboard"]["toolsets"] = ["memory"]
        config.write_text(json.dumps(toolsets), "utf-8")
        ok("memory", "add", key, "--text", f"from {config.parent.name}", "--config", str(config))
    file = tmp_path / "out.jsonl"
    ok("memory", "export", str(file), "--config", str(here))
    printed = ok("memory", "export", "--config", str(here))
    assert file.read_text("utf-8") == printed
    assert not list(tmp_path.glob("*.unfinished"))
    would = json.loads(ok("memory", "import", str(file), "--dry-run", "--json", "--config", str(there)))["data"]
    did = json.loads(ok("memory", "import", str(file), "--json", "--config", str(there)))["data"]
    assert would == did == {"added": 1, "replaced": 0, "skipped": 1, "invalid": 0, "problems": []}
    assert "from there" in ok("memory", "get", "b", "--config", str(there))
    assert "1 replaced" in ok(
        "memory", "import", "-", "--replace", "--config", str(there), stdin=printed.splitlines()[-1]
    )
    assert "from here" in ok("memory", "get", "b", "--config", str(there))
    broken = pegboard("memory", "import", "-", "--config", str(there), stdin=printed + "{nonsense\n")
    assert (broken.returncode, "line 4" in broken.stderr) == (1, True)
    missing = pegboard("memory", "import", str(tmp_path / "nowhere"), "--config", str(there))
    assert missing.returncode == 1
    assert "entity" in ok("memory", "export", "--format", "server-memory", "--config", str(here))


def test_an_export_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    """A reader that went away ends it without a word, a full disk with one; both are exit 1, and a pipe stays one."""
    config = write_config(tmp_path / "pegboard.json", {}, toolsets=["memory"])
    rows = "\n".join(json.dumps({"key": f"k{n}", "text": f"{n} " * 20_000}) for n in range(4))
    ok("memory", "import", "-", "--config", str(config), stdin=rows)
    command = [*warm_start(), "memory", "export", "--config", str(config)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.read(10) == '{"format":'
        process.stdout.close()
        assert (process.stderr.read(), process.wait(timeout=30)) == ("", 1)
    for namespace in ("default", "nobody"):
        with Path("/dev/full").open("wb") as full:
            done = subprocess.run(
                [*command, "--namespace", namespace], stdout=full, stderr=subprocess.PIPE, text=True, check=False
            )
        assert (done.returncode, done.stderr) == (1, "pegboard: the output: No space left on device\n")
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    with subprocess.Popen([*command, str(fifo)], stderr=subprocess.PIPE) as process:
        assert len(fifo.read_bytes().splitlines()) == 5
        assert process.wait(timeout=30) == 0
    assert fifo.is_fifo()


def test_a_static_tool_that_fails_ends_with_1(tmp_path: Path) -> None:
    """The call was right, and it failed; alike with a gateway and without."""
    config = write_config(tmp_path / "pegboard.json", {}, toolsets=["discovery"])

    def check() -> None:
        done = pegboard("call", "tool_describe", '{"name": "nope"}', config=config)
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr.startswith('pegboard: Unknown tool "nope".')
        shown = pegboard("call", "tool_describe", '{"name": "nope"}', "--json", config=config)
        answer = json.loads(shown.stdout)
        assert (shown.returncode, answer["success"], answer["error"]["code"]) == (1, False, "TOOL_NOT_FOUND")
        assert answer["data"]["structuredContent"]["error"] == answer["error"]
        assert pegboard("call", "nope", config=config).returncode == 2

    check()
    with serving(config):
        check()


def test_a_call_that_starts_a_server_says_so(tmp_path: Path) -> None:
    """At a terminal, once it takes a while; a gateway would have it started."""
    there = tmp_path / "there"
    there.touch()
    config = write_config(tmp_path / "p.json", {"slow": toy_after(there)})
    with on_screen([*warm_start(), "call", "slow__echo", "--config", str(config), '{"x": 1}']) as screen:
        screen.until("starting slow … (pegboard serve --config ")
        there.unlink()
        code, text = screen.finish()
    assert (code, '{"x": 1}' in text) == (0, True)
