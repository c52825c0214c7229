"""The three ways to carry messages: a process's pipes, streamable HTTP, and the older HTTP+SSE."""
