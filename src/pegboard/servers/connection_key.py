"""The key of a connection: whose it is. The shared one has none; others belong to a client session, to a principal that
signed in to the server itself, or to both."""

from __future__ import annotations

from pegboard.config import ServerSpec

# Behind it stands the principal's id, which may be any text; the key of a session has no space.
_USER = " user:"


def is_per_user(spec: ServerSpec) -> bool:
    """Whether each principal signs in to the server itself."""
    return spec.signs_in and spec.sign_in.per == "user"


def is_shared(spec: ServerSpec) -> bool:
    """Whether one connection serves everybody."""
    return spec.instance != "session" and not is_per_user(spec)


def key_of(spec: ServerSpec, session: str | None, principal_id: str) -> str | None:
    """Whose connection a request takes: that of its session, of its principal, or the shared one (`None`)."""
    own = session if spec.instance == "session" else None
    return f"{own or ''}{_USER}{principal_id}".lstrip(" ") if is_per_user(spec) else own


def session_in(key: str | None) -> str | None:
    """The client session that a connection belongs to, if it belongs to one."""
    return None if key is None else f" {key}".partition(_USER)[0].strip(" ") or None


def principal_in(key: str | None) -> str | None:
    """The id of the principal that a connection belongs to, if it belongs to one."""
    if key is None:
        return None
    _, mark, principal_id = f" {key}".partition(_USER)
    return principal_id if mark else None


def belongs_to(spec: ServerSpec, key: str | None, principal_id: str) -> bool:
    """Whether a connection uses the credentials of this principal, or of the gateway (empty)."""
    return principal_in(key) == principal_id if is_per_user(spec) else True
