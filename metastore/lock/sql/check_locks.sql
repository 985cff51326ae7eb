-- Grants those of the lock requests that nothing is in the way of any more (transactions.md §3.5), for many callers at
-- once: `checked[i]`, said to belong to the transaction `txn_ids[i]`, 0 for none; `beats[i]` heartbeats it. One row per
-- request that is asked for, in no order. Outcome:
--   acquired, waiting     with the transaction it belongs to and the nearest lock in its way; with none if only
--                         somebody who works on it in this instant is
--   txn_aborted           it went with `txn_ids[i]`, for `abort_reason`
--   lock_unknown
-- Safe to repeat.
--
-- No advisory lock is needed: whoever could be in the way has a smaller id and is on record already. Rows that others
-- work on are passed over, so that this never waits for anybody and is in no deadlock of the database.
CREATE OR REPLACE FUNCTION check_locks(checked bigint[], txn_ids bigint[], beats boolean[])
RETURNS TABLE (lock_id bigint, asked_txn bigint, outcome text, txn_id bigint, blocker_lock bigint, abort_reason text)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    found record;
    known bigint[] := '{}';
    free_ids bigint[] := '{}';
    free_sizes bigint[] := '{}';
    free_txns bigint[] := '{}';
    locked bigint[];
    moved bigint[] := '{}';
    moved_components integer[] := '{}';
    moved_blockers bigint[] := '{}';
    moved_blocker_components integer[] := '{}';
BEGIN
    -- A grant lost in a crash of Postgres is given again at the next check: who comes later waits for a request with a
    -- smaller id whether it is granted or not.
    PERFORM set_config('synchronous_commit', 'off', true);
    IF true = ANY (beats) THEN
        PERFORM heartbeat_locks(ARRAY(SELECT a.id FROM unnest(checked, beats) AS a (id, beat) WHERE a.beat));
    END IF;
    FOR found IN
        SELECT l.lock_id, min(l.txn_id) AS txn_id, min(l.state) AS state, count(*) AS size,
               min(l.blocker_lock) AS recorded_lock,
               min(l.component) FILTER (WHERE b.lock_id IS NOT NULL) AS component,
               (array_agg(b.lock_id ORDER BY l.component) FILTER (WHERE b.lock_id IS NOT NULL))[1] AS blocker,
               (array_agg(b.component ORDER BY l.component) FILTER (WHERE b.lock_id IS NOT NULL))[1] AS blocker_part
          FROM lock_component l
          LEFT JOIN LATERAL (
                SELECT f.lock_id, f.component
                  FROM find_blockers(l.lock_id, l.txn_id, l.type, l.db, l.tbl, l.partition) AS f
                 WHERE l.state = 'w'
                 ORDER BY f.lock_id DESC, f.component LIMIT 1) AS b ON true
         WHERE l.lock_id = ANY (checked)
         GROUP BY l.lock_id
    LOOP
        known := known || found.lock_id;
        IF found.state = 'a' THEN
            RETURN QUERY SELECT found.lock_id, NULL::bigint, 'acquired', found.txn_id, NULL::bigint, NULL::text;
        ELSIF found.blocker IS NULL THEN
            free_ids := free_ids || found.lock_id;
            free_sizes := free_sizes || found.size;
            free_txns := free_txns || found.txn_id;
        ELSE
            IF found.blocker IS DISTINCT FROM found.recorded_lock THEN
                moved := moved || found.lock_id;
                moved_components := moved_components || found.component;
                moved_blockers := moved_blockers || found.blocker;
                moved_blocker_components := moved_blocker_components || found.blocker_part;
            END IF;
            RETURN QUERY SELECT found.lock_id, NULL::bigint, 'waiting', found.txn_id, found.blocker, NULL::text;
        END IF;
    END LOOP;
    IF free_ids <> '{}' THEN
        -- All components of a request or none: some of them may be going just now, with their transaction.
        locked := ARRAY(
            SELECT k.lock_id
              FROM (SELECT l.lock_id FROM lock_component l
                     WHERE l.lock_id = ANY (free_ids) ORDER BY l.lock_id, l.component FOR UPDATE SKIP LOCKED) AS k
             GROUP BY k.lock_id
            HAVING count(*) = free_sizes[array_position(free_ids, k.lock_id)]);
        UPDATE lock_component l
           SET state = 'a', acquired_at = clock_timestamp(), blocker_lock = NULL, blocker_component = NULL
         WHERE l.lock_id = ANY (locked) AND l.state = 'w';
        RETURN QUERY
            SELECT f.id, NULL::bigint, CASE WHEN f.id = ANY (locked) THEN 'acquired' ELSE 'waiting' END, f.txn,
                   NULL::bigint, NULL::text
              FROM unnest(free_ids, free_txns) AS f (id, txn);
    END IF;
    IF moved <> '{}' THEN
        UPDATE lock_component l
           SET blocker_lock = CASE l.component WHEN moved_components[m.i] THEN moved_blockers[m.i] END,
               blocker_component = CASE l.component WHEN moved_components[m.i] THEN moved_blocker_components[m.i] END
          FROM (SELECT k.ctid AS place, array_position(moved, k.lock_id) AS i FROM lock_component k
                 WHERE k.lock_id = ANY (moved) AND k.state = 'w'
                   AND (k.blocker_lock IS NOT NULL
                        OR k.component = moved_components[array_position(moved, k.lock_id)])
                 ORDER BY k.lock_id, k.component FOR UPDATE SKIP LOCKED) AS m
         WHERE l.ctid = m.place;
    END IF;
    IF cardinality(known) < cardinality(checked) THEN
        RETURN QUERY
            SELECT a.id, a.txn, CASE t.state WHEN 'a' THEN 'txn_aborted' ELSE 'lock_unknown' END, NULL::bigint,
                   NULL::bigint, t.abort_reason
              FROM unnest(checked, txn_ids) AS a (id, txn) LEFT JOIN txn t ON t.txn_id = a.txn
             WHERE a.id <> ALL (known);
    END IF;
END
$$;
