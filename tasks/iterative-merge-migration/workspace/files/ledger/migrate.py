"""Apply the SQL files in migrations/ once each, in name order."""

import sqlite3
from pathlib import Path


class MigrationGap(RuntimeError):
    """A migration was applied here whose file is gone."""


def apply(conn: sqlite3.Connection, folder: Path = Path("migrations")) -> list[str]:
    conn.execute("CREATE TABLE IF NOT EXISTS schema_migrations (name TEXT PRIMARY KEY)")
    done = {row["name"] for row in conn.execute("SELECT name FROM schema_migrations")}
    on_disk = sorted(path.name for path in folder.glob("[0-9]*.sql"))
    retired = folder / "retired.txt"
    known = set(on_disk) | set(retired.read_text().split() if retired.exists() else ())
    missing = sorted(done - known)
    if missing:
        raise MigrationGap(f"applied but not on disk: {', '.join(missing)}")
    fresh = [name for name in on_disk if name not in done]
    for name in fresh:
        conn.executescript("BEGIN;\n" + (folder / name).read_text() + "\nCOMMIT;")
        conn.execute("INSERT INTO schema_migrations VALUES (?)", (name,))
    return fresh
