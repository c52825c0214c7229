"""What `doctor` says of who may come in: a gateway that is open, tokens that are over or soon will be, issuers that no
rule is for, rules that name what there is not."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from pegboard.access.rule_words import name_rule
from pegboard.cli.rest_client import connect
from pegboard.cli.show import ago

if TYPE_CHECKING:
    from pegboard.access.settings import AuthSettings, IssuerSettings
    from pegboard.config import Location, Settings

# What it is about, how bad it is, what is so, and what to do.
AccessFinding = tuple[str, str, str, str]
_SOON = timedelta(days=7)
_LONG_UNUSED = timedelta(days=7)
_ABOUT = "access"


def look_at_access(location: Location, settings: Settings) -> list[AccessFinding]:
    """Ask the gateway that runs, or the storage."""
    gateway = connect(location)
    answer = gateway.tokens()
    if "error" in answer:
        # The storage has a finding of its own.
        return []
    tokens: list[dict[str, Any]] = answer["data"]["tokens"]
    status: dict[str, Any] = (gateway.status().get("data") or {}) if gateway.is_running else {}
    now = datetime.now(UTC)
    return [
        *_look_at_gateway(status, settings.auth, tokens),
        *_look_at_issuers(settings.auth),
        *asyncio.run(_ask_issuers(settings.auth)),
        *_look_at_rules(gateway.get("/api/rules").get("data") or {"rules": ()}),
        *(found for token in tokens for found in _look_at_token(token, now)),
    ]


def _look_at_gateway(
    status: Mapping[str, Any], auth: AuthSettings, tokens: Sequence[Mapping[str, Any]]
) -> Iterator[AccessFinding]:
    live = sum(token["state"] == "active" for token in tokens)
    if status.get("reach") == "network" and status.get("open"):
        said = "other machines can reach the gateway, and everybody is let in without a token"
        yield _ABOUT, "warning", said, "pegboard token add NAME, then start it without --insecure"
    elif status.get("reach") == "network" and not live and not auth.issuers:
        said = "other machines can reach the gateway, and nobody there can come in: there are no tokens"
        yield _ABOUT, "warning", said, "pegboard token add NAME"
    elif live:
        yield _ABOUT, "ok", f"{live} token{'' if live == 1 else 's'}", ""


def _look_at_issuers(auth: AuthSettings) -> Iterator[AccessFinding]:
    """A JWT is let in by a rule that names it, and by nothing else."""
    names = [name for rule in auth.rules for name in rule.who]
    if auth.issuers and all(name == "local" or name.startswith("token:") for name in names):
        said = "auth.issuers has an issuer, but no rule of auth.rules is for its users: nobody gets in"
        yield _ABOUT, "warning", said, 'add a rule, for example {"who": ["*"], "servers": ["github"]}'


async def _ask_issuers(auth: AuthSettings) -> list[AccessFinding]:
    """Whether each issuer's keys can be had, and for whom its tokens have to be."""
    found = await asyncio.gather(*map(_ask_issuer, auth.issuers))
    if auth.public_url:
        return found
    said = "its tokens must be for the address at which clients reach this gateway, and none is set"
    advice = 'set auth.publicUrl to that address, or "audience" of the issuer to what its tokens have as aud'
    return found + [(_name(each), "warning", said, advice) for each in auth.issuers if not each.audience]


async def _ask_issuer(issuer: IssuerSettings) -> AccessFinding:
    from pegboard.auth.jwks import IssuerKeys
    from pegboard.result import ToolFailure

    try:
        count = await IssuerKeys(issuer).count()
    except ToolFailure as exc:
        advice = "write issuer exactly as its tokens have it (iss), and see that this machine reaches it"
        more = "; without metadata, set jwksUrl" if not issuer.jwks_url else ""
        return _name(issuer), "warning", f"nobody gets in with its tokens: {exc}", f"{advice}{more}"
    if not count:
        said = "nobody gets in with its tokens: it has no key that verifies signatures"
        return _name(issuer), "warning", said, "see whether jwksUrl, or jwks_uri of its metadata, is the right address"
    return _name(issuer), "ok", f"its metadata and {count} key{'' if count == 1 else 's'} were fetched", ""


def _name(issuer: IssuerSettings) -> str:
    return f"issuer {issuer.issuer}"


def _look_at_rules(data: Mapping[str, Any]) -> Iterator[AccessFinding]:
    for rule in data["rules"]:
        for remark in rule["remarks"]:
            yield name_rule(rule["number"]), "warning", remark, "correct it in the config, unless that is still to come"
    for entry in data.get("servers", ()):
        for remark in entry["remarks"]:
            yield f"server {entry['server']}", "warning", remark, "correct it in the server's entry"


def _look_at_token(token: Mapping[str, Any], now: datetime) -> Iterator[AccessFinding]:
    about, name = f"token {token['name']}", token["name"]
    for remark in token.get("remarks", ()):
        yield (
            about,
            "warning",
            remark,
            f"pegboard token change {name} --server NAME, unless that is still to come",
        )
    if token["state"] == "invalid":
        yield about, "warning", f"nobody gets in with it: {token['problem']}", f"pegboard token remove {name}"
        return
    if token["state"] == "expired":
        advice = f"pegboard token remove {name}, or pegboard token rotate {name} --expires 30d"
        yield about, "warning", f"it expired {ago(token['expiresAt'])}", advice
        return
    expires = token["expiresAt"] and datetime.fromisoformat(token["expiresAt"])
    if expires and expires - now < _SOON:
        days = max((expires - now) // timedelta(days=1), 0)
        left = f"in {days} day{'' if days == 1 else 's'}" if days else "today"
        yield about, "warning", f"it expires {left}", f"pegboard token rotate {name} --expires 30d"
    if token["lastUsedAt"] is None and now - datetime.fromisoformat(token["createdAt"]) > _LONG_UNUSED:
        said = f"it was made {ago(token['createdAt'])} and never used"
        yield about, "warning", said, f"pegboard token remove {name}"
