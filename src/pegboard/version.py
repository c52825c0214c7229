"""Who we are, as other programs see it."""

from __future__ import annotations

from collections.abc import Mapping

VERSION = "0.1.0"
SERVER_INFO: Mapping[str, str] = {"name": "pegboard", "title": "Pegboard", "version": VERSION}
CLIENT_INFO: Mapping[str, str] = {"name": "pegboard", "title": "Pegboard", "version": VERSION}
