"""The task registry: the tasks of an OpenSpec folder, for agents and people."""
