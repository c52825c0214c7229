"""Which toolsets are installed: each is the folder of that name beside this file, and its line here.

A toolset is made of parts. Each is a file of its folder. It is loaded by the package that needs it, and is of that
package's layer; only `toolset.py` has to be there:

- `toolset.py`: `TOOLSET`, the class that makes its tools on a board (`pegboard.toolsets.toolset`)
- `settings.py`: `read_settings`, which reads and checks its section of the config, for `config/`
- `migrations.py`: `STEPS`, the numbered steps that make its tables, for `storage/`
- `routes.py`: `ROUTES`, its part of the REST table, for `gateway/`
- `commands.py`: `add_to`, which adds its commands, for `cli/`
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

TOOLSETS = ("discovery", "memory", "chats", "tasks", "results")

# Those that the setting has if nobody sets it. The one that reads large results comes with all of them.
USUAL = tuple(name for name in TOOLSETS if name != "results")


def load_parts(part: str) -> dict[str, ModuleType]:
    """The modules that are this part, by the names of the toolsets that have it."""
    names = {toolset: f"{__package__}.{toolset}.{part}" for toolset in TOOLSETS}
    return {toolset: import_module(name) for toolset, name in names.items() if find_spec(name) is not None}
