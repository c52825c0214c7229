"""The container, as far as it can be checked without a daemon: what it copies, runs and asks is there."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx2
import pytest
import typer.main
import yaml

from forking import warm_start
from harness import serving
from pegboard.cli.app import app
from pegboard.config import read_settings

ROOT = Path(__file__).parent.parent
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text("utf-8"))
IGNORED = (ROOT / ".dockerignore").read_text("utf-8").splitlines()


def stages() -> dict[str, list[tuple[str, str]]]:
    """The instructions of each stage of the Dockerfile, by its name; one that builds on another has its, too."""
    text = re.sub(r"\\\n", " ", (ROOT / "Dockerfile").read_text("utf-8"))
    found: dict[str, list[tuple[str, str]]] = {}
    name = ""
    for line in text.splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        word, _, rest = line.strip().partition(" ")
        if word == "FROM":
            source, _, name = rest.partition(" AS ")
            found[name] = [*found.get(source, []), (word, source)]
        elif name:
            found[name].append((word, rest.strip()))
    return found


STAGES = stages()


def last(stage: str, word: str) -> str:
    """The last instruction of a kind, which is the one that counts."""
    return [rest for instruction, rest in STAGES[stage] if instruction == word][-1]


def test_everything_that_is_copied_is_there_and_not_ignored() -> None:
    """From the project, or from another stage or image."""
    sources = [
        source
        for name in STAGES
        for word, rest in STAGES[name]
        if word == "COPY" and not rest.startswith("--from=")
        for source in rest.split()[:-1]
    ]
    assert {"src", "pyproject.toml", "constraints.txt"} <= set(sources)
    for source in sources:
        assert (ROOT / source).exists(), source
        assert f"!{source}" in IGNORED, source
    origins = {
        rest.split()[0].removeprefix("--from=") for each in STAGES.values() for _, rest in each if "--from" in rest
    }
    assert {name for name in origins if ":" not in name} <= STAGES.keys()


def test_what_the_build_needs_is_copied() -> None:
    """The readme and the license are parts of the package."""
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    copied = " ".join(rest for word, rest in STAGES["build"] if word == "COPY").split()
    assert {project["readme"], *project["license-files"]} <= set(copied)
    assert "postgres" in project["optional-dependencies"]


def test_the_default_is_the_small_one() -> None:
    """The last stage is what `docker build` makes."""
    assert list(STAGES)[-1] == "slim"
    assert not any("node" in rest for word, rest in STAGES["slim"] if word == "COPY")


@pytest.mark.parametrize("stage", ["slim", "full"])
def test_nobody_is_root_and_state_is_a_volume(stage: str) -> None:
    """What is kept stands in the volume, and the config where it is mounted."""
    assert last(stage, "USER") == "pegboard"
    environment = dict(part.split("=", 1) for part in last(stage, "ENV").split())
    assert environment["PEGBOARD_STATE_DIR"] == last(stage, "VOLUME")
    mounts = [each.rsplit(":", 2) for each in COMPOSE["services"]["pegboard"]["volumes"]]
    targets = {part for mount in mounts for part in mount}
    assert {environment["PEGBOARD_STATE_DIR"], str(Path(environment["PEGBOARD_CONFIG"]).parent)} <= targets


@pytest.mark.parametrize("stage", ["slim", "full"])
def test_the_command_and_its_options_exist(stage: str) -> None:
    """As the program itself reads them."""
    assert json.loads(last(stage, "ENTRYPOINT")) == ["pegboard"]
    name, *options = json.loads(last(stage, "CMD"))
    command: Any = typer.main.get_command(app)
    context = command.commands[name].make_context(name, list(options))
    assert (context.params["host"], str(context.params["port"])) == ("0.0.0.0", last(stage, "EXPOSE"))


def test_the_command_of_the_image_wants_a_token_first_and_compose_says_how(
    tmp_path: Path, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The line of the compose file's head makes one, in the database of the gateway, which starts then."""
    config = ROOT / "examples" / "docker" / "config.json"
    monkeypatch.setenv("DATABASE_URL", postgres_url)
    command = [*warm_start(), *json.loads(last("slim", "CMD")), "--port", "0", "--config", str(config)]
    refused = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert refused.returncode == 1
    assert "pegboard token add" in refused.stderr
    words = re.search(
        r"# +docker compose run --rm pegboard (token add \w+)\n", (ROOT / "compose.yaml").read_text("utf-8")
    )
    assert words is not None
    made = subprocess.run(
        [*warm_start(), *words[1].split(), "--config", str(config)],
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    with serving(config, options=("--host", "0.0.0.0")) as (_, url):
        answer = httpx2.get(
            f"{url.removesuffix('/mcp')}/api/servers",
            headers={"X-Forwarded-For": "8.8.8.8", "Authorization": f"Bearer {made.stdout.strip()}"},
        )
        assert answer.status_code == 200


def test_ports_are_published_on_this_machine_only() -> None:
    """Tokens must not travel over a network in clear."""
    (port,) = COMPOSE["services"]["pegboard"]["ports"]
    assert port == f"127.0.0.1:{last('slim', 'EXPOSE')}:{last('slim', 'EXPOSE')}"
    assert "ports" not in COMPOSE["services"]["database"]


def test_compose_builds_a_stage_waits_for_the_database_and_has_no_password_in_it() -> None:
    """It has to be given."""
    services = COMPOSE["services"]
    assert services["pegboard"]["build"]["target"] in STAGES
    assert services["pegboard"]["depends_on"] == {"database": {"condition": "service_healthy"}}
    assert "pg_isready" in services["database"]["healthcheck"]["test"][-1]
    named = {volume.split(":")[0] for each in services.values() for volume in each["volumes"]}
    assert set(COMPOSE["volumes"]) <= named
    for value in (
        services["pegboard"]["environment"]["DATABASE_URL"],
        services["database"]["environment"]["POSTGRES_PASSWORD"],
    ):
        assert "${POSTGRES_PASSWORD:?" in value


def test_the_gateway_of_compose_runs_on_postgresql_and_its_health_check_sees_it(
    tmp_path: Path, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the config of the example, and the very command of the image; a gateway that is gone is not healthy."""
    folder = COMPOSE["services"]["pegboard"]["volumes"][0].partition(":-")[2].partition("}")[0]
    config = ROOT / folder / "config.json"
    monkeypatch.setenv("DATABASE_URL", postgres_url)
    assert read_settings(config, os.environ).storage == postgres_url
    check = json.loads(last("slim", "HEALTHCHECK").partition("CMD ")[2])
    assert check[:2] == ["python", "-c"]
    with serving(config) as (_, url):
        port = url.rpartition(":")[2].partition("/")[0]
        program = [sys.executable, "-c", check[2].replace(last("slim", "EXPOSE"), port)]
        assert subprocess.run(program, timeout=30, check=False, capture_output=True).returncode == 0
    assert subprocess.run(program, timeout=30, check=False, capture_output=True).returncode != 0
