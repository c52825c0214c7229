"""The table of client programs: everything that `clients`, `install`, `uninstall` and `import` know of each."""

from __future__ import annotations

from pegboard.client_configs.links import cursor_link, goose_link, kiro_link, lm_studio_link, vscode_link
from pegboard.client_configs.program import ClientProgram, EntryStyle, FileSpec
from pegboard.names import nearest

_SERVERS = ("servers",)
_TYPED = EntryStyle(http_type="http", command_type="stdio")
_NEW_SESSION = "start a new session of {name}"
_RESTART = "restart {name}"
_AT_ONCE = "{name} takes it over by itself"


class UnknownClientError(ValueError):
    """A client that is not in the table; the message offers the nearest ones."""


def _vscode(client_id: str, name: str, folder: str, scheme: str, program: str) -> ClientProgram:
    user = f"{{applications}}/{folder}/User"
    return ClientProgram(
        client_id,
        name,
        user=(
            FileSpec(f"{user}/mcp.json", "jsonc", _SERVERS),
            FileSpec(f"{user}/profiles/*/mcp.json", "jsonc", _SERVERS, is_written=False),
        ),
        project=(
            FileSpec("{project}/.vscode/mcp.json", "jsonc", _SERVERS),
            FileSpec("{project}/.mcp.json", is_written=False),
        ),
        folders=(user,),
        programs=(program,),
        style=_TYPED,
        reload=f"open the chat of {name}, and trust the server when you are asked",
        reload_without=_RESTART,
        link=vscode_link(scheme),
    )


CLAUDE_DESKTOP = ClientProgram(
    "claude-desktop",
    "Claude Desktop",
    user=(
        # The app of the Microsoft Store sees its own copy of the roaming folder.
        FileSpec(
            "{local}/Packages/Claude_pzs8sxrjxfjjc/LocalCache/Roaming/Claude/claude_desktop_config.json",
            systems=("windows",),
            needs="{local}/Packages/Claude_pzs8sxrjxfjjc",
        ),
        FileSpec("{applications}/Claude/claude_desktop_config.json"),
    ),
    folders=("{applications}/Claude",),
    style=EntryStyle(takes_http=False),
    reload="quit {name} (closing its window is not enough) and start it again",
)

CLAUDE_CODE = ClientProgram(
    "claude-code",
    "Claude Code",
    user=(FileSpec("{claude}/.claude.json"),),
    project=(
        FileSpec("{project}/.mcp.json"),
        FileSpec("{claude}/.claude.json", key=("projects", "{project}", "mcpServers"), is_written=False),
    ),
    folders=("{home}/.claude",),
    programs=("claude",),
    style=_TYPED,
    timeout_unit="ms",
    reload=_NEW_SESSION,
)

CURSOR = ClientProgram(
    "cursor",
    "Cursor",
    user=(FileSpec("{home}/.cursor/mcp.json", "jsonc"),),
    project=(FileSpec("{project}/.cursor/mcp.json", "jsonc"),),
    folders=("{home}/.cursor",),
    programs=("cursor",),
    reload="{name} takes it over at once; if not, restart it",
    link=cursor_link,
)

WINDSURF = ClientProgram(
    "windsurf",
    "Windsurf",
    user=(
        FileSpec("{home}/.codeium/windsurf/mcp_config.json"),
        # The plugin for JetBrains.
        FileSpec("{home}/.codeium/mcp_config.json", is_written=False),
    ),
    folders=("{home}/.codeium/windsurf",),
    programs=("windsurf",),
    style=EntryStyle(url_key="serverUrl"),
    reload="press the refresh button in the list of MCP servers in {name}",
)

ZED = ClientProgram(
    "zed",
    "Zed",
    user=(
        FileSpec(
            "{zed}/settings.json",
            "jsonc",
            ("context_servers",),
            on={"macos": "{home}/.config/zed/settings.json", "windows": "{roaming}/Zed/settings.json"},
        ),
    ),
    project=(FileSpec("{project}/.zed/settings.json", "jsonc", ("context_servers",)),),
    folders=("{zed}", "{roaming}/Zed"),
    programs=("zed", "zeditor"),
    timeout_unit="s",
    reload=_AT_ONCE,
)


CLINE = ClientProgram(
    "cline",
    "Cline",
    user=(
        FileSpec("{cline settings}"),
        # Where it was before it moved for the extension too.
        FileSpec(
            "{applications}/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
            is_written=False,
        ),
    ),
    folders=("{cline}",),
    programs=("cline",),
    style=EntryStyle(http_type="streamableHttp"),
    timeout_unit="s",
    reload=_AT_ONCE,
)

ROO = ClientProgram(
    "roo",
    "Roo Code",
    user=(FileSpec("{applications}/Code/User/globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json"),),
    project=(FileSpec("{project}/.roo/mcp.json"),),
    folders=("{applications}/Code/User/globalStorage/rooveterinaryinc.roo-cline",),
    style=EntryStyle(http_type="streamable-http"),
    timeout_unit="s",
    reload=_AT_ONCE,
)

CONTINUE = ClientProgram(
    "continue",
    "Continue",
    user=(
        FileSpec("{continue}/mcpServers/pegboard.json"),
        FileSpec("{continue}/mcpServers/*.json", is_written=False),
        FileSpec("{continue}/config.yaml", "yaml", is_written=False),
    ),
    project=(
        FileSpec("{project}/.continue/mcpServers/pegboard.json"),
        FileSpec("{project}/.continue/mcpServers/*.json", is_written=False),
        FileSpec("{project}/.continue/mcpServers/*.yaml", "yaml", is_written=False),
    ),
    folders=("{continue}",),
    style=EntryStyle(http_type="http"),
    timeout_unit="ms",
    reload=_AT_ONCE,
)

JUNIE = ClientProgram(
    "junie",
    "Junie",
    user=(FileSpec("{home}/.junie/mcp/mcp.json"),),
    project=(FileSpec("{project}/.junie/mcp/mcp.json"),),
    folders=("{home}/.junie",),
    programs=("junie",),
    # Older versions take commands only.
    style=EntryStyle(takes_http=False),
    reload="look at the MCP page in the settings of {name}",
    reload_without=_RESTART,
)

JETBRAINS = ClientProgram(
    "jetbrains",
    "JetBrains AI Assistant",
    # It has no file: people paste the entry.
    user=(),
    style=EntryStyle(takes_http=False),
    reload="paste it in Settings, Tools, AI Assistant, Model Context Protocol (MCP), Add, As JSON",
)

GEMINI = ClientProgram(
    "gemini",
    "Gemini CLI",
    user=(FileSpec("{gemini}/settings.json", "jsonc"),),
    project=(FileSpec("{project}/.gemini/settings.json", "jsonc"),),
    folders=("{gemini}",),
    programs=("gemini",),
    style=EntryStyle(http_type="http"),
    timeout_unit="ms",
    reload="restart {name}, in a folder that it trusts: in others it uses no MCP servers",
    reload_without=_RESTART,
)

CODEX = ClientProgram(
    "codex",
    "Codex",
    user=(FileSpec("{codex}/config.toml", "toml", ("mcp_servers",)),),
    project=(FileSpec("{project}/.codex/config.toml", "toml", ("mcp_servers",)),),
    folders=("{codex}",),
    programs=("codex",),
    reload=_NEW_SESSION,
)

GOOSE = ClientProgram(
    "goose",
    "Goose",
    user=(
        FileSpec(
            "{config}/goose/config.yaml",
            "yaml",
            ("extensions",),
            on={"windows": "{roaming}/Block/goose/config/config.yaml"},
            is_written=False,
        ),
    ),
    folders=("{config}/goose", "{roaming}/Block/goose"),
    style=EntryStyle(
        http_type="streamable_http",
        url_key="uri",
        command_type="stdio",
        command_key="cmd",
        env_key="envs",
        has_name=True,
        always={"enabled": True, "timeout": 300},
    ),
    timeout_unit="s",
    reload="open the link, or paste the entry into the file; then restart {name}",
    link=goose_link,
    link_needs_http=True,
)

LM_STUDIO = ClientProgram(
    "lm-studio",
    "LM Studio",
    user=(
        FileSpec("{home}/.lmstudio/mcp.json"),
        FileSpec("{home}/.cache/lm-studio/mcp.json", needs="{home}/.cache/lm-studio/mcp.json"),
    ),
    folders=("{home}/.lmstudio",),
    programs=("lms",),
    reload=_AT_ONCE,
    link=lm_studio_link,
)

KIRO = ClientProgram(
    "kiro",
    "Kiro",
    user=(FileSpec("{home}/.kiro/settings/mcp.json"),),
    project=(FileSpec("{project}/.kiro/settings/mcp.json"),),
    folders=("{home}/.kiro",),
    programs=("kiro", "kiro-cli"),
    timeout_unit="ms",
    reload=_AT_ONCE,
    link=kiro_link,
)

AMAZON_Q = ClientProgram(
    "amazon-q",
    "Amazon Q",
    user=(
        FileSpec("{home}/.aws/amazonq/mcp.json"),
        FileSpec("{home}/.aws/amazonq/cli-agents/*.json"),
        FileSpec("{home}/.aws/amazonq/agents/default.json"),
    ),
    project=(FileSpec("{project}/.amazonq/mcp.json"),),
    folders=("{home}/.aws/amazonq",),
    style=EntryStyle(http_type="http"),
    timeout_unit="ms",
    # Kiro has taken its place.
    import_only=True,
)

OPENCODE = ClientProgram(
    "opencode",
    "OpenCode",
    user=(
        FileSpec("{config}/opencode/opencode.jsonc", "jsonc", ("mcp",), needs="{config}/opencode/opencode.jsonc"),
        FileSpec("{config}/opencode/opencode.json", "jsonc", ("mcp",)),
    ),
    project=(
        FileSpec("{project}/opencode.jsonc", "jsonc", ("mcp",), needs="{project}/opencode.jsonc"),
        FileSpec("{project}/opencode.json", "jsonc", ("mcp",)),
        FileSpec("{project}/.opencode/opencode.jsonc", "jsonc", ("mcp",), is_written=False),
        FileSpec("{project}/.opencode/opencode.json", "jsonc", ("mcp",), is_written=False),
    ),
    folders=("{config}/opencode",),
    programs=("opencode",),
    style=EntryStyle(
        http_type="remote",
        command_type="local",
        is_command_list=True,
        env_key="environment",
        always={"enabled": True},
    ),
    timeout_unit="ms",
    reload=_RESTART,
)

WARP = ClientProgram(
    "warp",
    "Warp",
    user=(FileSpec("{home}/.warp/.mcp.json"),),
    project=(FileSpec("{project}/.warp/.mcp.json"),),
    folders=("{home}/.warp",),
    reload="{name} takes it over by itself; if not, start it in its settings for MCP servers",
    reload_without=_AT_ONCE,
)

COPILOT = ClientProgram(
    "copilot",
    "Copilot CLI",
    user=(FileSpec("{copilot}/mcp-config.json"),),
    project=(FileSpec("{project}/.mcp.json"), FileSpec("{project}/.github/mcp.json", is_written=False)),
    folders=("{copilot}",),
    programs=("copilot",),
    style=EntryStyle(http_type="http", command_type="local", always={"tools": ["*"]}),
    timeout_unit="ms",
    reload=_NEW_SESSION,
)


def _import_only(client_id: str, name: str, *user: FileSpec) -> ClientProgram:
    return ClientProgram(client_id, name, user, import_only=True)


CLIENTS: tuple[ClientProgram, ...] = (
    *(CLAUDE_CODE, CLAUDE_DESKTOP),
    _vscode("vscode", "VS Code", "Code", "vscode", "code"),
    _vscode("vscode-insiders", "VS Code Insiders", "Code - Insiders", "vscode-insiders", "code-insiders"),
    _vscode("vscodium", "VSCodium", "VSCodium", "vscodium", "codium"),
    *(CURSOR, WINDSURF, ZED, CODEX, GEMINI, OPENCODE, COPILOT, CLINE, ROO, CONTINUE, JUNIE, JETBRAINS),
    *(GOOSE, LM_STUDIO, KIRO, WARP, AMAZON_Q),
    _import_only(
        "vscode-server",
        "VS Code on a remote machine",
        FileSpec("{home}/.vscode-server/data/User/mcp.json", "jsonc", _SERVERS),
    ),
    _import_only(
        "antigravity",
        "Antigravity",
        FileSpec("{home}/.gemini/config/mcp_config.json"),
        FileSpec("{home}/.gemini/antigravity/mcp_config.json"),
    ),
    _import_only("amp", "Amp", FileSpec("{config}/amp/settings.json", "jsonc", ("amp.mcpServers",))),
    _import_only(
        "kilo",
        "Kilo Code",
        FileSpec("{config}/kilo/kilo.jsonc", "jsonc", ("mcp",)),
        FileSpec("{config}/kilo/kilo.json", "jsonc", ("mcp",)),
    ),
    _import_only("kimi", "Kimi Code", FileSpec("{home}/.kimi-code/mcp.json")),
    _import_only("qwen", "Qwen Code", FileSpec("{home}/.qwen/settings.json", "jsonc")),
    _import_only("crush", "Crush", FileSpec("{config}/crush/crush.json", "jsonc", ("mcp",))),
    _import_only(
        "copilot-jetbrains",
        "Copilot in JetBrains",
        FileSpec(
            "{config}/github-copilot/intellij/mcp.json",
            "jsonc",
            _SERVERS,
            on={"windows": "{local}/github-copilot/intellij/mcp.json"},
        ),
    ),
    _import_only("mcporter", "mcporter", FileSpec("{home}/.mcporter/mcporter.json", "jsonc")),
)

_BY_ID = {client.id: client for client in CLIENTS}


def find_client(name: str) -> ClientProgram:
    """The client of this id, or of this name; for an unknown one an error with the nearest ids."""
    wanted = "-".join(name.lower().split())
    for client in CLIENTS:
        if wanted in (client.id, "-".join(client.name.lower().split())):
            return client
    close = nearest(wanted[:80], _BY_ID)
    offer = f"did you mean {' or '.join(close)}?" if close else f"there are {', '.join(_BY_ID)}"
    raise UnknownClientError(f"there is no client {name[:80]!r}: {offer}")
