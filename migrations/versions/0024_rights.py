"""Privileges are enforced: they may be of one catalog, and servers that know some by heart hear of changes."""

from alembic import op

revision = "0024"
down_revision = "0023"

CATALOG = """
ALTER TABLE privilege ADD COLUMN catalog text COLLATE "C" REFERENCES catalog (name) ON DELETE CASCADE;
ALTER TABLE privilege ADD CONSTRAINT catalog_of_all CHECK (catalog IS NULL OR object_type = 1);
ALTER TABLE privilege DROP CONSTRAINT privilege_table_id_database_principal_principal_type_object_key;
ALTER TABLE privilege ADD UNIQUE NULLS NOT DISTINCT (
    table_id, database, catalog, principal, principal_type, object_type, partition_id, column_name, privilege, grantor,
    authorizer);
COMMENT ON TABLE privilege IS 'Who may do what with which object; enforced by metastore.authorization=grants';
COMMENT ON COLUMN privilege.catalog IS 'Of a global one: it holds in this catalog only';
"""

NOTICES = """
CREATE FUNCTION tell_rights() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('hive_acid_rights', '');
    RETURN NULL;
END $$;
CREATE FUNCTION tell_rights_on_table() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('hive_acid_rights', OLD.database || '.' || OLD.name);
    RETURN NULL;
END $$;

CREATE TRIGGER rights_changed AFTER INSERT OR UPDATE OR DELETE ON privilege EXECUTE FUNCTION tell_rights();
CREATE TRIGGER rights_changed AFTER INSERT OR UPDATE OR DELETE ON role_grant EXECUTE FUNCTION tell_rights();
CREATE TRIGGER rights_changed AFTER DELETE ON database EXECUTE FUNCTION tell_rights();
CREATE TRIGGER owner_changed AFTER UPDATE ON database FOR EACH ROW
    WHEN ((OLD.name, OLD.owner, OLD.owner_type) IS DISTINCT FROM (NEW.name, NEW.owner, NEW.owner_type))
    EXECUTE FUNCTION tell_rights();
CREATE TRIGGER rights_changed AFTER DELETE ON tbl FOR EACH ROW EXECUTE FUNCTION tell_rights_on_table();
CREATE TRIGGER owner_changed AFTER UPDATE ON tbl FOR EACH ROW
    WHEN ((OLD.database, OLD.name, OLD.owner, OLD.owner_type)
          IS DISTINCT FROM (NEW.database, NEW.name, NEW.owner, NEW.owner_type))
    EXECUTE FUNCTION tell_rights_on_table();
"""


def upgrade() -> None:
    """Add the column and the triggers."""
    op.execute(CATALOG)
    op.execute(NOTICES)
