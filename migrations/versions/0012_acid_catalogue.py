"""The trash: dropped tables that can be brought back, and where their directories are meanwhile."""

from alembic import op

revision = "0012"
down_revision = "0011"

TABLES = """
CREATE TABLE dropped_table (
    id                bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    database          text        COLLATE "C" NOT NULL,
    name              text        COLLATE "C" NOT NULL,
    definition        jsonb       NOT NULL,
    last_write_id     bigint,
    invalid_write_ids bigint[]    NOT NULL,
    dropped_at        timestamptz NOT NULL DEFAULT clock_timestamp(),
    purge_at          timestamptz NOT NULL
);
COMMENT ON TABLE dropped_table IS 'Dropped tables that can be brought back';
COMMENT ON COLUMN dropped_table.definition IS 'The row of tbl';
COMMENT ON COLUMN dropped_table.last_write_id IS 'Null for a table that had no write ids';
COMMENT ON COLUMN dropped_table.invalid_write_ids IS 'Those of transactions that had not committed at the drop';
COMMENT ON COLUMN dropped_table.purge_at IS 'From then on it is gone, and its files too';
CREATE INDEX dropped_table_name ON dropped_table (database, name, id);
CREATE INDEX dropped_table_purge ON dropped_table (purge_at);

CREATE TABLE dropped_partition (
    dropped_id bigint NOT NULL REFERENCES dropped_table (id) ON DELETE CASCADE,
    definition jsonb  NOT NULL
);
COMMENT ON TABLE dropped_partition IS 'The partitions of dropped tables, each the row of partition';
CREATE INDEX dropped_partition_table ON dropped_partition (dropped_id);

CREATE TABLE dropped_directory (
    dropped_id bigint NOT NULL REFERENCES dropped_table (id) ON DELETE CASCADE,
    location   text   NOT NULL,
    trash      text   NOT NULL
);
COMMENT ON TABLE dropped_directory IS 'Where the directories of dropped tables were, and where they are in the trash';
CREATE INDEX dropped_directory_table ON dropped_directory (dropped_id);
CREATE INDEX dropped_directory_location ON dropped_directory (location);
CREATE INDEX dropped_directory_trash ON dropped_directory (trash);

ALTER TABLE directory_removal ADD COLUMN trash text;
COMMENT ON COLUMN directory_removal.trash IS 'Where the directory is moved to, null if it is removed';
"""


def upgrade() -> None:
    """Create the tables."""
    op.execute(TABLES)
