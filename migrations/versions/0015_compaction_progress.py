"""Compactions: how far they are, what they have made of what, who had them last, and why they are where they are."""

from alembic import op

revision = "0015"
down_revision = "0014"

TABLES = """
ALTER TABLE compaction
    ADD COLUMN last_worker  text,
    ADD COLUMN progress     jsonb,
    ADD COLUMN files_before integer CHECK (files_before >= 0),
    ADD COLUMN bytes_before bigint CHECK (bytes_before >= 0),
    ADD COLUMN files_after  integer CHECK (files_after >= 0),
    ADD COLUMN bytes_after  bigint CHECK (bytes_after >= 0),
    ADD COLUMN reason       text;
COMMENT ON COLUMN compaction.last_worker IS 'Who worked on it until it was no longer being worked on';
COMMENT ON COLUMN compaction.progress IS 'What the job last said: rows, files, bytes_written, phase, and at, in ms';
COMMENT ON COLUMN compaction.files_before IS 'Files that it replaces';
COMMENT ON COLUMN compaction.bytes_before IS 'Bytes of the files that it replaces';
COMMENT ON COLUMN compaction.files_after IS 'Files that it made';
COMMENT ON COLUMN compaction.bytes_after IS 'Bytes of the files that it made';
COMMENT ON COLUMN compaction.reason IS 'Why it is in its state, in the words of who put it there';
"""


def upgrade() -> None:
    """Add the columns."""
    op.execute(TABLES)
