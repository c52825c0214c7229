"""What whoever adds a server is asked: a value, with all that its publisher says of it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from pegboard.config.secrets import is_credential
from pegboard.mcp_registry.server_json import Format, RegistryInput
from pegboard.names import fold_server_name

_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+)?")
_NO_NAME_CHARACTER = re.compile(r"[^A-Z0-9]+")
# A publisher chooses the key and proposes the server's name: nobody has variables that begin like this for another
# reason. Two underscores are between the two, so that it is also no variable of another server, nor of `${input:…}`.
_OWN_VARIABLE = "PEGBOARD_INPUT_"
# Variables that end like this mean something to Pegboard itself.
_TAKEN = ("_MCP_URL", "_MCP_ENABLED")


class WrongAnswer(ValueError):  # noqa: N818  it says what the answer is
    """A value that does not fit its question; the message says why."""


@dataclass(frozen=True, slots=True)
class Question:
    """A value that the server wants."""

    key: str
    description: str = ""
    is_required: bool = False
    is_secret: bool = False
    is_repeated: bool = False
    default: str | None = None
    placeholder: str = ""
    choices: tuple[str, ...] = ()
    format: Format | None = None
    # The variable of the environment that a package itself names.
    variable: str | None = None

    def check(self, answers: Sequence[str]) -> None:
        """Refuse values that do not fit; none of them is repeated if it is secret."""
        if len(answers) > 1 and not self.is_repeated:
            raise WrongAnswer(f"{self.key} takes one value, found {len(answers)}")
        for answer in answers:
            self._check(answer)

    def _check(self, answer: str) -> None:
        found = "" if self.is_secret else f", found {answer[:80]!r}"
        if self.choices and answer not in self.choices:
            raise WrongAnswer(f"{self.key} must be one of {', '.join(self.choices)}{found}")
        if self.format == "number" and _NUMBER.fullmatch(answer) is None:
            raise WrongAnswer(f"{self.key} must be a number{found}")
        if self.format == "boolean" and answer not in {"true", "false"}:
            raise WrongAnswer(f"{self.key} must be true or false{found}")

    def variable_for(self, server: str) -> str:
        """The variable of the environment that holds the value for a server of this name."""
        if self.variable is not None:
            return self.variable
        key = _NO_NAME_CHARACTER.sub("_", self.key.upper()).strip("_") or "VALUE"
        name = f"{_OWN_VARIABLE}{fold_server_name(server).upper()}__{key}"
        return f"{name}_VALUE" if name.endswith(_TAKEN) else name

    def join(self, other: Question) -> Question:
        """The one question for two places that ask for the same value."""
        return replace(
            self,
            description=self.description or other.description,
            is_required=self.is_required or other.is_required,
            is_secret=self.is_secret or other.is_secret,
            default=other.default if self.default is None else self.default,
            choices=self.choices or other.choices,
            format=self.format or other.format,
            variable=self.variable or other.variable,
        )


def question_of(key: str, about: RegistryInput, *, is_required: bool = False, variable: str | None = None) -> Question:
    """The question that an input asks."""
    return Question(
        key,
        description=about.description,
        is_required=about.is_required or is_required,
        is_secret=about.is_secret or _sounds_secret(key, about),
        is_repeated=about.is_repeated,
        default=about.default,
        placeholder=about.placeholder,
        choices=about.choices,
        format=about.format,
        variable=variable,
    )


def _sounds_secret(key: str, about: RegistryInput) -> bool:
    """Publishers forget to say it; what has a public value or choices is none."""
    return is_credential(key) and about.default is None and not about.choices and about.format in {None, "string"}
