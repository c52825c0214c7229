"""An agent loop with OpenAI's Responses API over every tool of a Pegboard config.

`python examples/openai_loop.py "What changed in this repository today?"`: needs `pip install openai` and a key.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from openai import AsyncOpenAI

from pegboard import Pegboard


async def run(task: str, board: Pegboard, client: AsyncOpenAI, model: str = "gpt-5.4") -> str:
    """Let the model work on a task until it has nothing more to call."""
    history: list[Any] = [{"role": "user", "content": task}]
    for _ in range(30):
        # The model sees a tool search that we run; what it finds is loaded, a namespace a server.
        tools: Any = await board.get_tool_definitions(format="openai", deferred=True)
        # Nothing is kept at OpenAI, so what the model thought has to come along, or the next turn would be refused.
        reply = await client.responses.create(
            model=model, tools=tools, input=history, store=False, include=["reasoning.encrypted_content"]
        )
        history += reply.output
        # Every call of the reply at once; a call that fails is a result like any other.
        results = await board.answer(reply, format="openai")
        if not results:
            return reply.output_text
        history += results
    return "Too many turns."


async def main() -> None:
    """Take the task from the command line, servers from the config, the key from the environment."""
    async with Pegboard.from_config() as board, AsyncOpenAI() as client:
        print(await run(" ".join(sys.argv[1:]), board, client))


if __name__ == "__main__":
    asyncio.run(main())
