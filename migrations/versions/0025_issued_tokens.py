"""Delegation tokens that this metastore issues, and the keys of their passwords: apart from those that clients keep."""

from alembic import op

revision = "0025"
down_revision = "0024"

TABLES = """
CREATE TABLE token_key (
    id         integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    key        bytea   NOT NULL,
    created_ms bigint  NOT NULL
);
COMMENT ON TABLE token_key IS 'Keys by which the passwords of delegation tokens are made; no call tells them';

CREATE TABLE issued_token (
    sequence  integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    owner     text    COLLATE "C" NOT NULL,
    renewer   text    NOT NULL,
    real_user text    NOT NULL,
    issued_ms bigint  NOT NULL,
    max_ms    bigint  NOT NULL,
    ends_ms   bigint  NOT NULL CHECK (ends_ms <= max_ms),
    key_id    integer NOT NULL REFERENCES token_key (id)
);
COMMENT ON TABLE issued_token IS 'Delegation tokens that were issued and not cancelled; without their passwords';
COMMENT ON COLUMN issued_token.real_user IS 'Who has asked for it, if not its owner';
COMMENT ON COLUMN issued_token.max_ms IS 'Beyond that nobody renews it';
COMMENT ON COLUMN issued_token.ends_ms IS 'Until then it is good, unless it is renewed';
CREATE INDEX issued_token_owner ON issued_token (owner);
CREATE INDEX issued_token_ends ON issued_token (ends_ms);
CREATE INDEX issued_token_key ON issued_token (key_id);
"""


def upgrade() -> None:
    """Make the tables."""
    op.execute(TABLES)
