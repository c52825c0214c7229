"""Whether calls by an approved schema are taken by another one."""

from __future__ import annotations

from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard.pins.schema_fit import fits_schema

TEXT, WHOLE, NUMBER = {"type": "string"}, {"type": "integer"}, {"type": "number"}


def takes(*required: str, **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required)}


CLOSED = {**takes(a=TEXT), "additionalProperties": False}
TREE: dict[str, Any] = {"$defs": {"n": takes(next={"$ref": "#/$defs/n"}, v=WHOLE)}, "$ref": "#/$defs/n"}
WIDER_TREE: dict[str, Any] = {"$defs": {"n": takes(next={"$ref": "#/$defs/n"}, v=NUMBER)}, "$ref": "#/$defs/n"}

FIT = {
    "the same": (takes("a", a=TEXT), takes("a", a=TEXT)),
    "another text": (takes(a={**TEXT, "description": "x"}), takes(a={**TEXT, "title": "y", "default": "z"})),
    "one more that may be left out": (takes(a=TEXT), takes(a=TEXT, b=WHOLE)),
    "one more in a closed object": (CLOSED, {**takes(a=TEXT, b=WHOLE), "additionalProperties": False}),
    "no longer required": (takes("a", a=TEXT), takes(a=TEXT)),
    "not there any more, and ignored": (takes(a=TEXT, b=TEXT), takes(a=TEXT)),
    "a wider type": (takes(a=WHOLE), takes(a=NUMBER)),
    "one more type": (takes(a=TEXT), takes(a={"type": ["string", "null"]})),
    "one more way": (takes(a=TEXT), takes(a={"anyOf": [TEXT, {"type": "null"}]})),
    "ways in another order": (takes(a={"anyOf": [TEXT, WHOLE]}), takes(a={"anyOf": [NUMBER, TEXT]})),
    "any value": (takes(a=TEXT), takes(a={})),
    "one more value": (takes(a={"enum": ["x"]}), takes(a={"enum": ["x", "y"]})),
    "one value of several": (takes(a={"const": "x"}), takes(a={"enum": ["x", "y"], "type": "string"})),
    "values no longer named": (takes(a={"enum": ["x"]}), takes(a=TEXT)),
    "wider limits": (
        takes(a={**WHOLE, "minimum": 1, "maximum": 9}, b={**TEXT, "minLength": 2, "pattern": "^a"}),
        takes(a={**WHOLE, "minimum": 0, "maximum": 10}, b=TEXT),
    ),
    "items that may be more": (takes(a={"type": "array", "items": WHOLE}), takes(a={"type": "array", "items": NUMBER})),
    "a map that takes more": (
        {"type": "object", "additionalProperties": WHOLE},
        {"type": "object", "additionalProperties": NUMBER},
    ),
    "a schema within itself": (TREE, WIDER_TREE),
    "a reference in place of its schema": (
        takes(a=TEXT),
        {**takes(a={"$ref": "#/$defs/t"}), "$defs": {"t": {**TEXT, "title": "T"}}},
    ),
}
MISFIT = {
    "required now": (takes(a=TEXT), takes("a", a=TEXT)),
    "new and required": (takes(a=TEXT), takes("b", a=TEXT, b=TEXT)),
    "gone from a closed object": (
        {**takes(a=TEXT, b=TEXT), "additionalProperties": False},
        {**takes(a=TEXT), "additionalProperties": False},
    ),
    "closed now": (takes(a=TEXT), CLOSED),
    "another type": (takes(a=TEXT), takes(a=WHOLE)),
    "a narrower type": (takes(a=NUMBER), takes(a=WHOLE)),
    "a type where there was none": (takes(a={}), takes(a=TEXT)),
    "one value fewer": (takes(a={"enum": ["x", "y"]}), takes(a={"enum": ["x"]})),
    "values where there were none": (takes(a=TEXT), takes(a={"enum": ["x"]})),
    "one way fewer": (takes(a={"anyOf": [TEXT, WHOLE]}), takes(a={"anyOf": [TEXT]})),
    "a higher minimum": (takes(a={**WHOLE, "minimum": 1}), takes(a={**WHOLE, "minimum": 2})),
    "a new maximum": (takes(a=WHOLE), takes(a={**WHOLE, "maximum": 5})),
    "a new pattern": (takes(a=TEXT), takes(a={**TEXT, "pattern": "^a"})),
    "another pattern": (takes(a={**TEXT, "pattern": "^b"}), takes(a={**TEXT, "pattern": "^a"})),
    "a format": (takes(a=TEXT), takes(a={**TEXT, "format": "date"})),
    "narrower items": (takes(a={"type": "array", "items": NUMBER}), takes(a={"type": "array", "items": WHOLE})),
    "a map that takes less": (
        {"type": "object", "additionalProperties": NUMBER},
        {"type": "object", "additionalProperties": WHOLE, "properties": {}},
    ),
    "an unknown keyword": (takes(a=TEXT), takes(a={**TEXT, "x-mcp-header": "A"})),
    "an unknown keyword that is gone": (takes(a={**TEXT, "x-mcp-header": "A"}), takes(a=TEXT)),
    "another oneOf": (takes(a={"oneOf": [TEXT]}), takes(a={"oneOf": [TEXT, WHOLE]})),
    "the same words, another meaning": (
        {**takes(a={"not": {"$ref": "#/$defs/t"}}), "$defs": {"t": TEXT}},
        {**takes(a={"not": {"$ref": "#/$defs/t"}}), "$defs": {"t": WHOLE}},
    ),
    "a reference to elsewhere": (takes(a=TEXT), takes(a={"$ref": "https://example.com/s"})),
    "a reference to nothing": (takes(a=TEXT), takes(a={"$ref": "#/$defs/none"})),
    "a member that only patterns describe now": (
        takes(a=TEXT),
        {"type": "object", "patternProperties": {"^a$": WHOLE}},
    ),
    "nothing at all": (takes(a=TEXT), takes(a=False)),
    "no schema": (takes(a=TEXT), None),
}


@pytest.mark.scenario("changes: A schema fits only where that is sure")
@pytest.mark.parametrize("case", FIT)
def test_what_asks_for_no_more_fits(case: str) -> None:
    """A call by the first schema is taken by the second."""
    assert fits_schema(*FIT[case])


@pytest.mark.scenario("changes: A schema fits only where that is sure")
@pytest.mark.parametrize("case", MISFIT)
def test_what_may_refuse_a_call_does_not_fit(case: str) -> None:
    """In doubt it does not."""
    assert not fits_schema(*MISFIT[case])


def test_a_hostile_schema_is_given_up_soon() -> None:
    """Choices within choices would take for ever."""

    def nest(depth: int, leaf: Any) -> Any:
        return leaf if depth == 0 else {"anyOf": [nest(depth - 1, leaf), {**nest(depth - 1, leaf), "title": "x"}]}

    assert not fits_schema(nest(9, TEXT), nest(9, WHOLE))


def test_long_values_behind_many_references_are_given_up_soon() -> None:
    """15 kB would take minutes if all values were compared with all, again for each reference."""

    def refer(values: list[int]) -> Any:
        return {"$defs": {"e": {"enum": values}}, **takes(p={"anyOf": [{"$ref": "#/$defs/e"}] * 700})}

    values = list(range(1500))
    assert not fits_schema(refer(values[::-1]), refer([*values[1:], -1]))


def test_a_long_list_of_values_fits_in_another_order() -> None:
    """Each value is looked up, by what is written: members have no order, and true is not 1."""
    values: list[Any] = [*range(20_000), {"a": 1, "b": [1.5]}, True]
    assert fits_schema(takes(a={"enum": values}), takes(a={"enum": [{"b": [1.5], "a": 1}, True, *values[19_999::-1]]}))
    assert not fits_schema(takes(a={"enum": [*values, 1.0]}), takes(a={"enum": values}))


values = st.one_of(st.none(), st.booleans(), st.integers(-3, 3), st.floats(-3, 3), st.sampled_from(["", "a", "bb"]))
leaves = st.one_of(
    st.sampled_from([{}, True, TEXT, WHOLE, NUMBER, {"type": "null"}, {"type": ["string", "integer"]}]),
    st.builds(
        lambda low, high: {"type": "integer", "minimum": low, "maximum": high}, st.integers(-3, 3), st.integers(-3, 3)
    ),
    st.builds(lambda size: {"type": "string", "maxLength": size}, st.integers(0, 2)),
    st.builds(lambda given: {"enum": given}, st.lists(values, min_size=1, max_size=3)),
)
schemas = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.builds(lambda ways: {"anyOf": ways}, st.lists(inner, min_size=1, max_size=3)),
        st.builds(lambda items: {"type": "array", "items": items}, inner),
        st.builds(
            lambda a, b, required, rest: {
                "type": "object",
                "properties": {"a": a, "b": b},
                "required": required,
                "additionalProperties": rest,
            },
            inner,
            inner,
            st.lists(st.sampled_from(["a", "b"]), unique=True),
            st.one_of(st.booleans(), inner),
        ),
    ),
    max_leaves=4,
)
samples = st.recursive(
    values,
    lambda inner: st.one_of(
        st.lists(inner, max_size=2), st.dictionaries(st.sampled_from(["a", "b"]), inner, max_size=2)
    ),
    max_leaves=4,
)


@pytest.mark.scenario("changes: A schema fits only where that is sure")
@given(before=schemas, after=schemas, given_values=st.lists(samples, min_size=1, max_size=8))
def test_a_yes_is_never_wrong(before: Any, after: Any, given_values: list[Any]) -> None:
    """Where a schema is said to fit, no value that the first takes is refused by the second."""
    if not fits_schema(before, after):
        return
    first, second = jsonschema_rs.validator_for(before), jsonschema_rs.validator_for(after)
    for value in given_values:
        assert not first.is_valid(value) or second.is_valid(value), (before, after, value)
