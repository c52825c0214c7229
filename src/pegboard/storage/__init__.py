"""What is kept between runs, on SQLite or on PostgreSQL."""

from pegboard.storage.boards import BoardStore
from pegboard.storage.catalog import CatalogRecord, CatalogStore
from pegboard.storage.database import Database, DatabaseConnection, StorageError
from pegboard.storage.ondemand import OnDemand
from pegboard.storage.sqlite import SqliteDatabase
from pegboard.storage.storage import Storage, open_storage

__all__ = [
    "BoardStore",
    "CatalogRecord",
    "CatalogStore",
    "Database",
    "DatabaseConnection",
    "OnDemand",
    "SqliteDatabase",
    "Storage",
    "StorageError",
    "open_storage",
]
