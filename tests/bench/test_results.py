"""What the benchmark makes of its numbers."""

from __future__ import annotations

from benchmarks.gateways.report import RATIOS, Ratio, sections
from benchmarks.gateways.results import Results
from benchmarks.gateways.soak import growth


def ratio(start: str) -> Ratio:
    return next(ratio for ratio in RATIOS if ratio.label.startswith(start))


def test_a_ratio_is_the_median_of_the_rounds_ratios() -> None:
    """A slow round is slow for both: only rounds that both were measured in count."""
    results = Results()
    wanted = ratio("calls/s, 16 in flight, HTTP server: Envoy")
    (ours, measure), (theirs, _) = wanted.measures
    for turn, (mine, other) in enumerate([(60, 100), (6, 10), (300, 100)]):
        results.note(ours, measure, turn, mine)
        results.note(theirs, measure, turn, other)
    results.note(ours, measure, 3, 1_000_000)
    assert wanted.value(results) == 0.6
    assert wanted.verdict(0.6) == "bar"
    assert wanted.verdict(1.0) == "goal"
    assert wanted.verdict(0.4) == "below the bar"
    assert wanted.verdict(None) == "not measured"


def test_what_a_gateway_adds_is_compared_without_the_way_there() -> None:
    """Both ratios of times fall, and a strict bar has to be passed."""
    results = Results()
    added = ratio("added p50")
    for (peer, measure), value in zip(added.measures, (3.0, 2.0, 1.0), strict=True):
        results.note(peer, measure, 0, value)
    assert added.value(results) == 2.0
    assert added.verdict(2.0) == "below the bar"
    assert ratio("pegboard stdio as a bridge").verdict(0.5) == "below the bar"


def test_a_peer_that_cannot_is_in_the_table_with_the_reason() -> None:
    """Nothing is hidden; the first reason stays."""
    results = Results()
    results.fail("envoy", "calls/stdio", "over HTTP only")
    results.fail("envoy", "calls/stdio", "later")
    assert sections(results)[-1].rows == [("Envoy, one worker", "calls/stdio", "over HTTP only")]
    assert results.as_json()["could_not"] == {"envoy": {"calls/stdio": "over HTTP only"}}


def test_growth_is_counted_after_the_first_tenth() -> None:
    """What fills up at first is no leak."""
    assert growth([50] * 5 + [100] * 95) == 0.0
    assert growth([100] * 10 + list(range(100, 190))) > 0.8
