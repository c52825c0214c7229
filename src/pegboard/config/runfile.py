"""Run files: where the commands find the gateways of a config that run now. Each gateway has a file of its own."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Generator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pegboard.config.locate import identity, state_folder


@dataclass(frozen=True, slots=True)
class RunningGateway:
    """How a gateway is reached, and the secret by which it is known from whoever has its port after it."""

    pid: int
    url: str
    bridge: int
    token: str
    # The config file that it serves, and since when.
    config: str = ""
    started: float = 0.0


def run_file(config: Path, environment: Mapping[str, str] = os.environ) -> Path:
    """Where a gateway of this config, in this process, says how to reach it."""
    return _folder(environment) / f"{identity(config)}-{os.getpid()}.json"


@contextlib.contextmanager
def announcement(config: Path, gateway: RunningGateway) -> Generator[None]:
    """Let the other commands find this gateway, as long as it runs; `OSError` if the file cannot be written."""
    file = run_file(config)
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    # Whoever can read it can use the bridge: it is the user's alone from the first byte.
    draft = file.with_suffix(".draft")
    try:
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as handle:
            json.dump(asdict(gateway), handle)
        draft.replace(file)
    except OSError:
        with contextlib.suppress(OSError):
            draft.unlink(missing_ok=True)
        raise
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            file.unlink(missing_ok=True)


def find_gateways(config: Path, environment: Mapping[str, str] = os.environ) -> Generator[tuple[Path, RunningGateway]]:
    """Every gateway of this config that has a run file, the latest first; some may have died without a word."""
    yield from _read_run_files(f"{identity(config)}-*.json", environment)


def find_all_gateways(environment: Mapping[str, str] = os.environ) -> Generator[tuple[Path, RunningGateway]]:
    """Every gateway of this user that has a run file, whatever its config."""
    yield from _read_run_files("*-*.json", environment)


def _read_run_files(pattern: str, environment: Mapping[str, str]) -> Generator[tuple[Path, RunningGateway]]:
    try:
        files = sorted(_folder(environment).glob(pattern), key=_age)
    except (OSError, RuntimeError):
        return
    for file in files:
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            yield file, _parse_run_file(json.loads(file.read_text("utf-8")))


def _parse_run_file(said: Mapping[str, Any]) -> RunningGateway:
    """A gateway from its run file; one of an older version does not say everything."""
    return RunningGateway(
        int(said["pid"]),
        str(said["url"]),
        int(said["bridge"]),
        str(said["token"]),
        str(said.get("config", "")),
        float(said.get("started", 0.0)),
    )


def forget(file: Path) -> None:
    """Take away the file of a gateway that is gone."""
    with contextlib.suppress(OSError):
        file.unlink(missing_ok=True)


def _folder(environment: Mapping[str, str]) -> Path:
    return state_folder(environment) / "run"


def _age(file: Path) -> float:
    try:
        return -file.stat().st_mtime
    except OSError:
        return 0.0
