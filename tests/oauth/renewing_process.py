"""A gateway's sign-ins in a process of its own. Arguments: the storage, the server's address, and the seconds of a lease.

It is told what to do by lines: `look` takes over what others did, `call` has the token ready, as a call does. Each is
answered by a line: a digest of the token, or why there is none.
"""

from __future__ import annotations

import asyncio
import hashlib
import sys

from oauth.grant_stage import Desk, make_spec, open_desk
from pegboard.oauth import renewal
from pegboard.result import ToolFailure


async def do(desk: Desk, command: str) -> str:
    token = desk.token()
    try:
        if command == "look":
            await desk.oauth.logins()
            # What was never read is read now, and nothing is renewed.
            await token._load()  # pyright: ignore[reportAttributeAccessIssue]
            return "ready"
        await token.prepare()
    except ToolFailure as exc:
        return f"failed: {exc}"
    need = token.needs_sign_in()
    return f"needs {need.reason}" if need else hashlib.sha256((token.header or "").encode()).hexdigest()


async def main(place: str, url: str, lease: str) -> None:
    renewal.LEASE = float(lease)
    async with open_desk(place, make_spec(url)) as desk:
        while line := await asyncio.to_thread(sys.stdin.readline):
            print(await do(desk, line.strip()), flush=True)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
