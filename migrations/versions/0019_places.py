"""Places by their normal form: found by index, with the links that lead to them; removals that are tried again."""

from alembic import op
from sqlalchemy import text

from metastore.catalog.place.places import qualified

revision = "0019"
down_revision = "0018"

TABLES = """
CREATE TABLE place_alias (
    place        text    NOT NULL,
    target       text    NOT NULL,
    ignores_case boolean NOT NULL,
    PRIMARY KEY (place, ignores_case)
);
COMMENT ON TABLE place_alias IS 'Local directories that are links (to target), or below which the case of letters does
 not count; found when a place below them was taken';

-- The key by which data_near finds what lies at or below a place. It is cut, since an entry of an index has an end.
CREATE INDEX tbl_place ON tbl (("left"(lower(location), 600) COLLATE "C"));
CREATE INDEX partition_place ON partition (("left"(lower(location), 600) COLLATE "C"));
CREATE INDEX database_place ON database (("left"(lower(location), 600) COLLATE "C"));
CREATE INDEX database_managed_place ON database (("left"(lower(managed_location), 600) COLLATE "C"));
CREATE INDEX directory_removal_place ON directory_removal (("left"(lower(location), 600) COLLATE "C"));
CREATE INDEX directory_removal_trash ON directory_removal (("left"(lower(trash), 600) COLLATE "C"));
CREATE INDEX dropped_directory_trash_place ON dropped_directory (("left"(lower(trash), 600) COLLATE "C"));
CREATE INDEX compaction_place ON compaction (("left"(lower(properties ->> 'location'), 600) COLLATE "C"))
 WHERE state = 'r' AND properties ? 'location';
DROP INDEX dropped_directory_location;  -- nothing asks by it, and it has no room for long locations
DROP INDEX dropped_directory_trash;
CREATE INDEX dropped_directory_trash ON dropped_directory USING hash (trash);

ALTER TABLE directory_removal ADD COLUMN owner text NOT NULL DEFAULT '';
ALTER TABLE directory_removal ADD COLUMN claimed_by text NOT NULL DEFAULT '';
ALTER TABLE directory_removal ADD COLUMN noted_at timestamptz NOT NULL DEFAULT clock_timestamp();
ALTER TABLE directory_removal ADD COLUMN attempts integer NOT NULL DEFAULT 0;
ALTER TABLE directory_removal ADD COLUMN next_at timestamptz;
ALTER TABLE directory_removal ADD COLUMN last_error text;
COMMENT ON COLUMN directory_removal.owner IS 'The name of the table or database whose directory it was';
COMMENT ON COLUMN directory_removal.claimed_by IS 'Host and process of who works on it';
COMMENT ON COLUMN directory_removal.attempts IS 'How many attempts have failed';
COMMENT ON COLUMN directory_removal.next_at IS 'No attempt before this time; null while one is under way, or the first
 is to come';
COMMENT ON COLUMN directory_removal.last_error IS 'Why the last attempt failed';
"""

ODD = r"[^:/]//|/\.\.?(/|$)|[^/]/$|^file://|^[^/]*[A-Z]"
"""Locations that may have an empty, "." or ".." step, a slash at the end, or a scheme in upper case."""

PLACES = (
    ("tbl", "location"),
    ("partition", "location"),
    ("database", "location"),
    ("database", "managed_location"),
    ("directory_removal", "location"),
)


def upgrade() -> None:
    """Add tables, columns and indexes, and bring the locations there are into their normal form."""
    connection = op.get_bind()
    for table, column in PLACES:
        odd = connection.execute(
            text(f"SELECT DISTINCT {column} FROM {table} WHERE {column} ~ :odd"), {"odd": ODD}
        ).scalars()
        for location in odd.all():
            try:
                stored = qualified(location)
            except Exception:
                continue
            if stored != location:
                connection.execute(
                    text(f"UPDATE {table} SET {column} = :stored WHERE {column} = :location"),
                    {"stored": stored, "location": location},
                )
    op.execute(TABLES)
