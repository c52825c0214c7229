"""What a run prints: ratios first, then the plain numbers, then what could not be measured."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from benchmarks.gateways.calls import LARGE, measure_name
from benchmarks.gateways.peers import PEERS
from benchmarks.gateways.results import Results

OURS = "pegboard"
NOTHING = "-"


@dataclass(frozen=True)
class Section:
    """One table."""

    title: str
    header: tuple[str, ...]
    rows: list[tuple[str, ...]]


@dataclass(frozen=True)
class Ratio:
    """How one number compares with another, and how it should."""

    label: str
    measures: tuple[tuple[str, str], ...]
    combine: Callable[..., float]
    bar: float
    goal: float | None
    # Whether more is better.
    rising: bool
    # The bar itself is not enough.
    strict: bool = False

    def value(self, results: Results) -> float | None:
        """The ratio, as far as it was measured."""
        return results.combined(self.combine, *self.measures)

    def verdict(self, value: float | None) -> str:
        """How it stands."""
        if value is None:
            return "not measured"
        if self.goal is not None and self._reaches(value, self.goal):
            return "goal"
        return "bar" if self._reaches(value, self.bar) else "below the bar"

    def wanted(self, limit: float | None) -> str:
        """A limit as it is written."""
        if limit is None:
            return NOTHING
        sign = ">=" if self.rising else "<" if self.strict else "<="
        return f"{sign} {limit:g}"

    def _reaches(self, value: float, limit: float) -> bool:
        if self.rising:
            return value >= limit
        return value < limit if self.strict else value <= limit


def _divided(ours: float, theirs: float) -> float:
    return ours / theirs


def _added(ours: float, theirs: float, direct: float) -> float:
    return (ours - direct) / (theirs - direct)


_RATE = measure_name("http", "handshake", 16, 0, "rate")
_P50 = measure_name("http", "handshake", 1, 0, "p50")
_STDIO_RATE = measure_name("stdio", "handshake", 16, 0, "rate")


def _against(label: str, measure: str, peer: str, bar: float, goal: float | None, rising: bool) -> Ratio:
    return Ratio(label, ((OURS, measure), (peer, measure)), _divided, bar, goal, rising)


def _variant(label: str, key: str, bar: float) -> Ratio:
    return Ratio(label, ((key, _RATE), (OURS, _RATE)), _divided, bar, 1.0, rising=True)


RATIOS = (
    _against("calls/s, 16 in flight, HTTP server: Envoy", _RATE, "envoy", 0.5, 1.0, rising=True),
    _against("calls/s, 16 in flight, HTTP server: plain SDK gateway", _RATE, "sdk", 8, 15, rising=True),
    _against("calls/s, 16 in flight, HTTP server: FastMCP as documented", _RATE, "fastmcp", 150, 300, rising=True),
    Ratio(
        "added p50, 1 in flight: Envoy's",
        ((OURS, _P50), ("envoy", _P50), ("direct", _P50)),
        _added,
        1.5,
        1.0,
        rising=False,
    ),
    _against("tools/list p50, 1,000 tools: Envoy", "list/1000/p50", "envoy", 0.3, 0.15, rising=False),
    Ratio(
        "calls/s, 16 in flight, stdio server: Pegboard's HTTP server",
        ((OURS, _STDIO_RATE), (OURS, _RATE)),
        _divided,
        0.8,
        1.0,
        rising=True,
    ),
    _variant("calls/s, 16 in flight, HTTP server, with a static token: without", "pegboard_token", 0.97),
    _variant("calls/s, 16 in flight, HTTP server, with a JWT: without", "pegboard_jwt", 0.97),
    _variant("calls/s, 16 in flight, HTTP server, with the audit: without", "pegboard_audit", 0.88),
    Ratio(
        "first complete list of 10 stdio servers, catalog on disk: FastMCP",
        ((OURS, "start/catalog"), ("fastmcp", "start/cold")),
        _divided,
        0.5,
        0.25,
        rising=False,
    ),
    Ratio(
        "pegboard stdio as a bridge, initialize: bare SDK stdio server",
        (("bridge", "stdio/initialize"), ("bare", "stdio/initialize")),
        _divided,
        0.5,
        None,
        rising=False,
        strict=True,
    ),
    Ratio(
        "pegboard stdio alone, initialize: bare SDK stdio server",
        (("alone", "stdio/initialize"), ("bare", "stdio/initialize")),
        _divided,
        1.0,
        None,
        rising=False,
    ),
    Ratio(
        "pegboard stdio alone, first list: bare SDK stdio server",
        (("alone", "stdio/list"), ("bare", "stdio/list")),
        _divided,
        1.0,
        None,
        rising=False,
    ),
)

_SHAPES = (
    ("c=1 p50, ms", 1, 0, "p50"),
    ("c=16 calls/s", 16, 0, "rate"),
    ("c=64 calls/s", 64, 0, "rate"),
    ("c=16 CPU a call, µs", 16, 0, "cpu"),
    ("100 kB c=1 p50, ms", 1, LARGE, "p50"),
    ("100 kB c=16 calls/s", 16, LARGE, "rate"),
)


def sections(results: Results) -> list[Section]:
    """All tables, the ratios first."""
    made = [
        _ratios(results),
        *(
            _calls(results, f"tools/call, {server}, {era} era", kind, era)
            for kind, server in (("http", "HTTP server"), ("stdio", "stdio server behind the HTTP gateway"))
            for era in ("handshake", "modern")
        ),
        _columns(
            results,
            "tools/list p50, 10 servers",
            {"1,000 tools, ms": "list/1000/p50", "5,000 tools, ms": "list/5000/p50"},
            _milliseconds,
        ),
        _columns(
            results,
            "process start to the first complete list, 10 stdio servers",
            {"cold, ms": "start/cold", "catalog on disk, ms": "start/catalog"},
            _milliseconds,
        ),
        _columns(
            results,
            "start over stdio, median of starts",
            {"initialize, ms": "stdio/initialize", "first tools/list, ms": "stdio/list"},
            _milliseconds,
        ),
        _columns(
            results,
            "memory after the run, MB",
            {"calls": "memory/calls/handshake", "1,000 tools": "memory/list/1000", "5,000 tools": "memory/list/5000"},
            _megabytes,
        ),
        _could_not(results),
    ]
    return [section for section in made if section.rows]


def print_tables(parts: Sequence[Section]) -> None:
    """For people at a terminal."""
    console = Console(width=max(120, Console().width))
    for part in parts:
        table = Table(title=part.title, title_justify="left")
        for number, name in enumerate(part.header):
            numeric = number > 0 and part.header[-1] != "reason"
            table.add_column(name, justify="right" if numeric else "left", overflow="fold")
        for row in part.rows:
            table.add_row(*row)
        console.print(table)


def print_markdown(parts: Sequence[Section], setting: str) -> None:
    """For the documentation."""
    print(setting)
    for part in parts:
        print(f"\n{part.title[0].upper()}{part.title[1:]}:\n")
        print(f"| {' | '.join(part.header)} |")
        print(f"|{' --- |' * len(part.header)}")
        for row in part.rows:
            print(f"| {' | '.join(cell.replace('|', '/') for cell in row)} |")


def ratios_as_json(results: Results) -> list[dict[str, object]]:
    """The first table for programs."""
    return [
        {
            "label": ratio.label,
            "value": (value := ratio.value(results)),
            "bar": ratio.bar,
            "goal": ratio.goal,
            "reaches": ratio.verdict(value),
        }
        for ratio in RATIOS
    ]


def _ratios(results: Results) -> Section:
    rows: list[tuple[str, ...]] = []
    for ratio in RATIOS:
        value = ratio.value(results)
        shown = NOTHING if value is None else f"{value:.2f}" if value < 100 else f"{value:.0f}"
        rows.append((ratio.label, shown, ratio.wanted(ratio.bar), ratio.wanted(ratio.goal), ratio.verdict(value)))
    return Section("Pegboard against others", ("ratio", "value", "bar", "goal", "reaches"), rows)


def _calls(results: Results, title: str, kind: str, era: str) -> Section:
    columns = {name: measure_name(kind, era, in_flight, size, value) for name, in_flight, size, value in _SHAPES}
    return _columns(results, title, columns, None)


def _columns(results: Results, title: str, columns: dict[str, str], shown: Callable[[float], str] | None) -> Section:
    rows: list[tuple[str, ...]] = []
    for key, label in labels().items():
        numbers = [results.median(key, measure) for measure in columns.values()]
        if any(number is not None for number in numbers):
            cells = [
                NOTHING if number is None else (shown or _by_name(name))(number)
                for name, number in zip(columns, numbers, strict=True)
            ]
            rows.append((label, *cells))
    return Section(title, ("", *columns), rows)


def _could_not(results: Results) -> Section:
    names = labels()
    rows = [(names[peer], what, why) for peer, reasons in results.reasons.items() for what, why in reasons.items()]
    return Section("could not be measured", ("", "what", "reason"), rows)


def labels() -> dict[str, str]:
    """Everything that has numbers, by its key."""
    stdio = {"bridge": "pegboard stdio, a bridge", "alone": "pegboard stdio, alone", "bare": "bare SDK stdio server"}
    return {peer.key: peer.label for peer in PEERS} | stdio


def _by_name(column: str) -> Callable[[float], str]:
    return _milliseconds if column.endswith("ms") else _microseconds if column.endswith("µs") else _whole


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1000:,.2f}" if seconds < 0.1 else f"{seconds * 1000:,.0f}"


def _microseconds(seconds: float) -> str:
    return f"{seconds * 1e6:,.0f}"


def _megabytes(number: float) -> str:
    return f"{number / 1e6:,.0f}"


def _whole(number: float) -> str:
    return f"{number:,.0f}"
