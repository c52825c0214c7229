"""Schemas as providers take them: an object at the top, and nothing that fitted before is refused."""

from __future__ import annotations

import re
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from formats.schemas import Schema, arguments, schemas
from pegboard.formats import walk
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
        converted = object_schema(schema, key=key, items=items, plain_patterns=items).schema
        check(converted)
        after = validator(converted)
        for given_arguments in tried:
            if original.is_valid(given_arguments):
                assert after.is_valid(given_arguments), given_arguments
    assert repr(schema) == before


def converted(schema: Any, **how: Any) -> tuple[Schema, str]:
    found = object_schema(schema, **how)
    check(found.schema)
    return found.schema, found.words


@pytest.mark.parametrize(
    "schema", [True, False, None, 5, "x", [], {}, {"type": "object"}, {"type": ["object", "null"]}]
)
def test_there_is_always_an_object(schema: Any) -> None:
    """Whatever is given, also what is no schema at all."""
    assert converted(schema) == ({"type": "object", "properties": {}}, "")


def test_a_plain_schema_stays_as_it_is() -> None:
    """Definitions, references, formats and bounds below the top: the same objects, not only equal ones."""
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "description": "d",
        "properties": {
            "a": {"$ref": "#/$defs/A"},
            "b": {"oneOf": [{"format": "uri"}, {"minimum": 3}]},
            "c": {"$ref": "#"},
        },
        "$defs": {"A": {"type": "object", "properties": {"self": {"$ref": "#/$defs/A"}}}},
        "x-own": 1,
    }
    found, words = converted(schema)
    assert found == {key: value for key, value in schema.items() if key != "$schema"}
    assert found["properties"] is schema["properties"]
    assert words == ""


PATTERN = {"patternProperties": {"^a": {"type": "string"}}, "additionalProperties": {"type": "integer"}}


@pytest.mark.parametrize(
    ("schema", "fitting"),
    [
        # What a pattern fits is not judged as an additional property.
        ({"allOf": [PATTERN, {"properties": {"ab": {"minLength": 1}}}]}, {"ab": "x", "b": 1}),
        ({"anyOf": [PATTERN, {"properties": {"ab": {"type": "boolean"}}, "required": ["ab"]}]}, {"ab": "x"}),
        (
            {"anyOf": [{"patternProperties": {"^a": {}}}, {"required": ["z"]}], "unevaluatedProperties": False},
            {"ab": 1},
        ),
        (
            {"anyOf": [{"patternProperties": {"a": {"const": 1}}}, {"patternProperties": {"a": {"const": True}}}]},
            {"a": True},
        ),
        # What counts as known to `unevaluatedProperties`.
        ({"allOf": [{"additionalProperties": True}], "unevaluatedProperties": False}, {"q": 1}),
        ({"allOf": [{"additionalProperties": {"type": "integer"}}], "unevaluatedProperties": False}, {"q": 1}),
        ({"allOf": [{"unevaluatedProperties": True}], "unevaluatedProperties": False}, {"q": 1}),
        (
            {"anyOf": [{"properties": {"a": {}}}, {"properties": {"b": {}}}], "unevaluatedProperties": False},
            {"a": 1, "b": 1},
        ),
        (
            {
                "allOf": [{}],
                "properties": {"a": {}},
                "dependentSchemas": {"a": {"properties": {"b": {}}}},
                "unevaluatedProperties": False,
            },
            {"a": 1, "b": 2},
        ),
        # A closed part beside an open one, and constants that are equal in Python alone.
        ({"anyOf": [{"properties": {"a": {}}, "additionalProperties": False}, {"required": ["c"]}]}, {"c": 1, "d": 2}),
        ({"oneOf": [{"properties": {"a": {"const": 1}}}, {"properties": {"a": {"const": True}}}]}, {"a": True}),
        ({"enum": [{"a": 0}, {"a": False}]}, {"a": False}),
        # A condition that does not hold, and a part that no object fits.
        ({"if": {"required": ["a"]}, "then": {"properties": {"b": {"type": "string"}}}}, {"b": 1}),
        ({"if": False, "then": False, "else": {"required": ["b"]}}, {"b": 1}),
        ({"anyOf": [{"type": "string"}, {"type": "object", "required": ["a"]}]}, {"a": 1}),
        # The whole inside of itself, where it may be something else than an object.
        ({"properties": {"a": {"$ref": "#"}}}, {"a": "text"}),
        ({"type": ["object", "null"], "properties": {"a": {"$ref": "#"}}}, {"a": None}),
    ],
)
def test_what_must_not_get_lost(schema: Schema, fitting: dict[str, Any]) -> None:
    """Each of these is where joining could go wrong."""
    assert validator(schema).is_valid(fitting)
    assert validator(converted(schema)[0]).is_valid(fitting)


def test_bounds_and_names_of_all_parts_hold() -> None:
    """Joined as exactly as they can be."""
    found, _ = converted(
        {
            "minProperties": 1,
            "allOf": [
                {"minProperties": 2, "maxProperties": 9, "propertyNames": {"maxLength": 3}},
                {"maxProperties": 5, "propertyNames": {"minLength": 1}, "dependentRequired": {"a": ["b"]}},
                {"dependentRequired": {"a": ["b", "c"]}, "additionalProperties": {"type": "integer"}},
            ],
        }
    )
    assert found == {
        "type": "object",
        "properties": {},
        "minProperties": 2,
        "maxProperties": 5,
        "propertyNames": {"allOf": [{"maxLength": 3}, {"minLength": 1}]},
        "dependentRequired": {"a": ["b", "c"]},
        "additionalProperties": {"type": "integer"},
    }


def test_a_closed_part_closes_the_whole() -> None:
    """What one part forbids is not offered because another one knows it."""
    found, _ = converted(
        {
            "allOf": [
                {"properties": {"a": {"type": "string"}}, "additionalProperties": False},
                {"properties": {"a": {"description": "d"}, "b": {}}},
            ]
        }
    )
    assert found["properties"] == {"a": {"type": "string", "description": "d"}}
    assert found["additionalProperties"] is False


def test_alternatives_with_a_discriminator() -> None:
    """All properties, what all require, the values of the discriminator, and what goes together in words."""
    found, words = converted(
        {
            "type": "object",
            "oneOf": [
                {
                    "title": "Circle",
                    "properties": {"kind": {"const": "circle"}, "radius": {"type": "number", "description": "In mm"}},
                    "required": ["kind", "radius"],
                    "additionalProperties": False,
                },
                {
                    "properties": {"kind": {"const": "box"}, "side": {"type": "number"}, "label": {"type": "string"}},
                    "required": ["kind", "side"],
                    "additionalProperties": False,
                },
            ],
        }
    )
    assert found == {
        "type": "object",
        "properties": {
            "kind": {"enum": ["circle", "box"]},
            "radius": {"type": "number", "description": "In mm"},
            "side": {"type": "number"},
            "label": {"type": "string"},
        },
        "required": ["kind"],
        "additionalProperties": False,
    }
    assert words == (
        'Exactly one of these holds: (1) Circle, with kind = "circle", radius; '
        '(2) with kind = "box", side, optional label.'
    )


def test_open_alternatives_still_show_what_is_meant() -> None:
    """The other alternative admits anything for this property, so it has to be admitted; the type is still told."""
    found, _ = converted({"anyOf": [{"properties": {"a": {"type": "string"}}, "required": ["a"]}, {"required": ["b"]}]})
    assert found["properties"] == {"a": {"anyOf": [{"type": "string"}, {}]}}
    assert "required" not in found


def test_all_parts_of_all_of() -> None:
    """Properties and required ones of all; a property in two parts has to fit both."""
    found, words = converted(
        {
            "allOf": [
                {"$ref": "#/$defs/Paged"},
                {"properties": {"page": {"minimum": 1}, "query": {"type": "string"}}, "required": ["query"]},
            ],
            "$defs": {"Paged": {"properties": {"page": {"type": "integer"}}, "required": ["page"]}},
            "unevaluatedProperties": False,
        }
    )
    assert found["properties"] == {
        "page": {"allOf": [{"type": "integer"}, {"minimum": 1}]},
        "query": {"type": "string"},
    }
    assert found["required"] == ["page", "query"]
    assert found["additionalProperties"] is False
    assert words == ""


def test_a_root_that_is_a_reference() -> None:
    """As some generators write every schema; what it refers to stays where it is, since it may refer to itself."""
    found, _ = converted(
        {
            "$schema": "http://json-schema.org/draft-07/schema#",
            "$ref": "#/definitions/Node",
            "definitions": {
                "Node": {
                    "type": "object",
                    "properties": {"next": {"$ref": "#/definitions/Node"}, "pair": {"items": [{"type": "string"}]}},
                    "required": ["next"],
                }
            },
        }
    )
    assert found["properties"] == {
        "next": {"$ref": "#/definitions/Node"},
        "pair": {"prefixItems": [{"type": "string"}]},
    }
    assert found["required"] == ["next"]
    assert "next" in found["definitions"]["Node"]["properties"]


def test_references_into_what_is_gone() -> None:
    """To a part of an alternative, to the whole, to an item of an old tuple, to a name with odd characters."""
    schema = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "anyOf": [{"properties": {"a/b~c": {"type": "string"}}}, {"required": ["x"]}],
        "properties": {
            "x": {"$ref": "#/anyOf/0/properties/a~1b~0c"},
            "y": {"items": [{"type": "integer"}]},
            "z": {"$ref": "#/properties/y/items/0"},
            "deeper": {"$ref": "#"},
        },
    }
    found, _ = converted(schema)
    after = validator(found)
    for good in ({"x": "text", "z": 1}, {"x": "t", "deeper": {"x": "t", "z": 2}}):
        assert validator(schema).is_valid(good)
        assert after.is_valid(good)
    for bad in ({"x": 5}, {"x": "", "z": "text"}, {"x": "", "deeper": {"z": "text"}}):
        assert not after.is_valid(bad)


def test_references_that_lead_nowhere_are_left_out() -> None:
    """Or to somebody else's address: a provider would refuse every tool of the request."""
    found, _ = converted(
        {
            "type": "object",
            "properties": {
                "a": {"$ref": "#/$defs/Gone", "description": "kept"},
                "b": {"$ref": "https://example.com/schema.json"},
                "c": {"default": {"$ref": "#/is/data"}},
            },
        }
    )
    assert found["properties"] == {"a": {"description": "kept"}, "b": {}, "c": {"default": {"$ref": "#/is/data"}}}


def test_a_document_with_an_address() -> None:
    """References by its own address, and by the name of a part."""
    found, _ = converted(
        {
            "$id": "https://example.com/tool",
            "type": "object",
            "properties": {"a": {"$ref": "https://example.com/tool#/$defs/A"}, "b": {"$ref": "#named"}},
            "$defs": {"A": {"type": "string"}, "B": {"$anchor": "named", "type": "integer"}},
        }
    )
    assert validator(found).is_valid({"a": "x", "b": 1})
    assert not validator(found).is_valid({"a": 1})
    assert not validator(found).is_valid({"b": "x"})


def test_what_cannot_be_said_otherwise_is_said_in_words() -> None:
    """Conditions and exclusions."""
    found, words = converted(
        {
            "type": "object",
            "properties": {"mode": {"enum": ["file", "url"]}},
            "if": {"properties": {"mode": {"const": "file"}}},
            "then": {"required": ["path"], "properties": {"path": {"type": "string"}}},
            "not": {"required": ["secret"]},
        }
    )
    assert found["properties"]["mode"] == {"enum": ["file", "url"]}
    assert found["properties"]["path"] == {"anyOf": [{"type": "string"}, {}]}
    assert words.startswith('If the arguments fit {"properties":{"mode":{"const":"file"}}} then {"required":["path"]')
    assert words.endswith('Not accepted is what fits {"required":["secret"]}.')


def test_what_no_object_fits_is_no_alternative() -> None:
    """Arguments that may also be null, and a condition that has to hold."""
    inner = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
    assert converted({"anyOf": [inner, {"type": "null"}]}) == (inner, "")
    found, _ = converted({"if": {"required": ["a"]}, "then": {"required": ["b"]}, "else": False})
    assert found["required"] == ["a", "b"]


def test_the_whole_inside_of_itself_does_not_take_its_definitions_along() -> None:
    """They stay where they are, once."""
    schema = {"type": "object", "anyOf": [{"required": ["a"]}], "properties": {"a": {"$ref": "#"}}, "$defs": {"D": {}}}
    found, _ = converted(schema)
    assert set(found["$defs"]) == {"D", "root"}
    assert set(found["$defs"]["root"]) == {"type", "anyOf", "properties"}


def test_constants_as_arguments() -> None:
    """A choice of whole argument objects."""
    found, words = converted({"enum": [{"a": 1}, {"a": 2, "b": None}, "no object"]})
    assert found["properties"] == {"a": {"enum": [1, 2]}, "b": {"const": None}}
    assert found["required"] == ["a"]
    assert found["additionalProperties"] is False
    assert "one of" in words


def test_older_drafts_are_said_in_the_words_of_2020() -> None:
    """Tuples, dependencies, exclusive bounds, and `$ref` beside which nothing counts."""
    found, _ = converted(
        {
            "$schema": "http://json-schema.org/draft-04/schema#",
            "type": "object",
            "properties": {
                "n": {"minimum": 1, "exclusiveMinimum": True, "maximum": 9, "exclusiveMaximum": False},
                "t": {"items": [{"type": "string"}], "additionalItems": False},
                "r": {"$ref": "#/definitions/D", "type": "string", "description": "kept"},
                "c": {"const": 1},
            },
            "dependencies": {"n": ["t"], "t": {"required": ["r"]}},
            "definitions": {"D": {"type": "integer"}},
        }
    )
    assert found["properties"] == {
        "n": {"exclusiveMinimum": 1, "maximum": 9},
        "t": {"prefixItems": [{"type": "string"}], "items": False},
        "r": {"$ref": "#/definitions/D", "description": "kept"},
        "c": {},
    }
    assert found["dependentRequired"] == {"n": ["t"]}
    assert found["dependentSchemas"] == {"t": {"required": ["r"]}}


def test_alternatives_without_end_are_not_followed() -> None:
    """A small schema may stand for one of any size: what comes out stays small."""
    defs: Schema = {"l0": {"properties": {"k": {"const": 0}}}}
    for level in range(1, 60):
        below = {"$ref": f"#/$defs/l{level - 1}"}
        sides = [{"allOf": [below, {"properties": {"k": {"maximum": level, "title": side}}}]} for side in "ab"]
        defs[f"l{level}"] = {"anyOf": sides}
    found, words = converted({"type": "object", "$ref": "#/$defs/l59", "$defs": defs})
    assert len(repr(found)) < 500_000
    assert len(words) <= 2_001


def test_a_large_part_is_not_read_again_and_again() -> None:
    """Many alternatives that are the same large one."""
    large = {"properties": {f"p{number}": {"type": "string", "title": f"{number}"} for number in range(3_000)}}
    found, _ = converted({"anyOf": [{"$ref": "#/$defs/Large"}] * 400, "$defs": {"Large": large}})
    assert len(found["properties"]) == 3_000


def test_a_reference_in_a_circle_ends() -> None:
    """At the top, straight or through others."""
    for schema in (
        {"$ref": "#"},
        {"allOf": [{"$ref": "#"}], "properties": {"a": {}}},
        {"$ref": "#/$defs/a", "$defs": {"a": {"anyOf": [{"$ref": "#/$defs/b"}]}, "b": {"$ref": "#/$defs/a"}}},
    ):
        found = object_schema(schema).schema
        assert found["type"] == "object"


def test_many_anchors_are_found_at_once() -> None:
    """Each is looked up, not searched for: a schema that is full of them must not keep everybody waiting."""
    looked_at = 0

    class Counted(dict[str, Any]):
        """A schema that tells how often somebody looked for an anchor in it."""

        def get(self, key: str, default: Any = None) -> Any:
            nonlocal looked_at
            looked_at += key == "$anchor"
            return super().get(key, default)

    properties = {f"p{number}": Counted({"$anchor": f"n{number}", "$ref": f"#n{number + 1}"}) for number in range(200)}
    found, _ = converted({"anyOf": [{"properties": properties}, {"required": ["q"]}]})
    assert list(found["properties"]) == list(properties)
    assert looked_at < 20 * len(properties)


@pytest.mark.parametrize("pattern", [r"^(?!x)a", r"(?<=a)b", r"^\p{L}+$", r"(?<year>\d+)", "["])
def test_regular_expressions_that_openai_refuses_are_told_in_words(pattern: str) -> None:
    """One of them makes it refuse the whole request, strict or not."""
    text = {"type": "string", "pattern": pattern, "description": "Some text"}
    schema = {"type": "object", "properties": {"a": text}}
    found, _ = converted(schema, plain_patterns=True)
    assert found["properties"]["a"] == {
        "type": "string",
        "description": f"Some text\nRegular expression: {pattern}",
    }
    assert text["pattern"] == pattern
    assert converted(schema)[0] == schema


def test_properties_by_such_an_expression_are_any_properties() -> None:
    """And must not be forbidden, now that nothing says that they are there; other expressions stay."""
    schema = {
        "type": "object",
        "properties": {"pattern": {"type": "string", "pattern": "^a+$"}},
        "patternProperties": {"^(?!x)a": {"type": "string"}, "^b": {"type": "integer"}},
        "additionalProperties": False,
    }
    found, _ = converted(schema, plain_patterns=True)
    assert found == {
        "type": "object",
        "properties": {"pattern": {"type": "string", "pattern": "^a+$"}},
        "patternProperties": {"^b": {"type": "integer"}},
        "description": "Regular expression: ^(?!x)a",
    }


LOOKING = {"pattern": "^(?!x)"}


@pytest.mark.parametrize(
    ("inner", "fitting"),
    [
        ({"not": LOOKING}, "xa"),
        ({"if": LOOKING, "then": False}, "xa"),
        ({"oneOf": [LOOKING, {"pattern": "^x"}]}, "xa"),
        ({"oneOf": [LOOKING, {"pattern": "^x"}], "anyOf": [{"type": "string"}]}, "xa"),
        ({"contains": LOOKING, "maxContains": 1}, ["a", "xa"]),
        ({"not": {"$ref": "#/$defs/Looking"}}, "xa"),
        ({"$ref": "#/properties/o/patternProperties/%5E(%3F!x)"}, 5),
    ],
)
def test_what_is_taken_out_makes_nothing_narrower(inner: Schema, fitting: Any) -> None:
    """Where one part may be wider and the whole not, the whole is loosened, too."""
    schema = {
        "type": "object",
        "properties": {"a": inner, "o": {"patternProperties": {"^(?!x)": {"type": "integer"}}}},
        "$defs": {"Looking": LOOKING},
    }
    given_arguments = {"a": fitting}
    assert validator(schema).is_valid(given_arguments)
    found, _ = converted(schema, plain_patterns=True)
    assert validator(found).is_valid(given_arguments)
    for part in walk.schemas(found):
        assert "(?!" not in f"{part.get('pattern')} {list(part.get('patternProperties', ()))}"
