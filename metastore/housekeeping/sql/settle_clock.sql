-- Looks whether this clock has been put forward or back since somebody saw it: it should show `expected_ms`, give or take
-- `slack_ms`. If it has, the silence of all transactions and locks counts from now on: by the old heartbeats the living
-- would time out at once, or the dead hours late. Heartbeats from the future are corrected in any case. Returns what the
-- clock shows, by how much it has moved (0 if it has not), and how many transactions and locks begin anew.
CREATE OR REPLACE FUNCTION settle_clock(expected_ms bigint, slack_ms bigint)
RETURNS TABLE (shown_ms bigint, moved_ms bigint, begun_anew bigint)
LANGUAGE plpgsql AS $$
DECLARE
    instant CONSTANT timestamptz := clock_timestamp();
    slack CONSTANT interval := make_interval(secs => slack_ms / 1000.0);
    n bigint;
BEGIN
    shown_ms := epoch_ms(instant);
    moved_ms := CASE WHEN abs(shown_ms - expected_ms) > slack_ms THEN shown_ms - expected_ms ELSE 0 END;
    -- Locked in ascending order, like everywhere: nobody can deadlock.
    UPDATE txn SET heartbeat_at = instant
     WHERE txn_id IN (SELECT t.txn_id FROM txn t
                       WHERE t.state = 'o' AND (moved_ms <> 0 OR t.heartbeat_at > instant + slack)
                       ORDER BY t.txn_id FOR NO KEY UPDATE)
       AND state = 'o';
    GET DIAGNOSTICS begun_anew = ROW_COUNT;
    UPDATE lock_component c SET heartbeat_at = instant
      FROM (SELECT l.ctid AS place FROM lock_component l
             WHERE l.txn_id = 0 AND (moved_ms <> 0 OR l.heartbeat_at > instant + slack)
             ORDER BY l.lock_id, l.component FOR NO KEY UPDATE) AS kept
     WHERE c.ctid = kept.place;
    GET DIAGNOSTICS n = ROW_COUNT;
    begun_anew := begun_anew + n;
    RETURN NEXT;
END
$$;
