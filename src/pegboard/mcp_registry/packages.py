"""Packages as recipes: `npx`, `uvx`, `docker run`, `dnx`. What runs is what the package's name says, and nothing else.

A publisher may choose arguments, and they are shown. An identifier or a version that means something else to the
program that runs it (an option, an address, another package) is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from urllib.parse import urlsplit

from pegboard.mcp_registry.recipe import CannotRun, Ingredient, Recipe, RecipeBuilder
from pegboard.mcp_registry.server_json import RegistryPackage
from pegboard.mcp_registry.template import Template

_IDENTIFIERS = {
    "npm": re.compile(r"(?:@[a-z0-9~][\w.~-]*/)?[A-Za-z0-9~][\w.~-]*", re.ASCII),
    "pypi": re.compile(r"[A-Za-z0-9](?:[\w.-]*[A-Za-z0-9])?(?:\[[A-Za-z0-9][\w,.-]*\])?", re.ASCII),
    "oci": re.compile(
        r"[a-z0-9][\w.-]*(?::[0-9]+)?(?:/[a-z0-9][\w.-]*)*(?::\w[\w.-]*)?(?:@sha256:[0-9a-f]{64})?", re.ASCII
    ),
    "nuget": re.compile(r"[A-Za-z0-9_][\w.-]*", re.ASCII),
}
_VERSION = re.compile(r"[A-Za-z0-9][\w.+!-]*", re.ASCII)
_PROGRAM = re.compile(r"[A-Za-z0-9][\w.-]*", re.ASCII)
# Programs that no package has to bring along, and that do what their arguments say.
_INTERPRETER = re.compile(
    r"(?:python|pypy|node|deno|bun|perl|ruby|php|pip|uvx?|npx?|npm)[\d.]*|\w{0,3}sh|powershell|cmd|env|curl|wget|docker",
    re.IGNORECASE | re.ASCII,
)
_HOST = re.compile(r"[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?", re.ASCII)
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
# The domains of the indexes that the programs use by themselves.
_USUAL_INDEX = {"npm": "npmjs.org", "pypi": "pypi.org", "oci": "docker.io", "nuget": "nuget.org"}
_PROGRAMS = {"npm": "npx", "pypi": "uvx", "oci": "docker", "nuget": "dnx"}
_BY_HAND = {
    "mcpb": "a bundle (.mcpb) is a file for desktop apps, which Pegboard cannot run: unpack it, read the command in "
    "its manifest.json, and add that with pegboard add NAME -- COMMAND",
    "cargo": "a cargo package has to be built first: run cargo install {identifier}, then pegboard add NAME -- PROGRAM",
}
_ENV_OPTIONS = ("-e", "--env")
# Words that are on the command line anyway.
_PRESENT = {
    "npm": ("-y", "--yes"),
    "pypi": (),
    "oci": ("run", "-i", "--interactive", "--rm"),
    "nuget": ("--yes", "-y"),
}


def package_recipe(package: RegistryPackage) -> Recipe:
    """How a package is run, or why it cannot be."""
    about = f"{package.identifier}@{package.version}" if package.version else package.identifier
    try:
        _check(package)
        return _recipe(package, about)
    except CannotRun as exc:
        return Recipe(kind=package.registry_type or "package", about=about, problem=str(exc))


def _recipe(package: RegistryPackage, about: str) -> Recipe:
    builder = RecipeBuilder()
    environment = {each.name: builder.value(each.name, each, variable=each.name) for each in package.environment}
    runtime = [builder.argument(each, at) for at, each in enumerate(package.runtime_arguments, 1)]
    arguments = [builder.argument(each, at) for at, each in enumerate(package.package_arguments, 1)]
    if package.registry_type == "oci":
        runtime, moved = _move_variables(runtime)
        environment |= moved
        _check_names(moved)
    runtime = _without(runtime, *_PRESENT[package.registry_type])
    words = _COMMANDS[package.registry_type](package, runtime, arguments, environment)
    program = _PROGRAMS[package.registry_type]
    _warn(builder, package, program)
    # Only uvx has this option, and it is put there anew.
    options = [each for each in runtime if program != "uvx" or not _is_from(each)]
    if len(options) < len(runtime) and _INTERPRETER.fullmatch(name := _program(arguments)):
        builder.warn(f"it runs {name}, which does what the arguments behind it say")
    return Recipe(
        kind=package.registry_type,
        about=about,
        command=program,
        arguments=tuple(words),
        runtime=tuple(options),
        environment=environment,
        questions=builder.questions,
        warnings=tuple(builder.warnings),
    )


def _check(package: RegistryPackage) -> None:
    kind = package.registry_type
    if kind not in _COMMANDS:
        advice = _BY_HAND.get(kind, f"packages of the kind {kind[:40]!r} are not known here")
        raise CannotRun(advice.replace("{identifier}", package.identifier))
    if _IDENTIFIERS[kind].fullmatch(package.identifier) is None:
        raise CannotRun(f"{package.identifier[:200]!r} is not the name of a package")
    if package.version and _VERSION.fullmatch(package.version) is None:
        raise CannotRun(f"{package.version[:80]!r} is not a version")
    _check_index(package)
    _check_names(each.name for each in package.environment)
    if package.transport.type != "stdio":
        raise CannotRun(
            f"this package starts a server that listens on {package.transport.url or 'an address'}: start it yourself, "
            "then add that address with pegboard add NAME URL"
        )


def _check_index(package: RegistryPackage) -> None:
    """A package of this name on the usual index may be somebody else's."""
    host, usual = _index_host(package), _USUAL_INDEX[package.registry_type]
    # The name of an image says where it is.
    if host and host != usual and not host.endswith(f".{usual}") and package.registry_type != "oci":
        raise CannotRun(f"its package is not on {usual} but on {package.index_url[:200]}: add it by hand")


def _index_host(package: RegistryPackage) -> str:
    """The host of the index that the package names, if it names one."""
    try:
        host = urlsplit(package.index_url).hostname or ""
    except ValueError:
        host = None
    if host is None or (host and _HOST.fullmatch(host) is None):
        raise CannotRun(f"{package.index_url[:200]!r} is not an address of a package index")
    return host


def _check_names(names: Iterable[str]) -> None:
    for name in names:
        if _VARIABLE.fullmatch(name) is None:
            raise CannotRun(f"{name[:80]!r} is not the name of an environment variable")
        if name.upper().startswith("PEGBOARD_"):
            raise CannotRun(f"it wants {name[:80]}, and variables of Pegboard are not for servers")


def _npx(
    package: RegistryPackage, runtime: Sequence[Ingredient], arguments: Sequence[Ingredient], _: object
) -> list[Ingredient]:
    return [_words("-y"), *runtime, _words(_at_version(package)), *arguments]


def _uvx(
    package: RegistryPackage, runtime: Sequence[Ingredient], arguments: Sequence[Ingredient], _: object
) -> list[Ingredient]:
    own = [each for each in runtime if not _is_from(each)]
    exact = f"{package.identifier}=={package.version}" if package.version else package.identifier
    if len(own) < len(runtime):
        # The program has another name than the package. An option in its place would be one of uvx itself.
        return [_words("--from", exact), *own, _words(_program(arguments)), *arguments[1:]]
    name, extras, _rest = package.identifier.partition("[")
    if extras:
        return [_words("--from", exact), *own, _words(name), *arguments]
    return [*own, _words(_at_version(package)), *arguments]


def _is_from(ingredient: Ingredient) -> bool:
    return _first(ingredient) == "--from"


def _program(arguments: Sequence[Ingredient]) -> str:
    """The program that stands first among the arguments of a package, as behind `--from`."""
    first = _first(arguments[0]) if arguments and len(arguments[0].words) == 1 else None
    if first is None or _PROGRAM.fullmatch(first) is None:
        raise CannotRun("it uses --from, but its first argument is not the name of a program")
    return first


def _docker(
    package: RegistryPackage, runtime: Sequence[Ingredient], arguments: Sequence[Ingredient], environment: Iterable[str]
) -> list[Ingredient]:
    # A value that its user chose reaches docker through its environment, and stands on no command line.
    names = [Ingredient((("-e",), (name,)), variable=name) for name in environment]
    return [_words("run", "-i", "--rm"), *runtime, *names, _words(_image(package)), *arguments]


def _dnx(
    package: RegistryPackage, runtime: Sequence[Ingredient], arguments: Sequence[Ingredient], _: object
) -> list[Ingredient]:
    return [_words(_at_version(package), "--yes"), *runtime, *([_words("--"), *arguments] if arguments else [])]


_COMMANDS: dict[str, Callable[..., list[Ingredient]]] = {"npm": _npx, "pypi": _uvx, "oci": _docker, "nuget": _dnx}


def _at_version(package: RegistryPackage) -> str:
    return f"{package.identifier}@{package.version}" if package.version else package.identifier


def _image(package: RegistryPackage) -> str:
    name, host = package.identifier, _index_host(package)
    if host not in {"", _USUAL_INDEX["oci"]} and not host.endswith(f".{_USUAL_INDEX['oci']}"):
        name = name if name.startswith(f"{host}/") else f"{host}/{name}"
    has_tag = ":" in name.rpartition("/")[2] or "@" in name
    image = name if has_tag or not package.version else f"{name}:{package.version}"
    # Each part of it is fine alone; together they have to be an image too, and no option of docker.
    if _IDENTIFIERS["oci"].fullmatch(image) is None:
        raise CannotRun(f"{image[:200]!r} is not the name of an image")
    return image


def _words(*texts: str) -> Ingredient:
    return Ingredient(tuple((text,) for text in texts))


def _first(ingredient: Ingredient) -> str | None:
    """Its first word, if it is fixed."""
    word = ingredient.words[0]
    return word[0] if len(word) == 1 and isinstance(word[0], str) else None


def _without(ingredients: Iterable[Ingredient], *words: str) -> list[Ingredient]:
    """What is not one of these words alone, which are there already."""
    return [each for each in ingredients if len(each.words) > 1 or _first(each) not in words]


def _move_variables(runtime: Iterable[Ingredient]) -> tuple[list[Ingredient], dict[str, Ingredient]]:
    """`-e NAME=VALUE` as a variable: a value on a command line could be read by everybody on the machine."""
    rest: list[Ingredient] = []
    moved: dict[str, Ingredient] = {}
    for each in runtime:
        start = each.words[1][0] if len(each.words) == 2 and each.words[1] else ""
        if _first(each) in _ENV_OPTIONS and isinstance(start, str) and "=" in start:
            name, _, value = start.partition("=")
            parts: Template = (value, *each.words[1][1:])
            moved[name] = Ingredient((tuple(part for part in parts if part != ""),))
        else:
            rest.append(each)
    return rest, moved


def _warn(builder: RecipeBuilder, package: RegistryPackage, program: str) -> None:
    if package.version in {"", "latest"} and "@sha256:" not in package.identifier:
        builder.warn("it names no exact version: whatever is newest runs, at every start")
    if package.runtime_hint not in {"", program}:
        builder.warn(f"its publisher suggests {package.runtime_hint[:40]!r}; Pegboard uses {program}")
