"""Files and environment become settings."""

from pegboard.config.locate import Location, identity, locate, state_folder
from pegboard.config.read import parse_settings, read_settings
from pegboard.config.runfile import RunningGateway, announcement, find_gateways, run_file
from pegboard.config.settings import ConfigError, ConfigWriteError, ServerSpec, Settings, UnknownServerError

__all__ = [
    "ConfigError",
    "ConfigWriteError",
    "Location",
    "RunningGateway",
    "ServerSpec",
    "Settings",
    "UnknownServerError",
    "announcement",
    "find_gateways",
    "identity",
    "locate",
    "parse_settings",
    "read_settings",
    "run_file",
    "state_folder",
]
