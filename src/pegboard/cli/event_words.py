"""Event words: a plain sentence for what happens around sign-ins, at the door, to large results and to the audit, for
the person at the terminal of `serve`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pegboard.cli.show import one_line

_LONGEST = 300
_SENTENCES = {
    "definitions.changed": "{server}  its {kinds} changed ({what}); {remark}: pegboard changes show {server}",
    "definitions.accepted": "{server}  changes of its definitions were accepted: {count}",
    "definitions.rejected": "{server}  changes of its definitions were rejected: {count}",
    "definitions.lock.unusable": "servers that are locked serve nothing: {reason}",
    "definitions.review.failed": "{server}  what others decided is not in force yet: an error ({error})",
    "definitions.save.failed": "{server}  what is approved of its definitions cannot be stored now: {reason}",
    "definitions.load.failed": "{server}  what is approved of its definitions cannot be read now: {reason}",
    "definitions.storage.away": "decisions about definitions that others make are not noticed now: {reason}",
    "definitions.watch.failed": "decisions about definitions that others make are not noticed now: an error ({error})",
    "result.abridged": "{tool}  its result of {characters} characters was cut to {cap}",
    "result.keep.failed": "a large result could not be kept, so that models have only a part of it: {reason}",
    "result.remove.failed": "a large result that nobody reads any more could not be removed: {reason}",
    "results.clean.failed": "large results that nobody reads any more could not be removed: {reason}",
    "oauth.signed_in": "{server}  signed in",
    "oauth.signed_out": "{server}  signed out",
    "oauth.sign_in.refused": "{server}  not signed in: {reason}",
    "oauth.sign_in.failed": "{server}  the sign-in failed because of an error here ({error}). Begin again: {login}",
    "oauth.grant.ended": "{server}  the sign-in is over: {reason}. Sign in again: {login}",
    "oauth.grant.changed": "{server}  somebody has signed in or out meanwhile, and that counts",
    "oauth.grant.unkept": "{server}  its new tokens cannot be stored now, and are used from memory: {reason}",
    "oauth.renewal.failed": "{server}  the sign-in could not be renewed: {reason}. Next try in {nextTryIn} s",
    "oauth.failed": "{server}  the sign-in could not be used because of an error here ({error})",
    "oauth.storage.away": "sign-ins that others make or end are not noticed now: {reason}",
    "oauth.watch.failed": "sign-ins that others make or end are not noticed now: an error here ({error})",
    "oauth.review.failed": "whose sign-ins are over could not be looked up: {reason}",
    "secrets.key.refused": "warning: nobody can sign in to a server, and sign-ins cannot be used: {reason}",
    "secrets.key.made": "a key that seals sign-ins was made: {place}",
    "secrets.key.readable": "others could read the key in {place} (mode {mode}); now only you can",
    "secrets.key.unreadable": "the key in {place} cannot be used: {reason}",
    "secrets.keyring.failed": "the keyring of this system cannot be used ({reason})",
    "token.added": "token {token} was added",
    "token.rotated": "token {token} has another secret; the one before is refused",
    "token.changed": "token {token} was changed",
    "token.removed": "token {token} was removed",
    "token.invalid": "token {token} lets nobody in: {reason}",
    "tokens.storage.away": "{remark}: {reason}",
    "tokens.storage.back": "changes of tokens are noticed again",
    "tokens.failed": "changes of tokens are not noticed now: an error here ({error})",
    "issuer.keys.failed": "the keys of issuer {issuer} could not be fetched: {reason}",
    "audit.failed": "calls cannot be recorded now: {reason}; {remark}",
    "audit.file.failed": "the file of the audit cannot be written: {reason}",
    "audit.lost": "records of the audit were lost ({records}): {reason}",
    "audit.pruned": "old records of the audit were taken out",
    "audit.recovered": "calls are recorded again",
    "localhost.taken": "{reason}. It has pages at http://localhost, too, so {remark}",
    "localhost.failed": "{reason}",
    "storage.failed": "the storage cannot be used now: {reason}",
    "storage.recovered": "the storage works again",
    "session.ended.for.another": "too many sessions ({sessions}): the one idle for longest was ended for a new one",
    "session.of.another": "somebody came with a session that is not theirs, and was refused",
}


def sentence_for(event: Mapping[str, Any], login: str) -> str | None:
    """What an event means; `None` if there is no sentence for it. `login` is the command that signs in."""
    sentence = _SENTENCES.get(str(event["event"]))
    if sentence is None:
        return None
    said = sentence.format_map({key: one_line(str(value), _LONGEST) for key, value in event.items()} | {"login": login})
    if event["event"] == "result.abridged":
        said += "; the whole is kept for an hour" if event.get("kept") else "; the rest is lost"
    if event["event"] == "oauth.signed_out":
        said += "" if event.get("revoked") else "; the server did not confirm that it has revoked the tokens"
    return said
