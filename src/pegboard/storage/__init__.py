"""What is kept between runs, behind one interface."""

from pegboard.storage.base import CatalogRecord, Storage, StorageError
from pegboard.storage.sqlite import SqliteStorage

__all__ = ["CatalogRecord", "SqliteStorage", "Storage", "StorageError"]
