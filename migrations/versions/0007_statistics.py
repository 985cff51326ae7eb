"""The catalogue: statistics of columns, and which snapshots of an ACID table they describe."""

from alembic import op

revision = "0007"
down_revision = "0006"

TABLES = """
-- A row for each column of a table or partition, and each engine that has analysed it. Which of the figures are there
-- depends on the kind, that is, on the member of the IDL's union.
CREATE TABLE column_statistics (
    table_id        bigint NOT NULL,
    partition_id    bigint, -- null: of the table as a whole
    column_name     text COLLATE "C" NOT NULL,
    engine          text NOT NULL,
    column_type     text NOT NULL,
    kind            text NOT NULL,
    analyzed_s      bigint NOT NULL,
    nulls           bigint NOT NULL,
    distinct_values bigint,
    trues           bigint,
    falses          bigint,
    max_length      bigint,
    avg_length      double precision,
    low             numeric,
    high            numeric,
    low_double      double precision,
    high_double     double precision,
    bit_vector      bytea,
    histogram       bytea,
    CONSTRAINT column_statistics_table FOREIGN KEY (table_id) REFERENCES tbl (id) ON DELETE CASCADE,
    CONSTRAINT column_statistics_partition FOREIGN KEY (partition_id) REFERENCES partition (id) ON DELETE CASCADE
);
COMMENT ON COLUMN column_statistics.low IS 'Of exact kinds: whole numbers, decimals, days or seconds since 1970';
COMMENT ON COLUMN column_statistics.bit_vector IS 'Sketch of the distinct values as the engine wrote it';
CREATE UNIQUE INDEX column_statistics_key
    ON column_statistics (table_id, coalesce(partition_id, 0), column_name, engine);
CREATE INDEX column_statistics_of_partition ON column_statistics (partition_id) WHERE partition_id IS NOT NULL;

-- Of an ACID table or partition: which writes its statistics include. These are all up to `high_water_mark`, among them
-- `write_id`, that of who stored them, but for those that were open then.
CREATE TABLE statistics_basis (
    table_id        bigint NOT NULL,
    partition_id    bigint, -- null: of the table as a whole
    write_id        bigint NOT NULL,
    high_water_mark bigint NOT NULL,
    open_ids        bigint[] NOT NULL,
    is_outdated     boolean NOT NULL DEFAULT false,
    CONSTRAINT statistics_basis_table FOREIGN KEY (table_id) REFERENCES tbl (id) ON DELETE CASCADE,
    CONSTRAINT statistics_basis_partition FOREIGN KEY (partition_id) REFERENCES partition (id) ON DELETE CASCADE
);
COMMENT ON COLUMN statistics_basis.is_outdated IS
    'What they miss was committed, or their writer aborted, and the record of that is gone';
CREATE UNIQUE INDEX statistics_basis_key ON statistics_basis (table_id, coalesce(partition_id, 0));
CREATE INDEX statistics_basis_of_partition ON statistics_basis (partition_id) WHERE partition_id IS NOT NULL;

-- Changes to source tables are counted in the few materialised views there are.
CREATE INDEX tbl_materialized_view ON tbl (id) WHERE table_type = 'MATERIALIZED_VIEW';
"""


def upgrade() -> None:
    """Create the tables."""
    if TABLES.strip():
        op.execute(TABLES)
