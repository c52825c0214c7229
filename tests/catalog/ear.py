"""An address that tells whether anybody came. It hears what a patched socket would not: requests made in Rust."""

from __future__ import annotations

import socketserver
import threading
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass
class Ear:
    """Listens at `url` and hangs up on every visitor."""

    url: str = ""
    visits: list[bytes] = field(default_factory=list[bytes])


@contextmanager
def listening() -> Generator[Ear]:
    """An ear that is open for a while; a visit is noted before the visitor is let go."""
    ear = Ear()

    class Visit(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            ear.visits.append(self.request.recv(1000))

    with socketserver.TCPServer(("127.0.0.1", 0), Visit) as server:
        ear.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield ear
        finally:
            server.shutdown()
            thread.join()
