-- Forgets up to `at_most` of the oldest events, and of write notifications, if they are older than `retention_ms`;
-- how many of both. Events without a number stay: whoever follows the log must be able to see that it missed some.
CREATE OR REPLACE FUNCTION purge_events(retention_ms bigint, at_most integer)
RETURNS TABLE (events bigint, write_notifications bigint)
LANGUAGE plpgsql AS $$
DECLARE
    oldest timestamptz := clock_timestamp() - make_interval(secs => retention_ms / 1000.0);
BEGIN
    PERFORM set_config('synchronous_commit', 'off', true);
    WITH first AS (
        SELECT e.place, e.recorded_at FROM notification_event e
         WHERE e.event_id IS NOT NULL ORDER BY e.event_id LIMIT at_most
    ), gone AS (
        DELETE FROM notification_event e USING first f
         WHERE e.place = f.place AND f.recorded_at < oldest
        RETURNING 1
    )
    SELECT count(*) INTO events FROM gone;
    WITH first AS (
        SELECT w.ctid FROM write_notification w
         WHERE w.recorded_at < oldest ORDER BY w.recorded_at LIMIT at_most FOR UPDATE SKIP LOCKED
    ), gone AS (
        DELETE FROM write_notification w USING first f WHERE w.ctid = f.ctid
        RETURNING 1
    )
    SELECT count(*) INTO write_notifications FROM gone;
    RETURN NEXT;
END
$$;
