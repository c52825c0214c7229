"""The `chats` section of the config."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pegboard.config.section import SectionContext
from pegboard.config.settings import ToolsetSettings
from pegboard.config.shape import ConfigNode


@dataclass(frozen=True, slots=True)
class ChatsSettings(ToolsetSettings):
    """Folders of exported chats, and whether clients on other machines have the chat tools."""

    exports: tuple[str, ...] = ()
    remote: bool = False


def read_settings(node: ConfigNode, context: SectionContext) -> ChatsSettings:
    """The section as it stands in the file."""
    context.remark_unknown(node, ("exports", "remote"))
    given: dict[str, Any] = {}
    if exports := node.get("exports"):
        given["exports"] = tuple(context.folder(exports, folder) for folder in exports.texts())
    if remote := node.get("remote"):
        given["remote"] = remote.flag()
    return ChatsSettings(**given)
