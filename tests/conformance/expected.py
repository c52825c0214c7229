"""Scenarios that do not pass yet, by suite, each with the reason."""

from __future__ import annotations

_NOT_CARRIED = "prompts, resources and completion are not carried through yet"
_NOT_ASKED = "a server's question does not reach the client yet"
_NOT_LOGGED = "logging is not carried through yet"

_PROMPTS_AND_RESOURCES = {
    "completion-complete": _NOT_CARRIED,
    "prompts-get-embedded-resource": _NOT_CARRIED,
    "prompts-get-simple": _NOT_CARRIED,
    "prompts-get-with-args": _NOT_CARRIED,
    "prompts-get-with-image": _NOT_CARRIED,
    "prompts-list": _NOT_CARRIED,
    "resources-list": _NOT_CARRIED,
    "resources-read-binary": _NOT_CARRIED,
    "resources-read-text": _NOT_CARRIED,
    "resources-templates-read": _NOT_CARRIED,
}
_HANDSHAKE = {
    **_PROMPTS_AND_RESOURCES,
    "elicitation-sep1034-defaults": _NOT_ASKED,
    "elicitation-sep1330-enums": _NOT_ASKED,
    "logging-set-level": _NOT_LOGGED,
    "resources-subscribe": _NOT_CARRIED,
    "resources-unsubscribe": _NOT_CARRIED,
    "tools-call-elicitation": _NOT_ASKED,
    "tools-call-sampling": _NOT_ASKED,
    "tools-call-with-logging": _NOT_LOGGED,
}

EXPECTED_FAILURES: dict[str, dict[str, str]] = {
    "0.1.16": _HANDSHAKE,
    "2025-11-25": _HANDSHAKE,
    "2026-07-28": {
        **_PROMPTS_AND_RESOURCES,
        "caching": _NOT_CARRIED,
        "input-required-result-non-tool-request": _NOT_CARRIED,
    },
}
