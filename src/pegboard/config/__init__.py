"""Files and environment become settings."""

from pegboard.config.locate import Location, identity, locate, run_file, state_folder
from pegboard.config.read import parse_settings, read_settings
from pegboard.config.settings import ConfigError, ServerSpec, Settings

__all__ = [
    "ConfigError",
    "Location",
    "ServerSpec",
    "Settings",
    "identity",
    "locate",
    "parse_settings",
    "read_settings",
    "run_file",
    "state_folder",
]
