"""What the set-based calls need: unresolved write ids, versions of aborted ones, indexes by what is looked for."""

from alembic import op

revision = "0004"
down_revision = "0003"

TABLES = """
-- A foreign key costs a look-up for each row written; components are written and removed with their transaction only.
ALTER TABLE txn_component DROP CONSTRAINT txn_component_txn_id_fkey;

ALTER TABLE txn_counter ADD COLUMN is_full boolean NOT NULL DEFAULT false;
COMMENT ON COLUMN txn_counter.is_full IS 'The limit of open transactions was met, and nine tenths of it still are';

CREATE SEQUENCE table_version AS bigint CACHE 1;
ALTER TABLE write_id_counter ADD COLUMN aborted_version bigint NOT NULL DEFAULT nextval('table_version');
COMMENT ON COLUMN write_id_counter.aborted_version IS 'Changes with the aborted write ids, never comes back';

-- What a snapshot of a table has to name, without a walk over its history.
CREATE TABLE unresolved_write_id (
    txn_id     bigint  NOT NULL,
    db         text    NOT NULL,
    tbl        text    NOT NULL,
    write_id   bigint  NOT NULL,
    is_aborted boolean NOT NULL DEFAULT false,
    PRIMARY KEY (txn_id, db, tbl)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000);
COMMENT ON TABLE unresolved_write_id IS 'Write ids of open transactions, and of aborted ones whose files may exist';
CREATE INDEX unresolved_write_id_open ON unresolved_write_id (db, tbl, write_id) WHERE NOT is_aborted;
CREATE INDEX unresolved_write_id_aborted ON unresolved_write_id (db, tbl, write_id) WHERE is_aborted;
INSERT INTO unresolved_write_id (txn_id, db, tbl, write_id, is_aborted)
SELECT w.txn_id, w.db, w.tbl, w.write_id, t.state = 'a' FROM write_id w JOIN txn t USING (txn_id)
 WHERE t.state IN ('o', 'a');

-- The conflict check looks for a partition; '' stands for the whole table.
UPDATE write_set SET partition = '' WHERE partition IS NULL;
ALTER TABLE write_set ALTER COLUMN partition SET NOT NULL;
DROP INDEX write_set_table;
CREATE INDEX write_set_target ON write_set (db, tbl, partition, committed_xid);

-- Who ends looks whether somebody waits for it.
CREATE INDEX lock_component_blocker ON lock_component (blocker_lock) WHERE blocker_lock IS NOT NULL;

-- Postgres reads the text of each CHECK anew in every statement that writes: 2 us for each, two thirds of an insert
-- into lock_component or an update of txn. Only our functions write here.
DO $$
DECLARE
    checked record;
BEGIN
    FOR checked IN
        SELECT c.conname AS name, t.relname AS tbl
          FROM pg_constraint c JOIN pg_class t ON t.oid = c.conrelid
         WHERE c.contype = 'c' AND t.relnamespace = current_schema()::regnamespace
           AND t.relname IN ('txn_counter', 'txn', 'write_id_counter', 'write_id', 'unresolved_write_id',
                             'txn_component', 'write_set', 'lock_component')
    LOOP
        EXECUTE format('ALTER TABLE %I DROP CONSTRAINT %I', checked.tbl, checked.name);
    END LOOP;
END
$$;
"""


def upgrade() -> None:
    """Change the tables."""
    op.execute(TABLES)
