"""What there is to know about a client beyond the table: one or two sentences for its page."""

from __future__ import annotations

NOTES: dict[str, str] = {
    "claude-code": """\
Claude Code changes its file `~/.claude.json` while it runs. If the program `claude` is on your PATH, Pegboard
therefore changes the file with `claude mcp add-json`. `CLAUDE_CONFIG_DIR` moves the file. Claude Code ignores an
entry that has a `url` and no `type`, and refuses a file with comments. A project's `.mcp.json` must be approved once,
in a session in that folder.

`claude mcp list` shows whether the connection works.""",
    "claude-desktop": """\
The config file of Claude Desktop takes commands only, no addresses. Pegboard writes the command with its whole path,
because Claude Desktop does not have the PATH of your shell. If `pegboard serve` is running, the command is only a
bridge to it.""",
    "vscode": """\
VS Code asks once whether you trust a new server. If you use a profile of VS Code, it may have its own file: Pegboard
writes the file of the default profile. `${input:…}` in a file of VS Code stays in the entry when you import it.""",
    "vscode-insiders": "VS Code Insiders has its own folder. Everything else is as in [VS Code](vscode.md).",
    "vscodium": "VSCodium has its own folder. Everything else is as in [VS Code](vscode.md).",
    "cursor": "If Cursor does not show the tools, switch the server off and on again in its settings.",
    "windsurf": """\
Windsurf calls the address `serverUrl`, not `url`. It takes at most 100 tools of all servers together; with Pegboard
it sees only a few, and finds the others ([how](../guides/find-a-tool.md)).""",
    "zed": "On macOS, too, the settings of Zed are in `~/.config/zed`. Zed does not fill in variables in its settings.",
    "codex": """\
The command line, the app and the IDE extension of Codex share one file. `CODEX_HOME` moves it. Codex refuses to start
if an entry has both `command` and `url`. It uses the file of a project only if it trusts the project.""",
    "gemini": """\
Gemini CLI uses MCP servers only in folders that it trusts. In another folder its list says `Disabled`.
`GEMINI_CLI_HOME` moves the file.

Do not use `gemini mcp add`: it replaces every variable of the file by its value, also your tokens.""",
    "opencode": """\
OpenCode reads `opencode.jsonc` first if both files are there. It writes variables as `{env:NAME}`; Pegboard
translates them when you import. `opencode mcp list` shows whether the connection works.""",
    "copilot": """\
This is the Copilot of the command line. Copilot in VS Code uses the servers of [VS Code](vscode.md). `COPILOT_HOME`
moves the file. A project's `.mcp.json` is used only in folders that Copilot trusts.""",
    "cline": """\
The extension and the command line of Cline share one file. Cline takes an entry without a `type` for an older SSE
server, so the `type` matters. `CLINE_DIR` and `CLINE_MCP_SETTINGS_PATH` move the file.""",
    "roo": "Roo Code is no longer developed. Pegboard still reads and writes its file.",
    "continue": """\
Continue reads every JSON file in its folder `mcpServers`. Pegboard writes a file of its own there, and changes no
other file. `CONTINUE_GLOBAL_DIR` moves the folder.""",
    "junie": "Older versions of Junie take commands only, so Pegboard writes a command.",
    "jetbrains": """\
AI Assistant has no config file that other programs can write. Paste the entry in *Settings, Tools, AI Assistant,
Model Context Protocol (MCP)*.""",
    "goose": "Pegboard does not write the YAML file of Goose. Use the link, or paste the entry.",
    "kiro": "The IDE and the command line of Kiro share one file. In the IDE, variables must be approved once.",
    "warp": "Warp can also be configured in its settings, under *MCP servers*.",
    "lm-studio": "Older versions of LM Studio have the file in `~/.cache/lm-studio`. If it exists, Pegboard uses it.",
}
