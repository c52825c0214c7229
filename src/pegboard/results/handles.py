"""Handles: kept results as arguments of a call, `{"$result": "r_…", "path": "items"}`, which are filled in before it is
sent. A server has to allow that (`results.handles`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeVar

from pegboard import exactjson
from pegboard.exactjson import as_list, as_object
from pegboard.result import ToolFailure, invalid
from pegboard.results.keeper import HANDLE_KEY
from pegboard.results.parameters import Parameter
from pegboard.results.reader import ResultReader, carry
from pegboard.storage.results import ResultOwner

_PATH = "path"
_MOST = 16
# Among so many values of a call a handle is looked for that its server does not take.
_MOST_VALUES = 5000
# Of all that is filled in together: the call is written in one piece.
MOST_CHARACTERS = 64_000_000

# The id of a result, and a path in it.
Handle = tuple[str, str | None]
T = TypeVar("T")


def has_handle(arguments: Any) -> bool:
    """Whether there is one somewhere in these arguments."""
    left = [arguments]
    while left:
        value = left.pop()
        if (members := as_object(value)) is not None:
            if HANDLE_KEY in members:
                return True
            left += members.values()
        else:
            left += as_list(value) or ()
    return False


def may_have_handle(arguments: bytes) -> bool:
    """Whether there may be one in arguments that are still JSON."""
    return b'"$result"' in arguments or b"\\u00" in arguments


def names_result(arguments: bytes) -> bool:
    """Whether arguments that are still JSON have a member that is called like the one of a handle."""
    return b'"$result"' in arguments


async def refuse_handles(arguments: Mapping[str, Any], reader: ResultReader, owner: ResultOwner, server: str) -> None:
    """Refuse handles of the owner's kept results for a server that does not take them: it would be given the handle
    itself. Anything else that looks like one is for the server to understand."""
    for place, result_id in list(_find_handles(arguments))[:_MOST]:
        if await reader.knows(result_id, owner):
            raise invalid(
                f'{place[:200]}: {{"{HANDLE_KEY}": …}} stands for a kept result, which tools of {server} do not take. '
                f'"results": {{"handles": true}} in the entry of {server} in the config allows it; without it, read '
                "the result with result_read, and write what is needed of it"
            )


def _find_handles(arguments: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Where in these arguments there is exactly a handle, and of which result."""
    left: list[tuple[str, Any]] = list(arguments.items())
    for place, value in left:
        if (members := as_object(value)) is not None:
            result_id = members.get(HANDLE_KEY)
            if isinstance(result_id, str) and members.keys() <= {HANDLE_KEY, _PATH}:
                yield place, result_id
            inner = [(f"{place}.{key}", item) for key, item in islice(members.items(), _MOST_VALUES)]
        else:
            inner = [(f"{place}[{at}]", item) for at, item in enumerate((as_list(value) or ())[:_MOST_VALUES])]
        left += inner[: max(_MOST_VALUES - len(left), 0)]


@dataclass(frozen=True, slots=True)
class _Use:
    """A handle in the arguments: where it stands, and what may be put there."""

    handle: Handle
    place: str
    parameter: Parameter


async def fill_handles(
    arguments: Mapping[str, Any], schema: Any, reader: ResultReader, owner: ResultOwner, take: Callable[[int], object]
) -> dict[str, Any]:
    """The arguments with what their handles stand for; `ToolFailure` for one that stands for nothing. Room for it is
    taken before it is read, or as soon as its size is known."""
    parameters = Parameter(schema)
    uses: list[_Use] = []
    # Each with the first place where it stands, and how often it does: every time is sent.
    places: dict[Handle, str] = {}
    for use in (use for key, item in arguments.items() for use in _list_uses(item, key, parameters.member(key))):
        uses.append(use)
        places.setdefault(use.handle, use.place)
        if len(places) > _MOST:
            raise invalid(f"arguments: more than {_MOST} different kept results, or parts of them, in one call")
    known = await _read_all(places, Counter(use.handle for use in uses), reader, owner, take)
    are_texts = [use.parameter.wants_text(known[use.handle]) for use in uses]
    wanted = {use.handle for use, is_text in zip(uses, are_texts, strict=True) if is_text}
    texts = {handle: await _write(handle, known[handle], reader, owner) for handle in wanted}
    following = iter([(texts if is_text else known)[use.handle] for use, is_text in zip(uses, are_texts, strict=True)])
    return {key: _fill(item, following) for key, item in arguments.items()}


async def _read_all(
    places: Mapping[Handle, str],
    uses: Mapping[Handle, int],
    reader: ResultReader,
    owner: ResultOwner,
    take: Callable[[int], object],
) -> dict[Handle, Any]:
    whole = {handle: await _at(places[handle], reader.measure(handle[0], owner)) for handle in places if not handle[1]}
    size = sum(size * uses[handle] for handle, size in whole.items())
    left = _leave(MOST_CHARACTERS, size)
    take(size)
    known: dict[Handle, Any] = {}
    for handle, place in places.items():
        most = whole.get(handle, left // uses[handle])
        part = await _at(place, reader.part(*handle, owner, most))
        if part is None:
            raise _too_many()
        known[handle], size = part
        if handle not in whole:
            left = _leave(left, size * uses[handle])
            take(size * uses[handle])
    return known


async def _write(handle: Handle, value: Any, reader: ResultReader, owner: ResultOwner) -> str:
    """A value as the JSON text that it was."""
    result_id, path = handle
    if path:
        return exactjson.dump(value).decode()
    kept, text = await reader.text(result_id, owner)
    start, end = kept.json or (0, kept.characters)
    return carry(text[start:end])


def _leave(left: int, taken: int) -> int:
    if taken > left:
        raise _too_many()
    return left - taken


def _too_many() -> ToolFailure:
    return invalid(
        f"arguments: kept results of more than {MOST_CHARACTERS:,} characters in one call: use path for a part"
    )


async def _at(place: str, reading: Awaitable[T]) -> T:
    """What is read for a place in the arguments, which its failure names."""
    try:
        return await reading
    except ToolFailure as exc:
        raise ToolFailure(exc.error.code, f"{place[:200] or 'arguments'}: {exc}", retryable=False) from None


def _list_uses(value: Any, place: str, parameter: Parameter) -> Iterator[_Use]:
    """The handles in a value, in the order in which they are filled in."""
    if (items := as_list(value)) is not None:
        for number, item in enumerate(items):
            yield from _list_uses(item, f"{place}[{number}]", parameter.item())
    elif (members := as_object(value)) is not None:
        if HANDLE_KEY in members:
            yield _Use(_read_handle(members, place), place, parameter)
            return
        for key, item in members.items():
            yield from _list_uses(item, f"{place}.{key}", parameter.member(key))


def _fill(value: Any, following: Iterator[Any]) -> Any:
    if (items := as_list(value)) is not None:
        return [_fill(item, following) for item in items]
    if (members := as_object(value)) is None:
        return value
    if HANDLE_KEY in members:
        return next(following)
    return {key: _fill(item, following) for key, item in members.items()}


def _read_handle(members: Mapping[str, Any], place: str) -> Handle:
    result_id, path = members[HANDLE_KEY], members.get(_PATH)
    others = members.keys() - {HANDLE_KEY, _PATH}
    if not isinstance(result_id, str) or not isinstance(path, str | None) or others:
        raise invalid(
            f'{place[:200]}: a kept result is written {{"{HANDLE_KEY}": "r_…", "{_PATH}": "…"}}, and nothing else'
        )
    return result_id, path
