"""Names: `server__tool` composed, parsed, shortened and guessed; and what a key of a memory may be.

One parser serves discovery and routing. What a model provider would refuse (length, characters) is
cut and given a digest of the original, so that the same tool has the same name on every start.
"""

from __future__ import annotations

import difflib
import hashlib
import re
import unicodedata
from bisect import insort
from collections.abc import Collection
from itertools import islice

from pegboard.edit_distance import distance
from pegboard.normalization import normalize

SEPARATOR = "__"
MAX_NAMESPACE = 128
# What has a longer name at its server is left out of all lists, and of what is kept.
MAX_OWN_NAME = 1024
LONG_NAME = f"its name is longer than {MAX_OWN_NAME:,} characters"
# How many names a filter may have, of an address or of a request.
MOST_IN_FILTER = 100
# Of a longer name of a server, the beginning and a digest.
_MAX_NAME = 200
# To compare two names takes as many steps as the product of their lengths, at worst. So a longer name is like no other,
# and of those that may be like one so many are compared as take these steps.
_MAX_COMPARED, _MOST_STEPS = 100, 100_000
# Of more names than this, only those are compared that begin with the same letters.
_MOST_KNOWN, _ALIKE = 1000, 2
_CLOSE = 0.6
# Two names are apart by so many edits at most, or by this part of the longer one; or one begins or ends with the other.
_MOST_EDITS, _EDITED_PART, _LEAST_PART, _LONG_BEGINNING = 2, 3, 3, 20
# An edit distance takes so many times the steps of a likeness.
_DISTANCE_STEPS = 3
_SNAKE = re.compile(r"[a-z0-9]+(?:_[a-z0-9]+)*")
_BOARD = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
# Of the name of a client, before a digest.
_MAX_CLIENT = 48
_STRANGE = re.compile(r"[^a-zA-Z0-9_-]")
_DIGEST_LENGTH = 8
# What likeness counts that is only in the tool's own name.
_TAIL = 0.95
_UNSEEN = frozenset({"Cc", "Cf", "Zs", "Zl", "Zp"})


def is_snake_case(name: str) -> bool:
    """Whether a name can be a server's or a static tool's: lower case, single underscores inside."""
    return _SNAKE.fullmatch(name) is not None


def fold_server_name(name: str) -> str:
    """The snake_case form of a server's name, stable; `GitHub-Docs` becomes `github_docs`."""
    if len(name) > _MAX_NAME:
        name = f"{name[:_MAX_NAME]} {_digest(name)}"
    if is_snake_case(name):
        return name
    plain = normalize("NFKD", name).encode("ascii", "ignore").decode()
    folded = re.sub(r"[^a-z0-9]+", "_", plain.lower()).strip("_")
    # A name in a script without an ASCII form still needs one of its own.
    return folded or f"server_{_digest(name)}"


def compose(server: str, tool: str) -> str:
    """The full name of a server's tool, before any shortening."""
    return f"{server}{SEPARATOR}{tool}"


def parse(name: str) -> tuple[str, str] | None:
    """Server and tool of a composed name, split at the first `__`; `None` where it is not one."""
    server, separator, tool = name.partition(SEPARATOR)
    if not (separator and server and tool):
        return None
    return server, tool


def foreign_prefix(name: str, server: str, servers: Collection[str]) -> str | None:
    """The other server that a name without a prefix seems to belong to: it begins as that one's names do."""
    parts = parse(name)
    return parts[0] if parts is not None and parts[0] != server and parts[0] in servers else None


def public_name(name: str, max_length: int) -> str:
    """The name as clients and providers accept it; changed only where it must be, and then with a digest."""
    if len(name) <= max_length and _STRANGE.search(name) is None:
        return name
    kept = _STRANGE.sub("_", name)[: max_length - _DIGEST_LENGTH - 1]
    return f"{kept}_{_digest(name)}"


def is_cut_from(shown: str, name: str) -> bool:
    """Whether clients know a name by this one, cut to whatever length, with a digest."""
    kept, _, digest = shown.rpartition("_")
    return _STRANGE.sub("_", name).startswith(kept) and digest == _digest(name)


def key_problem(key: str, most: int) -> str | None:
    """What is wrong with a key or a namespace of memories, if anything is: people must be able to see and type it."""
    if len(key) > most:
        return f"has {len(key):,} characters, {most:,} is the most"
    if not key.strip():
        return "must not be empty"
    if any(character < " " or character == "\x7f" for character in key):
        return "must not contain control characters"
    if all(unicodedata.category(character) in _UNSEEN for character in key):
        return "must have a character that can be seen"
    if any("\ud800" <= character <= "\udfff" for character in key):
        return "is not valid Unicode: it contains half of a surrogate pair"
    return None


def is_board_name(name: str) -> bool:
    """Whether a board may be called this: it stands in addresses."""
    return _BOARD.fullmatch(name) is not None


def fold_board_name(name: str) -> str | None:
    """The name of the board of a client that calls itself this, stable; `None` if that is no name."""
    if is_board_name(name):
        return name
    if not name.strip():
        return None
    # Only the beginning of a long name is looked at; the digest is of all of it.
    kept = re.sub(r"[^A-Za-z0-9_.-]+", "-", normalize("NFKD", name[:_MAX_NAME])).strip("-_.")
    return f"{kept[:_MAX_CLIENT]}-{_digest(name)}".lstrip("-")


def nearest(name: str, known: Collection[str], limit: int = 3) -> list[str]:
    """The known names most like `name`, best first."""
    if len(name) > _MAX_COMPARED:
        return []
    whole, tail = _Likeness(name.lower()), _Likeness(_tail(name).lower())
    short = [candidate for candidate in _likely(name, known) if len(candidate) <= _MAX_COMPARED]
    may_be = ((max(whole.upper_bound(each), tail.upper_bound(_tail(each)) * _TAIL), each) for each in short)
    good: list[tuple[float, str]] = []
    steps = 0
    for most, candidate in sorted((-most, each) for most, each in may_be if most >= _CLOSE):
        # The rest is no closer than these.
        if steps > _MOST_STEPS or (0 < limit <= len(good) and good[limit - 1] <= (most, candidate)):
            break
        steps += len(name) * len(candidate)
        score = max(whole.ratio(candidate), tail.ratio(_tail(candidate)) * _TAIL)
        if score < _CLOSE:
            continue
        steps += _DISTANCE_STEPS * len(name) * len(candidate)
        if _is_near(name, candidate) or _is_near(_tail(name), _tail(candidate)):
            insort(good, (-score, candidate))
    return [candidate for _, candidate in good[:limit]]


def _is_near(name: str, other: str) -> bool:
    """Whether one may have been meant by the other: a likeness alone has `service` for `servers`."""
    short, long = sorted((name.lower(), other.lower()), key=len)
    if len(short) >= _LEAST_PART and (long.startswith(short) or long.endswith(short)):
        return True
    # Clients see long names cut, with a digest at their end.
    shared = next((at for at, (x, y) in enumerate(zip(short, long, strict=False)) if x != y), len(short))
    if shared >= _LONG_BEGINNING and 4 * shared >= 3 * len(short):
        return True
    most = max(_MOST_EDITS, len(long) // _EDITED_PART)
    return len(long) - len(short) <= most and distance(short, long) <= most


def _likely(name: str, known: Collection[str]) -> Collection[str]:
    """Those to compare with: all, or where that would take long those that begin alike, whoever has them."""
    if len(known) <= _MOST_KNOWN:
        return known
    beginning = _tail(name)[:_ALIKE].lower()
    return list(islice((each for each in known if _tail(each)[:_ALIKE].lower() == beginning), _MOST_KNOWN))


def correct_spelling(word: str, known: Collection[str]) -> str | None:
    """The known word that was meant by one in another spelling, or with a slip of the pen in it, if any."""
    spelling = _spelling(word)
    return next((each for each in sorted(known) if _is_slip(spelling, _spelling(each))), None)


def _spelling(word: str) -> str:
    return word.lower().replace("_", "").replace("-", "")


def _is_slip(a: str, b: str) -> bool:
    """Whether at most one letter was added, left out, changed or swapped with the next (edit distance 1)."""
    if abs(len(a) - len(b)) > 1:
        return False
    start = next((at for at, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    rests = {a[start + 1 :] == b[start + 1 :], a[start:] == b[start + 1 :], a[start + 1 :] == b[start:]}
    swapped = a[start : start + 2] == b[start : start + 2][::-1] and a[start + 2 :] == b[start + 2 :]
    return swapped or True in rests


def _tail(name: str) -> str:
    """What a server calls its tool."""
    return name.partition(SEPARATOR)[2] or name


class _Likeness:
    """How much other names are like one, from 0 to 1."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._matcher: difflib.SequenceMatcher[str] = difflib.SequenceMatcher(None, "", name)

    def upper_bound(self, other: str) -> float:
        """How much it is at most: cheap, and rules out almost every name among thousands."""
        self._matcher.set_seq1(other.lower())
        bound = self._matcher.real_quick_ratio()
        return bound if bound < _CLOSE else self._matcher.quick_ratio()

    def ratio(self, other: str) -> float:
        """How much it is."""
        return difflib.SequenceMatcher(None, self._name, other.lower()).ratio()


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST_LENGTH]


_SHORTENED = """
    spec_init spec_create spec_update spec_delete spec_list spec_show spec_validate spec_archive
    registry_init registry_list registry_next registry_update registry_sync registry_deps
    workflow_start workflow_approve workflow_status loop_start loop_cancel loop_get loop_set
    generate generate_component generate_from_spec list_archetypes agent_execute
"""
# Tools of a former release, whose names were longer by a prefix.
FORMER_NAMES = {f"go_ent_{name}": name for name in _SHORTENED.split()}
