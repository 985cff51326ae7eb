-- Forgets that settings for compaction have changed (compaction_setting_change) after `timeout_ms`. Up to `at_most` go;
-- returns how many did.
CREATE OR REPLACE FUNCTION purge_setting_changes(timeout_ms bigint, at_most integer) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    purged bigint;
BEGIN
    PERFORM set_config('synchronous_commit', 'off', true);  -- what a crash brings back goes again
    DELETE FROM compaction_setting_change WHERE ctid = ANY (ARRAY(
        SELECT s.ctid FROM compaction_setting_change s
         WHERE s.changed_at < clock_timestamp() - make_interval(secs => timeout_ms / 1000.0)
         LIMIT at_most));
    GET DIAGNOSTICS purged = ROW_COUNT;
    RETURN purged;
END
$$;
