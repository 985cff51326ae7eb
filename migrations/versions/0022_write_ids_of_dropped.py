"""A dropped table keeps its write ids with the transactions they belong to; who was writing is aborted at the drop."""

from alembic import op

revision = "0022"
down_revision = "0021"

COLUMNS = """
ALTER TABLE dropped_table ADD COLUMN write_ids jsonb, ADD COLUMN aborted_components jsonb;
COMMENT ON COLUMN dropped_table.write_ids IS 'The rows of write_id; null for none';
COMMENT ON COLUMN dropped_table.aborted_components IS
    'The rows of txn_component of transactions that had aborted; null for none';
"""

# Which transactions those of before belonged to is not known: each invalid one gets a new one, and so does the highest
# valid one, since of a table with nothing but aborted ones on record a snapshot shows nothing.
OWNERS = """
WITH known AS MATERIALIZED (
    SELECT d.id, d.database, d.name, i.write_id, true AS is_aborted
      FROM dropped_table d, unnest(d.invalid_write_ids) AS i (write_id)
    UNION ALL
    SELECT d.id, d.database, d.name,
           (SELECT max(g) FROM generate_series(greatest(1, d.last_write_id - cardinality(d.invalid_write_ids)),
                                               d.last_write_id) AS g
             WHERE g <> ALL (d.invalid_write_ids)), false
      FROM dropped_table d WHERE d.invalid_write_ids <> '{}'
), numbered AS MATERIALIZED (
    SELECT k.*, row_number() OVER () AS number FROM known k WHERE k.write_id IS NOT NULL
), counted AS (
    UPDATE txn_counter c SET last_id = c.last_id + n.how_many, counted_at = c.counted_at + n.how_many
      FROM (SELECT count(*) AS how_many FROM numbered) n RETURNING c.last_id - n.how_many AS before
), built AS (
    SELECT n.id,
           jsonb_agg(jsonb_build_object('db', n.database, 'tbl', n.name, 'write_id', n.write_id,
                                        'txn_id', c.before + n.number)) AS write_ids,
           jsonb_agg(jsonb_build_object('db', n.database, 'tbl', n.name, 'write_id', n.write_id,
                                        'txn_id', c.before + n.number, 'operation', 'i'))
               FILTER (WHERE n.is_aborted) AS components
      FROM numbered n, counted c GROUP BY n.id
)
UPDATE dropped_table d SET write_ids = b.write_ids, aborted_components = b.components FROM built b WHERE b.id = d.id
"""


def upgrade() -> None:
    """Add the columns, fill them, and remove those that they stand for."""
    op.execute(COLUMNS)
    op.execute(OWNERS)
    op.execute("ALTER TABLE dropped_table DROP COLUMN writers, DROP COLUMN invalid_write_ids")
