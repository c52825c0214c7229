"""The files of the page: their headers, their size, and where the vendored ones come from."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Generator
from pathlib import Path

import pytest

import pegboard
from page import gateway

FOLDER = Path(pegboard.__file__).parent / "gateway/page"
STATIC = FOLDER / "static"
MODULES = FOLDER / "modules"
ROOT = Path(__file__).parents[2]
FILES = sorted(path for path in STATIC.rglob("*") if path.suffix in {".html", ".css", ".js", ".svg"})
BUDGET = 150_000


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Generator[str]:
    """A gateway without servers."""
    with gateway(tmp_path_factory.mktemp("static"), {}) as address:
        yield address


def get(address: str, **headers: str) -> tuple[int, dict[str, str], bytes]:
    """Status, headers and body."""
    try:
        with urllib.request.urlopen(urllib.request.Request(address, headers=headers), timeout=30) as answer:
            return answer.status, {name.lower(): value for name, value in answer.headers.items()}, answer.read()
    except urllib.error.HTTPError as exc:
        return exc.code, {name.lower(): value for name, value in exc.headers.items()}, exc.read()


def test_what_browsers_load_is_made_of_the_modules(tmp_path: Path) -> None:
    """The files that are committed are those that the modules give, byte for byte: `make page` makes them."""
    subprocess.run([sys.executable, ROOT / "scripts/build_page.py", tmp_path / "static"], check=True, timeout=60)
    made, there = (
        {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        for folder in (tmp_path / "static", STATIC)
    )
    assert sorted(made) == sorted(there), "run `make page`"
    assert [name for name in made if made[name] != there[name]] == [], "run `make page`"


def test_everything_is_within_its_budget() -> None:
    """What a browser may load is small, all of it together."""
    assert sum(path.stat().st_size for path in STATIC.rglob("*") if path.is_file()) <= BUDGET


def test_vendored_modules_are_what_their_authors_published() -> None:
    """Each is known by its digest, and its licence is in the package."""
    packages = json.loads((FOLDER / "vendor.json").read_text("utf-8"))
    digests = {name: digest for package in packages for name, digest in package["sha256"].items()}
    there = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in (MODULES / "vendor").glob("*.js")}
    assert there == digests
    for package in packages:
        assert (
            "Permission" in (text := (FOLDER / f"licenses/{package['name']}.txt").read_text("utf-8"))
            or "Apache" in text
        )


@pytest.mark.parametrize("path", ["/", "/docs", *(f"/static/{file.relative_to(STATIC).as_posix()}" for file in FILES)])
def test_every_file_has_strict_headers(url: str, path: str) -> None:
    """Nothing from elsewhere, nothing inline, in nobody's frame; and the same file is not sent twice."""
    status, headers, body = get(url + path)
    assert status == 200
    policy = dict(part.strip().split(" ", 1) for part in headers["content-security-policy"].split(";"))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
    assert policy["frame-ancestors"] == policy["base-uri"] == "'none'"
    assert "unsafe" not in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cross-origin-opener-policy"] == "same-origin"
    assert get(url + path, **{"if-none-match": headers["etag"]})[0] == 304
    packed = get(url + path, **{"accept-encoding": "gzip"})
    assert packed[1]["content-encoding"] == "gzip"
    assert len(packed[2]) < len(body) or len(body) < 100


@pytest.mark.parametrize(
    "path",
    [
        "../vendor.json",
        "%2e%2e/static_files.py",
        "..%2fvendor.json",
        "nothing.js",
        "vendor",
        "",
        "parts/../../vendor.json",
    ],
)
def test_nothing_else_is_served(url: str, path: str) -> None:
    """Only what is listed, whatever a path says."""
    assert get(f"{url}/static/{path}")[0] == 404


def test_pages_have_no_inline_script_or_style() -> None:
    """They would be refused by the browser."""
    for path in STATIC.glob("*.html"):
        text = path.read_text("utf-8")
        assert re.findall(r"<script(?![^>]*\bsrc=)|<style|\bstyle=|\bon[a-z]+=", text) == []


def test_modules_load_nothing_from_elsewhere_and_make_no_markup_of_text() -> None:
    """No address of another host is fetched or imported, and texts of servers stay texts."""
    for path in MODULES.rglob("*.js"):
        if path.parent.name == "vendor":
            continue
        text = path.read_text("utf-8")
        assert not re.search(
            r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|dangerouslySet|\beval\(|new Function", text
        ), path
        assert not re.search(r"""(import|fetch|send|ask)\s*\(?\s*["'`]https?:""", text), path
        assert not re.search(r"localStorage|sessionStorage|indexedDB|document\.cookie", text), path
