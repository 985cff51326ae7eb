"""Databases, tables, partitions, and the directories of dropped ones that are still to be removed."""

from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("""
        -- Names are compared in lower case and listed in the order of their bytes.
        CREATE TABLE database (
            name             text COLLATE "C" PRIMARY KEY CHECK (name = lower(name)),
            location         text NOT NULL,
            managed_location text,
            description      text,
            owner            text,
            owner_type       smallint NOT NULL,
            created_s        integer NOT NULL,
            parameters       jsonb NOT NULL,
            details          jsonb NOT NULL
        )
    """)
    op.execute("""
        CREATE TABLE tbl (
            id             bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
            database       text COLLATE "C" NOT NULL,
            name           text COLLATE "C" NOT NULL CHECK (name = lower(name)),
            table_type     text NOT NULL,
            owner          text,
            owner_type     smallint NOT NULL,
            created_s      integer NOT NULL,
            location       text,
            columns        jsonb NOT NULL,
            partition_keys jsonb NOT NULL,
            parameters     jsonb NOT NULL,
            storage        jsonb NOT NULL,
            details        jsonb NOT NULL,
            CONSTRAINT tbl_name UNIQUE (database, name),
            CONSTRAINT tbl_database FOREIGN KEY (database) REFERENCES database (name)
        )
    """)
    op.execute("""
        CREATE TABLE partition (
            id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
            table_id   bigint NOT NULL,
            name       text COLLATE "C" NOT NULL,
            values     text[] NOT NULL,
            location   text,
            created_s  integer NOT NULL,
            columns    jsonb, -- null: those of the table
            parameters jsonb NOT NULL,
            storage    jsonb NOT NULL,
            details    jsonb NOT NULL,
            CONSTRAINT partition_values UNIQUE (table_id, values),
            CONSTRAINT partition_name UNIQUE (table_id, name),
            CONSTRAINT partition_table FOREIGN KEY (table_id) REFERENCES tbl (id) ON DELETE CASCADE
        )
    """)
    op.execute("""
        -- Written in the transaction of a drop, gone when the files are: a killed removal is taken up again.
        CREATE TABLE directory_removal (
            id            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
            location      text NOT NULL,
            only_if_empty boolean NOT NULL,
            claimed_at    timestamptz NOT NULL DEFAULT clock_timestamp()
        )
    """)


def downgrade() -> None:
    op.execute("DROP FUNCTION IF EXISTS catalog_table, catalog_database")
    op.execute("DROP TABLE directory_removal, partition, tbl, database")
