"""Schemas as providers take them: an object at the top, and nothing that fitted before is refused."""

from __future__ import annotations

import re
from typing import Any

import jsonschema_rs
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from formats.schemas import Schema, arguments, schemas
from pegboard.formats.schema import object_schema

PLAIN_KEY = re.compile(r"[a-zA-Z0-9_.-]{1,64}")
REFUSED = {"oneOf", "anyOf", "allOf", "not", "enum", "const", "if", "then", "else", "$ref", "$schema", "$id"}


def refuse(uri: str) -> Any:
    raise ValueError(uri)


def validator(schema: Any) -> Any:
    return jsonschema_rs.validator_for(schema, retriever=refuse)


def check(schema: Schema) -> None:
    """What a provider looks at."""
    assert schema["type"] == "object"
    assert isinstance(schema["properties"], dict)
    assert REFUSED.isdisjoint(schema)
    jsonschema_rs.meta.validate(schema)


@settings(deadline=None, max_examples=400, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(schema=schemas(), tried=st.lists(arguments, min_size=12, max_size=12))
def test_what_fits_the_original_fits_what_comes_out(schema: Schema, tried: list[dict[str, Any]]) -> None:
    """For any schema: an object with no composition at the top, all references intact, and nothing narrower."""
    original = validator(schema)
    before = repr(schema)
    for key, items in ((None, False), (PLAIN_KEY, False), (None, True)):
        converted = object_schema(schema, key=key, items=items).schema
        check(converted)
        after = validator(converted)
        for given_arguments in tried:
            if original.is_valid(given_arguments):
                assert after.is_valid(given_arguments), given_arguments
    assert repr(schema) == before
