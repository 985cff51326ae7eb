-- Numbers events that have become visible since this was called last, up to `at_most` of them (null: all); returns the
-- last number there is, and how many were numbered now.
--
-- Ids go up without gaps and become visible in their order: one caller numbers at a time, holding the counter's row to
-- its commit, and whatever becomes visible later gets a larger id, however long ago it was written. Writers wait for
-- nothing. Among those that become visible together the order of `place` holds; it is drawn after the change, and a
-- change that depends on another one waits for that one's commit.
-- To be called in a database transaction that is flushed: who has been told an id may keep it.
CREATE OR REPLACE FUNCTION number_events(at_most integer) RETURNS TABLE (last_id bigint, numbered bigint)
LANGUAGE plpgsql AS $$
BEGIN
    numbered := 0;
    IF EXISTS (SELECT 1 FROM notification_event e WHERE e.event_id IS NULL) THEN
        SELECT c.last_event_id INTO last_id FROM notification_counter c FOR NO KEY UPDATE;
        -- A statement of its own: its snapshot is taken while the counter is locked.
        UPDATE notification_event e SET event_id = last_id + waiting.number
          FROM (SELECT w.place, row_number() OVER (ORDER BY w.place) AS number
                  FROM (SELECT u.place FROM notification_event u
                         WHERE u.event_id IS NULL ORDER BY u.place LIMIT at_most) AS w) AS waiting
         WHERE e.place = waiting.place;
        GET DIAGNOSTICS numbered = ROW_COUNT;
        UPDATE notification_counter SET last_event_id = last_id + numbered;
    END IF;
    SELECT c.last_event_id INTO last_id FROM notification_counter c;
    RETURN NEXT;
END
$$;
