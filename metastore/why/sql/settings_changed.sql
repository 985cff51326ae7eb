-- When parameters of a table or its database last changed by which compactions are decided, if that is less than `within_ms`
-- ago.
CREATE OR REPLACE FUNCTION settings_changed(in_db text, in_tbl text, within_ms bigint) RETURNS bigint
LANGUAGE sql STABLE AS $$
    SELECT max(epoch_ms(s.changed_at)) FROM compaction_setting_change s
     WHERE s.db = in_db AND s.tbl IN (in_tbl, '')
       AND s.changed_at > clock_timestamp() - make_interval(secs => within_ms / 1000.0);
$$;
