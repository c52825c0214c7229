"""Counts of what happened, in the text form that Prometheus reads."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field


@dataclass(slots=True)
class Metrics:
    """Counters of one running Pegboard."""

    calls: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])
    seconds: defaultdict[str, float] = field(default_factory=lambda: defaultdict[str, float](float))
    lists: int = 0
    notices: int = 0
    # Records of the audit that there was no room for.
    audit_lost: int = 0
    # Requests that did not take the fast path, by the reason.
    declined: Counter[str] = field(default_factory=Counter[str])
    # Calls that were refused because their principal is over a limit, by what the limit is for.
    rate_limited: Counter[str] = field(default_factory=Counter[str])
    # Requests that were not let in, by the reason.
    refused: Counter[str] = field(default_factory=Counter[str])
    # Requests for new tokens of a sign-in to a server, by server and outcome; and grants by their state.
    oauth_refreshes: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])
    oauth_grants: Counter[str] = field(default_factory=Counter[str])

    def record_call(self, server: str, outcome: str, seconds: float) -> None:
        """A call ended."""
        self.calls[server, outcome] += 1
        self.seconds[server] += seconds

    def record_refusal(self, scope: str) -> None:
        """A call was refused: its principal is over a limit."""
        self.rate_limited[scope] += 1

    def text(
        self,
        states: Iterable[tuple[str, str]],
        tools: int,
        sessions: int,
        parked: int = 0,
        shows: Callable[[str], bool] | None = None,
    ) -> str:
        """Everything, as Prometheus wants it; `shows` says of which servers, and of nothing that is no server's."""
        lines = ["# HELP pegboard_calls_total Tool calls by server and outcome.", "# TYPE pegboard_calls_total counter"]
        lines += [
            f'pegboard_calls_total{{server="{_label(server)}",outcome="{_label(outcome)}"}} {count}'
            for (server, outcome), count in sorted(self.calls.items())
            if shows is None or shows(server)
        ]
        lines += [
            "# HELP pegboard_call_seconds_total Time spent in tool calls.",
            "# TYPE pegboard_call_seconds_total counter",
        ]
        lines += [
            f'pegboard_call_seconds_total{{server="{_label(server)}"}} {spent:.6f}'
            for server, spent in sorted(self.seconds.items())
            if shows is None or shows(server)
        ]
        lines += [
            "# HELP pegboard_fast_path_declined_total MCP requests that took the full path, by the reason.",
            "# TYPE pegboard_fast_path_declined_total counter",
        ]
        lines += [
            f'pegboard_fast_path_declined_total{{reason="{reason}"}} {count}'
            for reason, count in sorted(self.declined.items())
        ]
        lines += [
            "# HELP pegboard_rate_limited_total Calls refused because their principal is over a limit.",
            "# TYPE pegboard_rate_limited_total counter",
        ]
        lines += [
            f'pegboard_rate_limited_total{{scope="{scope}"}} {count}'
            for scope, count in sorted(self.rate_limited.items())
        ]
        lines += [
            "# HELP pegboard_auth_refused_total Requests that were not let in, by the reason.",
            "# TYPE pegboard_auth_refused_total counter",
        ]
        lines += [
            f'pegboard_auth_refused_total{{reason="{reason}"}} {count}'
            for reason, count in sorted(self.refused.items())
        ]
        lines += self._oauth_lines(shows)
        lines += _state_lines(states, tools)
        for name, kind, value, text in (
            ("pegboard_sessions", "gauge", sessions, "Client sessions that are open now."),
            ("pegboard_parked_calls", "gauge", parked, "Calls that wait for an answer of a client that is away."),
            ("pegboard_lists_total", "counter", self.lists, "Answered tools/list requests."),
            ("pegboard_notices_total", "counter", self.notices, "list_changed notices sent."),
            ("pegboard_audit_lost_total", "counter", self.audit_lost, "Records of the audit that were lost."),
        ):
            lines += [f"# HELP {name} {text}", f"# TYPE {name} {kind}", f"{name} {value}"]
        return "\n".join(lines) + "\n"

    @staticmethod
    def own_text(states: Iterable[tuple[str, str]], tools: int) -> str:
        """What somebody may know who is no admin: their servers and how many tools they have. Every other number counts
        what others do."""
        return "\n".join(_state_lines(states, tools)) + "\n"

    def _oauth_lines(self, shows: Callable[[str], bool] | None) -> list[str]:
        """Of sign-ins to servers; nothing where there were none."""
        lines: list[str] = []
        if self.oauth_refreshes:
            lines += [
                "# HELP pegboard_oauth_refresh_total Requests for new tokens of a sign-in, by server and outcome.",
                "# TYPE pegboard_oauth_refresh_total counter",
            ]
        lines += [
            f'pegboard_oauth_refresh_total{{server="{_label(server)}",outcome="{outcome}"}} {count}'
            for (server, outcome), count in sorted(self.oauth_refreshes.items())
            if shows is None or shows(server)
        ]
        if self.oauth_grants and shows is None:
            lines += [
                "# HELP pegboard_oauth_grants Sign-ins to servers that are kept, by state.",
                "# TYPE pegboard_oauth_grants gauge",
                *(
                    f'pegboard_oauth_grants{{state="{_label(state)}"}} {count}'
                    for state, count in sorted(self.oauth_grants.items())
                ),
            ]
        return lines


def _state_lines(states: Iterable[tuple[str, str]], tools: int) -> list[str]:
    return [
        "# HELP pegboard_server_state The state of each server.",
        "# TYPE pegboard_server_state gauge",
        *(f'pegboard_server_state{{server="{_label(server)}",state="{_label(state)}"}} 1' for server, state in states),
        "# HELP pegboard_tools Tools that are listed now.",
        "# TYPE pegboard_tools gauge",
        f"pegboard_tools {tools}",
    ]


def _label(value: str) -> str:
    return value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")
