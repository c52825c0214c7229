"""The sign-ins of a gateway, in a process of its own. Arguments: the storage, the server, and the seconds of a lease.

It is told what to do by lines: `look` takes over what others did, `call` has the token ready, as a call does. Each is
answered by a line: its process, a digest of the token, or why there is none.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import sys

from pegboard.config import ServerSpec, Settings
from pegboard.metrics import Metrics
from pegboard.oauth import renewal
from pegboard.oauth.live_token import LiveToken
from pegboard.oauth.oauth import OAuth
from pegboard.result import ToolFailure
from pegboard.storage import open_storage


async def do(oauth: OAuth, spec: ServerSpec, command: str) -> str:
    token = oauth.authorize(spec, None)
    assert isinstance(token, LiveToken)
    try:
        if command == "look":
            await oauth.logins()
            # What was never read is read now, and nothing is renewed.
            await token._load()
            return str(os.getpid())
        await token.prepare()
    except ToolFailure as exc:
        return f"failed: {exc}"
    need = token.needs_sign_in()
    return f"needs {need.reason}" if need else hashlib.sha256((token.header or "").encode()).hexdigest()


async def main(place: str, url: str, lease: str) -> None:
    renewal.LEASE = float(lease)
    spec = ServerSpec(name="notes", given_name="notes", transport="http", url=url)
    storage = open_storage(place)
    await storage.open()
    oauth = OAuth(storage, place, lambda: Settings(servers={"notes": spec}), Metrics(), lambda *_: None)
    while line := await asyncio.to_thread(sys.stdin.readline):
        print(await do(oauth, spec, line.strip()), flush=True)
    await oauth.close()
    await storage.close()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
