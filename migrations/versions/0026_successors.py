"""Tables that are about to take the place of others are found without a look at all tables."""

from alembic import op

revision = "0026"
down_revision = "0025"


def upgrade() -> None:
    """Make an index of those few."""
    op.execute("CREATE INDEX tbl_successor ON tbl (name) WHERE starts_with(name, 'hive_acid_successor_')")
