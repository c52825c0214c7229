"""Service files of all three systems, built here by parameter: golden files, and readers that others wrote."""

from __future__ import annotations

import os
import plistlib
import sys
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from pegboard.service.builders import build_service
from pegboard.service.environment_file import read_environment_file
from pegboard.service.job import Machine, ServiceJob, ServiceProblem, find_program, is_temporary
from service.systemd_analyze import verify_unit

GOLDEN = Path(__file__).parent / "golden"
MACHINES = {
    "linux": Machine(system="linux", home="/home/ada", user="ada", uid=1000, environment={}),
    "darwin": Machine(system="darwin", home="/Users/ada", user="ada", uid=501, environment={}),
    "win32": Machine(
        system="win32",
        home="C:\\Users\\Ada Lövelace",
        user="Ada Lövelace",
        uid=0,
        environment={"LOCALAPPDATA": "C:\\Users\\Ada Lövelace\\AppData\\Local", "USERDOMAIN": "R&D"},
    ),
}
JOBS = {
    "linux": ServiceJob(
        program=("/home/ada/.local/bin/pegboard",),
        config="/home/ada/.config/pegboard/config.json",
        port=7420,
        environment={"PATH": "/home/ada/.local/bin:/usr/bin"},
        environment_file="/home/ada/.config/pegboard/environment",
        log_file="/home/ada/.local/state/pegboard/pegboard.log",
    ),
    "darwin": ServiceJob(
        program=("/Users/ada/.local/bin/pegboard",),
        config="/Users/ada/Library/Application Support/pegboard/config.json",
        port=7420,
        environment={"PATH": "/opt/homebrew/bin:/usr/bin"},
        environment_file="/Users/ada/Library/Application Support/pegboard/environment",
        log_file="/Users/ada/Library/Logs/pegboard/pegboard.log",
    ),
    "win32": ServiceJob(
        program=("C:\\Program Files\\Pegboard\\pythonw.exe", "-m", "pegboard"),
        config="C:\\Users\\Ada Lövelace\\AppData\\Local\\pegboard\\config.json",
        port=7420,
        environment={},
        environment_file="C:\\Users\\Ada Lövelace\\AppData\\Local\\pegboard\\environment",
        log_file="C:\\Users\\Ada Lövelace\\AppData\\Local\\pegboard\\pegboard.log",
    ),
}
FILES = {
    "linux": ("pegboard.service", "/home/ada/.config/systemd/user/pegboard.service"),
    "darwin": ("pegboard.gateway.plist", "/Users/ada/Library/LaunchAgents/pegboard.gateway.plist"),
    "win32": ("pegboard-task.xml", "C:\\Users\\Ada Lövelace\\AppData\\Local\\pegboard\\pegboard-task.xml"),
}
# Paths that mean something to each of the formats.
ODD = "/tmp/a b/%h/$HOME/\"q\"/'s'/<&>/ü/back\\slash"
TASK = "{http://schemas.microsoft.com/windows/2004/02/mit/task}"


@pytest.mark.parametrize("system", MACHINES)
def test_the_file_is_the_golden_one(system: str) -> None:
    """And stands where the system looks for it."""
    service = build_service(MACHINES[system], JOBS[system])
    name, path = FILES[system]
    golden = GOLDEN / name
    if os.environ.get("UPDATE_GOLDEN"):
        golden.write_text(service.text, "utf-8")
    assert service.text == golden.read_text("utf-8")
    assert service.path == path


@pytest.mark.parametrize("system", MACHINES)
def test_commands_are_those_of_the_system(system: str) -> None:
    """Enabled, disabled and asked by its own programs."""
    service = build_service(MACHINES[system], JOBS[system])
    program = {"linux": "systemctl", "darwin": "launchctl", "win32": "schtasks"}[system]
    commands = (*service.enable, *service.disable, *service.forget, service.status)
    assert {command[0].removeprefix("-") for command in commands} == {program}
    assert service.logs


@pytest.mark.scenario("first hour: A unit is good for systemd")
@pytest.mark.skipif(sys.platform != "linux", reason="systemd is of Linux alone")
@pytest.mark.parametrize(("name", "start"), [("a b %h ü", []), ("$HOME \"q\" 's'", ["/usr/bin/env"])])
def test_a_unit_is_good_for_systemd(name: str, start: list[str], tmp_path: Path) -> None:
    """systemd's own reader finds nothing, and reads odd paths as they are meant."""
    program = tmp_path / name
    program.symlink_to(sys.executable)
    job = replace(JOBS["linux"], program=(str(program),), config=ODD, environment={"PATH": ODD})
    unit = tmp_path / "pegboard.service"
    unit.write_text(build_service(MACHINES["linux"], job).text, "utf-8")
    lines = dict(line.split("=", 1) for line in unit.read_text("utf-8").splitlines() if "=" in line)
    assert _systemd_words(lines["ExecStart"]) == [*start, str(program), "serve", "--config", ODD, "--port", "7420"]
    assert _systemd_words(lines["Environment"]) == [f"PATH={ODD}"]
    assert "pegboard.service" not in (said := verify_unit(unit)), said


@pytest.mark.skipif(sys.platform != "linux", reason="systemd is of Linux alone")
def test_systemd_is_asked_indeed(tmp_path: Path) -> None:
    """A unit that is not good is named."""
    unit = tmp_path / "pegboard.service"
    unit.write_text(build_service(MACHINES["linux"], JOBS["linux"]).text.replace("ExecStart=", "ExecStrat="), "utf-8")
    assert "pegboard.service" in verify_unit(unit)


def _systemd_words(text: str) -> list[str]:
    """Words of a line as systemd reads them: quotes, backslashes, `%%` and `$$`."""
    words, word, quote, at = list[str](), "", "", 0
    started = False
    while at < len(text):
        character = text[at]
        if quote and character == quote:
            quote = ""
        elif not quote and character in "\"'":
            quote, started = character, True
        elif character == "\\":
            at += 1
            word += text[at]
        elif not quote and character == " ":
            words, word, started = [*words, word], "", False
        else:
            word, started = word + character, True
        at += 1
    return [each.replace("%%", "%").replace("$$", "$") for each in ([*words, word] if started else words)]


def test_an_agent_is_good_for_launchd() -> None:
    """Read as a property list, every word is what it was."""
    job = replace(JOBS["darwin"], program=(ODD,), config=ODD, environment={"PATH": ODD})
    agent = plistlib.loads(build_service(MACHINES["darwin"], job).text.encode())
    assert agent["Label"] == "pegboard.gateway"
    assert agent["ProgramArguments"] == [
        *(ODD, "service", "run", "--env-file", job.environment_file, "--config", ODD, "--port", "7420")
    ]
    assert agent["EnvironmentVariables"] == {"PATH": ODD}
    assert (agent["RunAtLoad"], agent["KeepAlive"]) == (True, {"SuccessfulExit": False})


def test_a_task_is_good_for_the_task_scheduler() -> None:
    """Read as XML from UTF-16, command and arguments are what they were, by the rules of Windows."""
    odd = "C:\\a b\\<&>\\ü\\"
    job = replace(JOBS["win32"], program=(odd, "-m", "pegboard"), config=odd)
    service = build_service(MACHINES["win32"], job)
    root = ET.fromstring(service.text.encode(service.encoding))
    execute = root.find(f"{TASK}Actions/{TASK}Exec")
    assert execute is not None
    assert execute.findtext(f"{TASK}Command") == odd
    words = _windows_words(execute.findtext(f"{TASK}Arguments") or "")
    assert words[:4] == ["-m", "pegboard", "service", "run"]
    assert words[words.index("--config") + 1] == odd
    assert root.findtext(f"{TASK}Principals/{TASK}Principal/{TASK}UserId") == "R&D\\Ada Lövelace"
    assert root.findtext(f"{TASK}Settings/{TASK}ExecutionTimeLimit") == "PT0S"


def _windows_words(line: str) -> list[str]:
    """Words of a command line by the rules of the C runtime of Windows."""
    words, word, is_quoted, backslashes, started = list[str](), "", False, 0, False
    for character in f"{line} ":
        if character == "\\":
            backslashes += 1
            continue
        if character == '"':
            word += "\\" * (backslashes // 2)
            started = True
            if backslashes % 2:
                word += '"'
            else:
                is_quoted = not is_quoted
            backslashes = 0
            continue
        word, started, backslashes = word + "\\" * backslashes, started or backslashes > 0, 0
        if character == " " and not is_quoted:
            if started:
                words.append(word)
            word, started = "", False
        else:
            word, started = word + character, True
    return words


def test_nothing_secret_is_in_a_file() -> None:
    """Only what is carried by name; the config's values are never read."""
    for system, machine in MACHINES.items():
        text = build_service(
            replace(machine, environment={**machine.environment, "API_KEY": "hunter2"}), JOBS[system]
        ).text
        assert "hunter2" not in text


def test_a_character_that_no_file_can_hold_is_refused() -> None:
    """A line break would be another line of the unit."""
    with pytest.raises(ServiceProblem, match="cannot hold"):
        build_service(MACHINES["linux"], replace(JOBS["linux"], config="/a\nExecStartPre=/bin/evil"))
    with pytest.raises(ServiceProblem, match="not known on sunos"):
        build_service(replace(MACHINES["linux"], system="sunos"), JOBS["linux"])


def test_the_unit_follows_the_config_folder() -> None:
    """`XDG_CONFIG_HOME` is where systemd looks."""
    machine = replace(MACHINES["linux"], environment={"XDG_CONFIG_HOME": "/x"})
    assert build_service(machine, JOBS["linux"]).path == "/x/systemd/user/pegboard.service"


def test_the_program_is_named_by_its_absolute_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As it was installed, or by the interpreter that runs it; on Windows without a console."""
    script = tmp_path / "pegboard"
    script.touch()
    monkeypatch.chdir(tmp_path)
    assert find_program("./pegboard", "/usr/bin/python", "linux") == (str(script),)
    assert find_program("/x/pegboard/__main__.py", "/usr/bin/python", "linux") == ("/usr/bin/python", "-m", "pegboard")
    python = tmp_path / "python.exe"
    assert find_program("pegboard.exe", str(python), "win32") == (str(python), "-m", "pegboard")
    python.with_name("pythonw.exe").touch()
    assert find_program("pegboard.exe", str(python), "win32")[0] == str(tmp_path / "pythonw.exe")


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        ("/home/ada/.cache/uv/archive-v0/x/bin/pegboard", True),
        ("C:\\Users\\ada\\AppData\\Local\\uv\\cache\\archive-v0\\x\\Scripts\\pegboard.exe", True),
        ("/home/ada/.local/share/uv/tools/pegboard/bin/pegboard", False),
        ("/home/ada/.local/bin/pegboard", False),
    ],
)
def test_a_program_in_a_cache_is_told_apart(program: str, expected: bool) -> None:
    """`uvx` runs it from there, and may throw it away."""
    assert is_temporary(program) is expected


def test_the_file_of_variables(tmp_path: Path) -> None:
    """Comments, quotes, `export`, a BOM; what is no line of it is an error that shows no value."""
    file = tmp_path / "environment"
    assert read_environment_file(file) == {}
    file.write_text("\ufeff# comment\n\nA=1\nexport B = two words \n; other\nC='q # x'\nD=\"\"\nE=a=b\r\n", "utf-8")
    assert read_environment_file(file) == {"A": "1", "B": "two words", "C": "q # x", "D": "", "E": "a=b"}
    file.write_text("A=1\nhunter2\n", "utf-8")
    with pytest.raises(ServiceProblem) as caught:
        read_environment_file(file)
    assert str(caught.value) == f"{file}:2: write NAME=VALUE"
    file.write_bytes(b"A=\xff")
    with pytest.raises(ServiceProblem, match="not UTF-8"):
        read_environment_file(file)
