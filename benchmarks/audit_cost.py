"""What the audit costs a call: two gateways, one with it and one without, called in turns over the fast path.

Run by hand: `.venv/bin/python benchmarks/audit_cost.py [ROUNDS] [CALLS]`. Prints calls a second and the CPU time of a
call (of the gateway's loop, and of its other threads) for each, and the median ratio of bursts that follow each other.
"""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TOY = Path(__file__).parent.parent / "tests" / "servers" / "toy.py"
CLIENTS = 8


class Gateway:
    """`pegboard serve` with one toy server over stdio."""

    def __init__(self, folder: Path, audit: object) -> None:
        entry = {"command": sys.executable, "args": ["-I", "-S", str(TOY), "{}"]}
        own = {"expose": "all", "toolsets": [], "audit": audit, "storage": f"sqlite:{folder / 'pegboard.db'}"}
        config = folder / "pegboard.json"
        config.write_text(json.dumps({"mcpServers": {"one": entry}, "pegboard": own}))
        env = {**os.environ, "PEGBOARD_STATE_DIR": str(folder / "state")}
        command = [sys.executable, "-m", "pegboard", "serve", "--config", str(config), "--port", "0"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=env)
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        self.port = int(next(word for word in line.split() if word.startswith("http")).split(":")[2].split("/")[0])

    def cpu(self) -> dict[str, float]:
        """Seconds of CPU that each of its threads has used."""
        used = {"loop": 0.0, "threads": 0.0}
        for thread in Path(f"/proc/{self.process.pid}/task").iterdir():
            name = "loop" if thread.name == str(self.process.pid) else "threads"
            used[name] += int((thread / "schedstat").read_text().split()[0]) / 1e9
        return used


class Client:
    """One connection with a session of 2025-11-25."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._session = b""

    async def open(self) -> None:
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port)
        hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
        await self.send({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello})
        await self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    async def send(self, message: object) -> bytes:
        body = json.dumps(message).encode()
        return await self.post(body)

    async def post(self, body: bytes) -> bytes:
        session = (
            b"mcp-session-id: %b\r\nmcp-protocol-version: 2025-11-25\r\n" % self._session if self._session else b""
        )
        head = b"POST /mcp HTTP/1.1\r\nhost: 127.0.0.1:%d\r\ncontent-type: application/json\r\n" % self._port
        accept = b"accept: application/json, text/event-stream\r\n"
        self._writer.write(b"%b%b%bcontent-length: %d\r\n\r\n%b" % (head, accept, session, len(body), body))
        answer = await self._reader.readuntil(b"\r\n\r\n")
        headers = dict(line.lower().split(b": ", 1) for line in answer.split(b"\r\n")[1:-2])
        if b"mcp-session-id" in headers and not self._session:
            self._session = headers[b"mcp-session-id"]
        if b"content-length" in headers:
            return await self._reader.readexactly(int(headers[b"content-length"]))
        if headers.get(b"transfer-encoding") == b"chunked":
            parts = b""
            while size := int(await self._reader.readline(), 16):
                parts += await self._reader.readexactly(size)
                await self._reader.readline()
            await self._reader.readline()
            return parts
        return b""


async def burst(clients: list[Client], calls: int) -> float:
    """Make so many calls; seconds."""
    arguments = {"text": "hello " * 20, "number": 42, "list": [1, 2, 3], "flag": True}

    async def work(client: Client) -> None:
        for number in range(calls // len(clients)):
            params = {"name": "one__echo", "arguments": {**arguments, "at": number}}
            body = json.dumps({"jsonrpc": "2.0", "id": number + 1, "method": "tools/call", "params": params})
            answer = await client.post(body.encode())
            assert b'"result"' in answer, answer

    began = time.perf_counter()
    await asyncio.gather(*map(work, clients))
    return time.perf_counter() - began


async def main(rounds: int, calls: int) -> None:
    """Compare."""
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as two:
        gateways = {"off": Gateway(Path(one), audit=False), "on": Gateway(Path(two), audit=True)}
        try:
            clients = {name: [Client(gateway.port) for _ in range(CLIENTS)] for name, gateway in gateways.items()}
            for each in clients.values():
                await asyncio.gather(*(client.open() for client in each))
                await asyncio.sleep(2)
                await burst(each, 800)
            rates: dict[str, list[float]] = {"off": [], "on": []}
            cpu: dict[str, list[dict[str, float]]] = {"off": [], "on": []}
            for number in range(rounds):
                for name in ("off", "on") if number % 2 else ("on", "off"):
                    before = gateways[name].cpu()
                    rates[name].append(calls / await burst(clients[name], calls))
                    await asyncio.sleep(0.3)
                    after = gateways[name].cpu()
                    cpu[name].append({thread: (after[thread] - before[thread]) / calls * 1e6 for thread in before})
            for name, found in rates.items():
                spent = ", ".join(
                    f"{thread} {statistics.median(each[thread] for each in cpu[name]):.1f}"
                    for thread in ("loop", "threads")
                )
                print(f"audit {name:3}: {statistics.median(found):7.0f} calls/s; µs CPU a call: {spent}")
            # Bursts that follow each other meet the same machine; one an hour later may not.
            ratios = [on / off for on, off in zip(rates["on"], rates["off"], strict=True)]
            print(f"calls/s, on to off: {statistics.median(ratios):.3f} (median of pairs)")
        finally:
            for gateway in gateways.values():
                gateway.process.terminate()
                gateway.process.wait(20)


if __name__ == "__main__":
    asyncio.run(main(int((sys.argv[1:] or ["12"])[0]), int((sys.argv[2:] or ["4000"])[0])))
