"""Settings: what Pegboard was told, checked and ready to use."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Literal, TypeVar
from urllib.parse import urlsplit

from pegboard.access.deny import denies
from pegboard.access.settings import AuthSettings
from pegboard.config.audit_settings import AuditSettings
from pegboard.config.oauth_settings import OAuthSettings
from pegboard.config.results_settings import ResultsSettings
from pegboard.host_names import host_name, is_loopback_name
from pegboard.log import Redactor
from pegboard.toolsets.installed import USUAL

Transport = Literal["stdio", "http", "sse"]
Expose = Literal["auto", "all", "search"]
Instance = Literal["shared", "session"]
Search = Literal["lexical", "semantic"]
# What becomes of a definition that differs from the approved one.
ChangePolicy = Literal["tell", "hold", "follow", "locked"]
# The file beside the config that has the definitions of locked servers.
LOCK_NAME = "pegboard.lock.json"
CHANGE_POLICIES: tuple[ChangePolicy, ...] = ("tell", "hold", "follow", "locked")

S = TypeVar("S", bound="ToolsetSettings")


# Tools that can be loaded on a board, whatever its size is set to.
MOST_ON_BOARD = 1000


class ConfigError(Exception):
    """The config cannot be used; the message names file, place and reason."""


class UnknownServerError(ConfigError):
    """There is no server of that name in the config."""


class EntryChangedError(ConfigError):
    """The entry of a server is another than the one that a change was made for."""


class ServerExistsError(ConfigError):
    """There is another server of that name in the config."""


class ConfigWriteError(ConfigError):
    """The config cannot be written, though nothing is wrong with what it says: a full disk, missing rights."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSpec:
    """How one server is reached and treated. Times are in seconds; 0 for `idle_timeout` means never."""

    name: str
    given_name: str
    transport: Transport = "stdio"
    # Without a `type`, an address may turn out to be one of the older HTTP+SSE servers.
    transport_guessed: bool = False
    command: str | None = None
    # A repr may end up in a message: what can hold a secret is not in it.
    args: tuple[str, ...] = field(default=(), repr=False)
    env: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    cwd: str | None = None
    url: str | None = field(default=None, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    # How it is signed in to; `None`: as is found out when it asks for it, `False`: never.
    oauth: OAuthSettings | Literal[False] | None = None
    enabled: bool = True
    timeout: float = 300.0
    connect_timeout: float = 5.0
    start_timeout: float = 60.0
    idle_timeout: float = 600.0
    ttl: float = 300.0
    prefix: bool = True
    instance: Instance = "shared"
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    # Which of its tools only read, for those who may do no more; without any, what it says itself counts.
    read_only: tuple[str, ...] = ()
    keywords: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    # What becomes of its definitions that change; `None`: as for all servers.
    changes: ChangePolicy | None = None
    # Whether hidden text in its definitions is let through.
    allows_hidden_text: bool = False
    # How many characters its results may have (0: any number), and whether kept results can be arguments of its tools.
    results_cap: int | None = None
    result_handles: bool = False
    # Why this one server cannot be used; the others go on.
    problem: str | None = None
    # Its entry cannot be read, so that nothing else is known of it.
    malformed: bool = False
    secrets: frozenset[str] = field(default=frozenset(), repr=False)
    # Whatever is said about this server goes through it first.
    redactor: Redactor = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "redactor", Redactor.of(self.secrets))

    def permits(self, tool: str) -> bool:
        """Whether `tools.allow` and `tools.deny` let this tool through."""
        if self.deny and any(denies(self.deny, name, tool, is_own=True) for name in {self.name, self.given_name}):
            return False
        return not self.allow or any(fnmatchcase(tool, pattern) for pattern in self.allow)

    @property
    def is_usable(self) -> bool:
        """Whether it is to be used, and can be as far as its entry says."""
        return self.enabled and not self.problem

    @property
    def signs_in(self) -> bool:
        """Whether a sign-in may give it credentials; those of its entry's own win."""
        if self.url is None or self.oauth is False or any(name.lower() == "authorization" for name in self.headers):
            return False
        return "@" not in urlsplit(self.url).netloc

    @property
    def sign_in(self) -> OAuthSettings:
        """How it is signed in to, as far as its entry says."""
        return self.oauth or OAuthSettings()

    @property
    def fingerprint(self) -> str:
        """What makes it the same server as before a restart: where it is, not how it is treated."""
        parts = (self.transport, self.command or "", *self.args, self.cwd or "", self.url or "")
        return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:32]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolsetSettings:
    """What a toolset was told in its section; each that has one adds its own fields."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Everything that a config file and the environment say together."""

    path: Path | None = None
    # Its file was found by itself: a change of it has to be trusted first.
    needs_trust: bool = False
    # Files that values of servers came from, or were looked for in.
    files: frozenset[Path] = frozenset()
    servers: Mapping[str, ServerSpec] = field(default_factory=dict[str, ServerSpec])
    expose: Expose = "auto"
    pinned: tuple[str, ...] = ("memory_search", "memory_fulltext_search")
    # How many tools can be loaded on a board at once.
    board_size: int = 40
    toolsets: tuple[str, ...] = USUAL
    # Which of Pegboard's own tools there are.
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    search: Search = "lexical"
    # What toolsets were told; one that is missing here was told nothing.
    of_toolsets: tuple[ToolsetSettings, ...] = ()
    # The folder that is worked in, for clients that do not tell.
    workspace: str | None = None
    # Under which other host names the gateway may be addressed.
    hosts: tuple[str, ...] = ()
    # The MCP registry that servers are searched in.
    registry: str = "https://registry.modelcontextprotocol.io"
    renamed: Mapping[str, str] = field(default_factory=dict[str, str])
    # Who may come in.
    auth: AuthSettings = field(default_factory=AuthSettings)
    # What is recorded of what they did.
    audit: AuditSettings = field(default_factory=AuditSettings)
    # How large results may be.
    results: ResultsSettings = field(default_factory=ResultsSettings)
    max_name_length: int = 48
    # An address may hold a password.
    storage: str = field(default="sqlite", repr=False)
    # What becomes of definitions that change; `None`: as fits where the gateway can be reached from.
    changes: ChangePolicy | None = None
    # Things worth a log line that stop nothing: a folded name, an unknown key.
    remarks: tuple[str, ...] = ()
    # Those of them that are about settings of ours: nobody gets what they wrote.
    own_remarks: tuple[str, ...] = ()

    @property
    def is_for_others(self) -> bool:
        """Whether others than this machine's user are meant to come in, whatever address is listened on."""
        public = urlsplit(self.auth.public_url).hostname or ""
        return bool(self.auth.issuers) or (bool(public) and not is_loopback_name(host_name(public)))

    @property
    def has_locks(self) -> bool:
        """Whether the definitions of any server are locked to a file."""
        return self.changes == "locked" or any(spec.changes == "locked" for spec in self.servers.values())

    @property
    def caps(self) -> list[int]:
        """Every cap of results that is given somewhere; 0 is none."""
        of_servers = [spec.results_cap for spec in self.servers.values() if spec.results_cap is not None]
        return [*self.results.caps, *of_servers]

    def of(self, kind: type[S]) -> S:
        """The settings of a toolset, by their class."""
        return next((each for each in self.of_toolsets if isinstance(each, kind)), None) or kind()

    def read_only_tools(self, server: str) -> tuple[str, ...]:
        """Patterns of a server's tools that change nothing, whatever the server says of them."""
        spec = self.servers.get(server)
        return () if spec is None else spec.read_only

    def permits(self, tool: str) -> bool:
        """Whether `tools.allow` and `tools.deny` let this tool of Pegboard's own through."""
        if denies(self.deny, None, tool):
            return False
        return not self.allow or any(fnmatchcase(tool, pattern) for pattern in self.allow)
