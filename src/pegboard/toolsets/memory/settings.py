"""The `memory` section of the config."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pegboard.config.section import SectionContext
from pegboard.config.settings import ToolsetSettings
from pegboard.config.shape import ConfigNode
from pegboard.names import MAX_NAMESPACE, key_problem

# The longest key, namespace and link there can be have to fit in, and a third of it is a summary.
_LEAST_ANSWER = 12_500


@dataclass(frozen=True, slots=True)
class MemorySettings(ToolsetSettings):
    """Where memories belong that nobody said a namespace for, and how many characters an answer may have."""

    namespace: str = "default"
    answer_size: int = 25_000


def read_settings(node: ConfigNode, context: SectionContext) -> MemorySettings:
    """The section as it stands in the file."""
    context.remark_unknown(node, ("namespace", "answerSize"))
    given: dict[str, Any] = {}
    if namespace := node.get("namespace"):
        if problem := key_problem(namespace.text(), MAX_NAMESPACE):
            raise namespace.wrong(problem)
        given["namespace"] = namespace.text()
    if size := node.get("answerSize"):
        given["answer_size"] = size.whole_number(_LEAST_ANSWER, 1_000_000)
    return MemorySettings(**given)
