"""`changes …` and `lock`, with a gateway that runs and without one."""

from __future__ import annotations

import json
import shlex
import subprocess
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from forking import warm_start
from harness import serving, write_config
from pins.shifting import ShiftingServer, tool

TEXT = {"type": "string"}
BUY = tool("buy", "Buys something.", what=TEXT)
CHANGED = tool("buy", "Buys <IMPORTANT> \u05d0 \x1b[31mthings.", what=TEXT, more=TEXT)
HIDING = tool("buy", "Buys something.\U000e0053\U000e0065", what=TEXT)
SELL = tool("sell", "Sells something.")


class Shop:
    """A config with the server, and commands of it."""

    def __init__(self, folder: Path) -> None:
        self.server = ShiftingServer(folder / "said.json")
        self.server.say(BUY)
        self.config = folder / "pegboard.json"
        self.is_running = False
        self.configure(changes="hold")

    def configure(self, **own: Any) -> None:
        """Write the config, and wait until it is in force."""
        write_config(self.config, {"shop": {**self.server.entry, "unicode": "allow"}}, **own)
        while self.is_running and self.data("changes", "show", "shop")["policy"] != own["changes"]:
            # The gateway looks at its config twice a second.
            pass

    def run(self, *words: str, code: int = 0) -> str:
        """What a command prints, and says beside it."""
        command = [*warm_start(), *words, "--config", str(self.config)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
        return done.stdout + done.stderr

    def data(self, *words: str) -> Any:
        """The same for programs."""
        command = [*warm_start(), *words, "--json", "--config", str(self.config)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
        return json.loads(done.stdout)["data"]

    def tools(self) -> dict[str, str]:
        """What clients are served, with its description."""
        names = [row["name"] for row in self.data("tools", "--server", "shop")["tools"]]
        return {name: self.data("describe", name)["description"] for name in names}


@pytest.fixture(params=["running", "alone"])
def shop(request: pytest.FixtureRequest, tmp_path: Path) -> Generator[Shop]:
    """With a gateway that runs, or without one."""
    shop = Shop(tmp_path)
    if request.param == "alone":
        shop.run("refresh")
        yield shop
        return
    with serving(shop.config):
        shop.is_running = True
        shop.run("refresh")
        yield shop


def test_from_a_change_to_its_approval(shop: Shop) -> None:
    """List it, look at it, accept it; nothing that a server says steers the terminal."""
    assert "No server says anything else" in shop.run("changes")
    shop.server.say(CHANGED, SELL)
    shop.run("refresh")
    listed = shop.run("changes")
    assert "shop" in listed
    assert "changes show --config" in listed
    shown = shop.run("changes", "show", "shop", "buy")
    assert '-  "description": "Buys something.",' in shown
    assert "\\u001b[31mthings" in shown
    assert '+      "more": {' in shown
    assert 'it says "<IMPORTANT>"' in shown
    assert "\x1b" not in shown
    assert "Sells" not in shown
    assert shop.tools() == {"shop__buy": "Buys something."}
    assert "sell: accepted" in shop.run("changes", "accept", "shop", "sell")
    assert sorted(shop.tools()) == ["shop__buy", "shop__sell"]
    assert "buy: accepted" in shop.run("changes", "accept", "shop", "--all")
    assert shop.tools()["shop__buy"] == CHANGED["description"]
    assert shop.data("changes") == {"servers": []}


def test_a_rejection_is_quiet(shop: Shop) -> None:
    """It is still to be seen, and waits for nobody."""
    shop.server.say(CHANGED)
    shop.run("refresh")
    assert "buy: rejected" in shop.run("changes", "reject", "shop")
    assert "rejected, old one in use" in shop.run("changes", "show", "shop")
    (row,) = shop.data("changes")["servers"]
    assert (row["waits"], row["items"][0]["state"]) == (0, "rejected")
    assert shop.tools() == {"shop__buy": "Buys something."}


@pytest.fixture
def plain_shop(tmp_path: Path) -> Shop:
    """Without a gateway, and without permission to hide text."""
    shop = Shop(tmp_path)
    write_config(shop.config, {"shop": shop.server.entry}, changes="hold")
    shop.run("refresh")
    return shop


def printed(shown: str) -> list[list[str]]:
    """The commands that decide which a text names."""
    found = [shlex.split(line[line.index(" changes ") + 1 :]) for line in shown.splitlines() if "--revision" in line]
    return [[word for word in words if word != "--config" and not word.endswith(".json")] for words in found]


def test_what_show_prints_works(plain_shop: Shop) -> None:
    """Of text that hides it says so, what was rejected and whatever could be an option is named, and what is gone is
    not to be rejected."""
    shop, odd = plain_shop, tool("--all", "Does all.")
    shop.server.say(HIDING, SELL, odd)
    shop.run("refresh")
    listed = shop.run("changes")
    assert "shop: 2 changes to approve; 1 cannot be approved: its words hide text: " in listed
    assert [words[1:3] for words in printed(shop.run("changes", "show", "shop", "tool:--all"))] == [
        ["accept", "shop"],
        ["reject", "shop"],
    ]
    hidden = shop.run("changes", "show", "shop", "buy")
    assert "buy cannot be approved: its words hide text" in hidden
    assert [words[1] for words in printed(hidden)] == ["reject"]
    (_, reject) = printed(shop.run("changes", "show", "shop", "tool:--all"))
    assert reject[3] == "tool:--all"
    assert "--all: rejected" in shop.run(*reject)
    (accept, again, reject) = printed(shop.run("changes", "show", "shop"))
    assert again[:4] == ["changes", "accept", "shop", "tool:--all"]
    said = shop.run(*accept)
    assert "sell: accepted" in said
    assert "nothing else waits; 1 cannot be approved: its words hide text." in said
    assert "1 change to approve" not in shop.run("changes")
    assert "--all: accepted" in shop.run(*again)
    assert "buy: rejected" in shop.run(*reject)
    said = shop.run("changes", "accept", "shop", code=2)
    assert "buy of server shop cannot be approved" in said


def test_each_reason_to_show_nothing_has_its_sentence(tmp_path: Path) -> None:
    """A server that was never seen, one of which text hides, and one that is followed."""
    shop = Shop(tmp_path)
    shop.server.say(HIDING)
    write_config(shop.config, {"shop": shop.server.entry, "none": {"command": "no-such-program"}}, changes="hold")
    shop.run("refresh", "shop")
    assert "Nothing is known yet of the definitions of none" in shop.run("changes", "show", "none")
    assert "nothing else than what is approved; 1 left out: " in shop.run("changes", "show", "shop")
    write_config(shop.config, {"shop": shop.server.entry}, changes="follow")
    assert "shop is followed" in shop.run("changes", "show", "shop")


def test_what_was_rejected_or_is_gone_has_its_own_command(plain_shop: Shop) -> None:
    """It works as it is printed; without the name, what was rejected stays so, and that is said."""
    shop = plain_shop
    shop.server.say(tool("buy", "Buys everything.", what=TEXT))
    shop.run("refresh")
    shop.run("changes", "reject", "shop")
    (accept,) = printed(shop.run("changes", "show", "shop"))
    assert "Rejected, and to be approved by name alone: buy" in shop.run("changes", "accept", "shop")
    assert "buy: accepted" in shop.run(*accept)
    shop.server.say(SELL)
    shop.run("refresh")
    (gone,) = printed(shop.run("changes", "show", "shop", "buy"))
    assert gone[1] == "accept"
    assert "buy: accepted" in shop.run(*gone)


def test_what_cannot_be_is_said(shop: Shop) -> None:
    """A server or a tool that there is not, and options that contradict each other."""
    assert "did you mean shop?" in shop.run("changes", "show", "shopp", code=2)
    assert "nothing has changed of 'buy'" in shop.run("changes", "accept", "shop", "buy", code=2)
    assert "contradict" in shop.run("changes", "accept", "shop", "buy", "--all", code=2)


def test_counts_of_tools_say_how_many_are_withheld(shop: Shop) -> None:
    """With the command that shows them."""
    shop.server.say(BUY, SELL, tool("more"))
    assert "shop: 1 tool, 2 withheld: " in shop.run("refresh")
    if shop.is_running:
        assert "shop was restarted: 1 tool, 2 withheld: " in shop.run("restart", "shop")
    assert "2 withheld: see" in shop.run("servers")


def test_doctor_tells_of_what_waits(shop: Shop) -> None:
    """With the command that shows it."""
    shop.server.say(CHANGED)
    shop.run("refresh")
    said = shop.run("doctor")
    assert "1 definition differs from what is approved" in said
    assert "changes show --config" in said


@pytest.mark.scenario("changes: A lock file is the only truth")
def test_a_lock_file_is_the_only_truth(shop: Shop) -> None:
    """What it has is served, whatever the server says and whoever accepts; written anew, it has the new."""
    shop.configure(changes="tell")
    assert "1 definition of 1 server." in shop.run("lock")
    lock = json.loads((shop.config.parent / "pegboard.lock.json").read_text())
    assert [packed["definition"] for packed in lock["servers"]["shop"]["tool"]] == [BUY]
    shop.configure(changes="locked")
    shop.server.say(CHANGED, SELL)
    shop.run("refresh")
    assert shop.tools() == {"shop__buy": "Buys something."}
    assert "is locked to pegboard.lock.json" in shop.run("call", "shop__sell", code=4)
    assert "pegboard lock" in shop.run("changes", "accept", "shop", code=2)
    said = shop.run("lock")
    assert "tool buy changed" in said
    assert "tool sell is new" in said


@pytest.mark.scenario("changes: A lock file is the only truth")
def test_a_lock_file_that_cannot_be_used_approves_nothing(tmp_path: Path) -> None:
    """Missing, broken, of another format, or with a definition that was edited by hand."""
    shop = Shop(tmp_path)
    file = tmp_path / "pegboard.lock.json"
    shop.configure(changes="tell")
    shop.run("refresh")
    shop.run("lock")
    good = file.read_text()
    shop.configure(changes="locked")
    assert list(shop.tools()) == ["shop__buy"]
    for bad in (None, "{", '{"format": 99}', '{"format": 1, "servers": []}', good.replace("Buys", "Sells")):
        if bad is None:
            file.unlink()
        else:
            file.write_text(bad)
        assert shop.tools() == {}, bad
        if bad is not None and "Sells" in bad:
            assert "its digest does not fit it" in shop.run("changes", "show", "shop")
        if bad in (None, "{"):
            assert "locked servers have no tools" in shop.run("doctor", code=4)


def test_a_part_of_a_lock_file_is_written_anew(tmp_path: Path) -> None:
    """Those of other servers stay as they are."""
    shop = Shop(tmp_path)
    other = ShiftingServer(tmp_path / "other.json")
    other.say(SELL)
    entries = {"shop": shop.server.entry, "other": other.entry}
    write_config(shop.config, entries)
    shop.run("refresh")
    shop.run("lock")
    other.say(tool("sell", "Sells everything."))
    shop.server.say(tool("buy", "Buys everything."))
    shop.run("refresh")
    said = shop.run("lock", "shop")
    assert "shop: tool buy changed" in said
    assert "other" not in said


@pytest.mark.scenario("changes: A lock file is the only truth")
def test_a_lock_keeps_what_hides_text_now(plain_shop: Shop) -> None:
    """The definition that is in use stays in the file, and so in use; a new one that hides is named."""
    shop = plain_shop
    said = {"prompts": [{"name": "go", "description": "Goes."}]}
    shop.server.say(BUY, **said)
    shop.run("refresh")
    shop.run("changes", "accept", "shop")
    shop.run("lock")
    write_config(shop.config, {"shop": shop.server.entry}, changes="locked")
    said = {"prompts": [{"name": "go", "description": "Goes.\u200b"}]}
    shop.server.say(HIDING, SELL, tool("trap", "A trap.\u200b"), **said)
    shop.run("refresh")
    told = shop.run("lock")
    assert "tool buy hides text now: kept as it was in the file" in told
    assert "prompt go hides text now: kept as it was in the file" in told
    assert "tool trap hides text now: it is not in the file" in told
    assert "tool sell is new" in told
    assert "gone" not in told
    assert shop.tools() == {"shop__buy": BUY["description"], "shop__sell": SELL["description"]}
