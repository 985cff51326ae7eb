"""The catalogue: catalogs."""

from alembic import op

revision = "0009"
down_revision = "0008"

TABLES = """
CREATE TABLE catalog (
    name        text COLLATE "C" PRIMARY KEY CHECK (name = lower(name)),
    description text,
    location    text    NOT NULL,
    created_s   integer NOT NULL,
    parameters  jsonb   NOT NULL
);
COMMENT ON TABLE catalog IS 'Namespaces of databases; the databases of all but hive are named @catalog#database';
COMMENT ON COLUMN catalog.location IS 'As the client gave it; where databases without a location of their own go';
"""


def upgrade() -> None:
    """Create the tables."""
    if TABLES.strip():
        op.execute(TABLES)
