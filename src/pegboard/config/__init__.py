"""Files and environment become settings."""

from pegboard.config.locate import Location, identity, locate, state_folder
from pegboard.config.read import parse_settings, read_settings
from pegboard.config.runfile import RunningGateway, announcement, find_gateways, run_file
from pegboard.config.settings import ConfigError, ServerSpec, Settings

__all__ = [
    "ConfigError",
    "Location",
    "RunningGateway",
    "ServerSpec",
    "Settings",
    "announcement",
    "find_gateways",
    "identity",
    "locate",
    "parse_settings",
    "read_settings",
    "run_file",
    "state_folder",
]
