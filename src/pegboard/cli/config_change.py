"""What commands share that change the config file: which file, what its errors mean, and the first look at a server."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from pegboard.cli.common import BAD_CONFIG, FAILED, WRONG_CALL, stop
from pegboard.cli.program import use_config, with_program
from pegboard.cli.rest_client import Answer, RestClient, connect
from pegboard.cli.show import say_wrapped

if TYPE_CHECKING:
    from pegboard.config import Location

T = TypeVar("T")
_TAKE_OVER = 5.0


def config_to_change(config: Path | None, but: Collection[Path] = ()) -> Location:
    """The file that a change goes to; it may not be there yet. `but` are files that are only read."""
    from pegboard.config import locate
    from pegboard.config.locate import LOCAL_NAME

    location = locate(config)
    use_config(location)
    if location.remark is not None and (Path.cwd() / LOCAL_NAME).resolve() not in but:
        # Whoever is in that folder means its file: the user's own would be changed unseen, for every folder.
        stop(f"{location.remark} Or say which file to change: --config {location.path}", BAD_CONFIG)
    return location


def edit_config(change: Callable[[], T]) -> T:
    """Make a change, or end with the exit code that fits what is wrong."""
    from pegboard.config import ConfigError, ConfigWriteError, UnknownServerError
    from pegboard.config.jsonc import JsoncError

    try:
        return change()
    except UnknownServerError as exc:
        stop(str(exc), WRONG_CALL)
    except ConfigWriteError as exc:
        stop(str(exc), FAILED)
    except (ConfigError, JsoncError) as exc:
        stop(str(exc), BAD_CONFIG)


def own_ports(path: Path) -> list[int]:
    """Where gateways of this config listen."""
    from urllib.parse import urlsplit

    from pegboard.config import find_gateways

    return [port for _, gateway in find_gateways(path) if (port := urlsplit(gateway.url).port)]


def say_advice(name: str, said: str, path: Path) -> None:
    """Say what to do about a server of which this was said just now, as `doctor` does."""
    from pegboard.cli.advice import advise_about

    if advice := advise_about(name, said, path):
        say_wrapped(f"  → {with_program(advice)}", indent="    ", error=True)


def ask_servers(
    path: Path, names: Sequence[str], on_answer: Callable[[], None] = lambda: None, *, are_enabled: bool = False
) -> dict[str, Answer]:
    """Have servers asked for their tools that were written into the config, or enabled in it, just now."""
    from pegboard.config import Location

    gateway = connect(Location(path, exists=True))
    deadline = time.monotonic() + _TAKE_OVER
    # A running gateway looks at its config file twice a second.
    while not _are_known(gateway, names, are_enabled=are_enabled) and time.monotonic() < deadline:
        time.sleep(0.1)
    return gateway.refresh(names, on_answer)


def _are_known(gateway: RestClient, names: Sequence[str], *, are_enabled: bool) -> bool:
    answer = gateway.servers()
    if "error" in answer:
        return True
    return {row["name"] for row in answer["data"]["servers"] if row["enabled"] or not are_enabled}.issuperset(names)
