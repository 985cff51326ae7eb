"""The catalogue: functions, constraints, roles and privileges, delegation tokens, and who this metastore is."""

from alembic import op

revision = "0008"
down_revision = "0007"

TABLES = """
CREATE TABLE udf (
    database   text     COLLATE "C" NOT NULL REFERENCES database (name) ON UPDATE CASCADE ON DELETE CASCADE,
    name       text     COLLATE "C" NOT NULL CHECK (name = lower(name)),
    class_name text     NOT NULL,
    owner      text,
    owner_type smallint NOT NULL,
    type       smallint NOT NULL,
    created_s  integer  NOT NULL DEFAULT extract(epoch FROM clock_timestamp())::integer,
    resources  jsonb    NOT NULL,
    PRIMARY KEY (database, name)
);
COMMENT ON TABLE udf IS 'Functions that users have written, and where their code is';

CREATE TABLE table_constraint (
    id             bigint   GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    table_id       bigint   NOT NULL REFERENCES tbl (id) ON DELETE CASCADE,
    name           text     COLLATE "C" NOT NULL CHECK (name = lower(name)),
    kind           smallint NOT NULL CHECK (kind BETWEEN 0 AND 5),
    columns        text[]   NOT NULL,
    enabled        boolean  NOT NULL,
    validated      boolean  NOT NULL,
    rely           boolean  NOT NULL,
    expression     text,
    parent_id      bigint   REFERENCES tbl (id) ON DELETE CASCADE,
    parent_columns text[],
    parent_key     text,
    update_rule    integer,
    delete_rule    integer,
    UNIQUE (table_id, name),
    CONSTRAINT only_foreign_keys_have_parents CHECK (
        (kind = 1) = (parent_id IS NOT NULL AND parent_columns IS NOT NULL))
);
COMMENT ON TABLE table_constraint IS 'What tables promise of their rows; told to clients, not enforced';
COMMENT ON COLUMN table_constraint.kind IS '0 primary key, 1 foreign key, 2 unique, 3 not null, 4 default, 5 check';
COMMENT ON COLUMN table_constraint.columns IS 'In the order of the key; none for a check of the whole row';
COMMENT ON COLUMN table_constraint.expression IS 'The default value, or what is checked';
CREATE UNIQUE INDEX table_constraint_primary_key ON table_constraint (table_id) WHERE kind = 0;
CREATE INDEX table_constraint_parent ON table_constraint (parent_id) WHERE parent_id IS NOT NULL;

CREATE TABLE role (
    name      text    COLLATE "C" PRIMARY KEY,
    owner     text,
    created_s integer NOT NULL DEFAULT extract(epoch FROM clock_timestamp())::integer
);
COMMENT ON TABLE role IS 'Roles that privileges can be granted to';

CREATE TABLE role_grant (
    principal      text     COLLATE "C" NOT NULL,
    principal_type smallint NOT NULL CHECK (principal_type BETWEEN 1 AND 3),
    role           text     COLLATE "C" NOT NULL REFERENCES role (name) ON DELETE CASCADE,
    grantor        text,
    grantor_type   smallint,
    grant_option   boolean  NOT NULL,
    granted_s      integer  NOT NULL DEFAULT extract(epoch FROM clock_timestamp())::integer,
    PRIMARY KEY (principal, principal_type, role)
);
COMMENT ON TABLE role_grant IS 'Who has which role';
COMMENT ON COLUMN role_grant.principal_type IS '1 user, 2 role, 3 group, as on the wire';
CREATE INDEX role_grant_role ON role_grant (role);

CREATE TABLE privilege (
    id             bigint   GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    object_type    smallint NOT NULL,
    database       text     COLLATE "C" REFERENCES database (name) ON UPDATE CASCADE ON DELETE CASCADE,
    table_id       bigint   REFERENCES tbl (id) ON DELETE CASCADE,
    partition_id   bigint   REFERENCES partition (id) ON DELETE CASCADE,
    column_name    text     COLLATE "C",
    principal      text     COLLATE "C" NOT NULL,
    principal_type smallint NOT NULL CHECK (principal_type BETWEEN 1 AND 3),
    privilege      text     COLLATE "C" NOT NULL,
    grantor        text     COLLATE "C",
    grantor_type   smallint,
    grant_option   boolean  NOT NULL,
    granted_s      integer  NOT NULL DEFAULT extract(epoch FROM clock_timestamp())::integer,
    authorizer     text     COLLATE "C",
    UNIQUE NULLS NOT DISTINCT (table_id, database, principal, principal_type, object_type, partition_id, column_name,
                               privilege, grantor, authorizer),
    CONSTRAINT one_object CHECK (
        (object_type = 2) = (database IS NOT NULL) AND (object_type IN (3, 4, 5)) = (table_id IS NOT NULL)
        AND (object_type = 5) = (column_name IS NOT NULL)
        AND CASE object_type WHEN 4 THEN partition_id IS NOT NULL WHEN 5 THEN true ELSE partition_id IS NULL END)
);
COMMENT ON TABLE privilege IS 'Who may do what with which object; told to clients, not enforced';
COMMENT ON COLUMN privilege.object_type IS '1 global, 2 database, 3 table, 4 partition, 5 column, as on the wire';
COMMENT ON COLUMN privilege.partition_id IS 'Of a column: in this partition only';
CREATE INDEX privilege_principal ON privilege (principal, principal_type);
CREATE INDEX privilege_database ON privilege (database) WHERE database IS NOT NULL;
CREATE INDEX privilege_partition ON privilege (partition_id) WHERE partition_id IS NOT NULL;

CREATE TABLE delegation_token (
    identifier text COLLATE "C" PRIMARY KEY,
    token      text NOT NULL
);
COMMENT ON TABLE delegation_token IS 'Tokens that clients keep here';

CREATE TABLE master_key (
    id  integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    key text    NOT NULL
);
COMMENT ON TABLE master_key IS 'Keys of tokens that clients keep here';

CREATE TABLE metastore_identity (
    uuid     uuid    NOT NULL,
    only_one boolean PRIMARY KEY DEFAULT true CHECK (only_one)
);
COMMENT ON TABLE metastore_identity IS 'By what clients know this metastore, as long as its database lives';
"""

ROWS = """
INSERT INTO role (name, owner) VALUES ('admin', 'admin'), ('public', 'public');
INSERT INTO privilege (
    object_type, principal, principal_type, privilege, grantor, grantor_type, grant_option, authorizer
) VALUES (1, 'admin', 2, 'All', 'admin', 2, true, 'SQL');
INSERT INTO metastore_identity (uuid) VALUES (gen_random_uuid());
"""


def upgrade() -> None:
    """Create the tables, with the two roles and the identity that every metastore has."""
    op.execute(TABLES)
    op.execute(ROWS)
