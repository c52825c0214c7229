"""An agent loop with Claude over every tool of a Pegboard config.

`python examples/anthropic_loop.py "What changed in this repository today?"`: needs `pip install anthropic` and a key.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from anthropic import AsyncAnthropic

from pegboard import Pegboard


async def run(task: str, board: Pegboard, client: AsyncAnthropic, model: str = "claude-sonnet-5") -> str:
    """Let the model work on a task until it has nothing more to call."""
    messages: list[Any] = [{"role": "user", "content": task}]
    for _ in range(30):
        # Servers' tools are deferred: Claude sees `tool_find`, and loads what that finds.
        tools: Any = await board.get_tool_definitions(format="anthropic", deferred=True)
        reply = await client.messages.create(model=model, max_tokens=4096, tools=tools, messages=messages)
        messages.append({"role": "assistant", "content": reply.content})
        # Every call of the reply at once; a call that fails is a result like any other.
        results = await board.answer(reply, format="anthropic")
        if not results:
            return "".join(block.text for block in reply.content if block.type == "text")
        messages += results
    return "Too many turns."


async def main() -> None:
    """Take the task from the command line, servers from the config, the key from the environment."""
    async with Pegboard.from_config() as board, AsyncAnthropic() as client:
        print(await run(" ".join(sys.argv[1:]), board, client))


if __name__ == "__main__":
    asyncio.run(main())
