"""The transaction ids of other metastores that were imported."""

from alembic import op

revision = "0013"
down_revision = "0012"

TABLES = """
CREATE TABLE imported_txn_range (
    source       text   NOT NULL,
    first_txn_id bigint NOT NULL CHECK (first_txn_id > 0),
    last_txn_id  bigint NOT NULL CHECK (last_txn_id >= first_txn_id),
    PRIMARY KEY (source, first_txn_id)
);
COMMENT ON TABLE imported_txn_range IS
    'Transaction ids that were passed over for an import: here they mean the transactions of that source';
"""


def upgrade() -> None:
    """Create the table."""
    op.execute(TABLES)
