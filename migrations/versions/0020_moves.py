"""Directories that move are on record until that is stored, those of dropped databases until they are gone."""

from alembic import op

revision = "0020"
down_revision = "0019"


def upgrade() -> None:
    """Add the columns."""
    op.execute("""
ALTER TABLE directory_removal ADD COLUMN takes_back boolean NOT NULL DEFAULT false;
COMMENT ON COLUMN directory_removal.takes_back IS 'A change that is not committed moves the directory here from trash,
 where it belongs: whoever makes the change removes this row in the transaction that stores the new place';
ALTER TABLE directory_removal ADD COLUMN home_since timestamptz;
COMMENT ON COLUMN directory_removal.home_since IS 'When the database was dropped whose directory it is: it goes only if
 nobody has anything there by now';
COMMENT ON COLUMN directory_removal.trash IS 'Where the directory is moved to, null if it is removed';
""")
