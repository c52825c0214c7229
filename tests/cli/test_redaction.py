"""No command, no reply and no log line shows a server's secrets, wherever they stand and whoever repeats them."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from forking import warm_start
from harness import Entry, write_config

# Says all that it was given, and dies.
_TELL_TALE = """
import os, sys
print(sys.argv[1:], file=sys.stderr)
print({n: v for n, v in os.environ.items() if n.startswith(("MY_", "GITHUB", "DATA"))}, file=sys.stderr)
print(os.environ.get("MY_PRIVATE_PEM", ""), file=sys.stderr)
sys.exit(1)
"""


class _Echo(BaseHTTPRequestHandler):
    """Answers every request with an error that repeats its address and its headers."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("content-length", 0)))
        body = (f'{{"jsonrpc":"2.0","id":1,"error":{{"code":-32000,"message":"{self.path} {self._said()}"}}}}').encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _said(self) -> str:
        return " ".join(self.headers.values()).replace('"', "")

    def log_message(self, format: str, *args: Any) -> None:
        del format, args


@contextmanager
def _echo() -> Generator[int]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Echo)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _servers(port: int) -> dict[str, Entry]:
    """Secrets in every place, each called s3cr3t-NUMBER."""
    script = ["-I", "-S", "-c", _TELL_TALE]
    options = ["--token", "s3cr3t-01", "--api-key=s3cr3t-02", "-e", "GITHUB_PAT=s3cr3t-03", "--plain", "${MY_VAR}"]
    options += ["--header", "Authorization: Bearer s3cr3t-04", "postgresql://ada:s3cr3t-05@db.example/x"]
    env = {"GITHUB_PAT": "s3cr3t-06", "DATABASE_URL": "s3cr3t-07", "MY_PLAIN": "${MY_VAR}"}
    env |= {"MY_ADDRESS": "redis://:s3cr3t-08@h/0", "MY_HEADERS": '{"X-Key": "s3cr3t-09"}'}
    env |= {"MY_PRIVATE_PEM": "-----BEGIN-----\ns3cr3t-10-line\n-----END-----"}
    headers = {"Authorization": "Bearer s3cr3t-11", "X-Team": "s3cr3t-12", "Cookie": "a=s3cr3t-13; b=s3cr3t-14"}
    query = "api_key=s3cr3t-15&x=s3cr3t-16"
    return {
        "dies": {"command": sys.executable, "args": [*script, *options], "env": env, "startTimeout": 20},
        "refuses": {"url": f"http://ada:s3cr3t-17@127.0.0.1:{port}/s3cr3t-18-is-a-key-x/?{query}", "headers": headers},
        "gone": {"url": f"http://s3cr3t-19@127.0.0.1:9/mcp?sig=s3cr3t-20&{query}", "headers": headers},
        "args": {"command": "x", "args": "s3cr3t-21"},
        "headers": {"url": "http://127.0.0.1:9/", "headers": "s3cr3t-22"},
        "unset": {"command": "x", "args": ["--token=s3cr3t-23", "${NOT_SET}"], "env": {"API_KEY": "s3cr3t-24"}},
    }


def test_planted_secrets_are_never_told(tmp_path: Path) -> None:
    """`doctor`, `servers`, `refresh`, REST, metrics and the log at debug, while servers repeat what they were given."""
    environment = {**os.environ, "MY_VAR": "s3cr3t-00", "PEGBOARD_LOG": "debug"}

    def run(*command: str) -> str:
        done = subprocess.run(
            [*warm_start(), *command, "--config", str(config)],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            env=environment,
        )
        return done.stdout + done.stderr

    with _echo() as port:
        config = write_config(tmp_path / "pegboard.json", _servers(port))
        said = [run("doctor"), run("doctor", "--json"), run("refresh"), run("servers"), run("servers", "--json")]
        command = [*warm_start(), "serve", "--port", "0", "--config", str(config)]
        with (
            (tmp_path / "log").open("w") as log,
            subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True, env=environment) as gateway,
        ):
            assert gateway.stdout is not None
            url = next(word for word in gateway.stdout.readline().split() if word.startswith("http"))
            said += [run("refresh", "--json"), run("servers")]
            for path in ("/api/servers", "/api/tools", "/metrics"):
                with urllib.request.urlopen(url.removesuffix("/mcp") + path, timeout=20) as answer:
                    said.append(answer.read().decode())
            gateway.terminate()
            gateway.communicate(timeout=20)
        said.append((tmp_path / "log").read_text("utf-8"))
    assert "[redacted]" in said[0]
    assert "tools.discovery.server.failed" in said[-1]
    assert [line for text in said for line in text.splitlines() if "s3cr3t" in line] == []
