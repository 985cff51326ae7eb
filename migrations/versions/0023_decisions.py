"""What a service decided of a table or partition is a decision, as its columns have always said."""

from alembic import op

revision = "0023"
down_revision = "0022"


def upgrade() -> None:
    """Rename the table."""
    op.execute("""
ALTER TABLE compaction_verdict RENAME TO compaction_decision;
ALTER INDEX compaction_verdict_db_tbl_partition_service_key RENAME TO compaction_decision_db_tbl_partition_service_key;
""")
