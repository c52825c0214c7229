"""Why a secret cannot be sealed or read."""

from __future__ import annotations

from pegboard.result import ToolErrorCode, ToolFailure


class SealingError(ToolFailure):
    """There is no key that can be used; its text says why and what to do. It holds no secret.

    The text is for the log and the command line. An answer (`error`) may go to another machine and does not name files.
    """

    def __init__(self, problem: str, advice: str, *, answer: str = "") -> None:
        super().__init__(ToolErrorCode.UNAVAILABLE, answer or f"{problem}: {advice}")
        self.problem = problem
        self.advice = advice
        self.args = (f"{problem}: {advice}",)


class Unsealable(ToolFailure):
    """A secret that is kept cannot be read: its key is lost or was changed, or it stands in another row."""

    def __init__(self, reason: str, *, retryable: bool = False) -> None:
        super().__init__(ToolErrorCode.UNAVAILABLE, reason, retryable=retryable)
