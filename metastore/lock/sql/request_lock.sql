-- Requests locks on several things at once, all or none (transactions.md §3.2 to §3.4). Outcome:
--   acquired, waiting            the request is on record under `lock_id`
--   not_acquired                 a reader that will not wait, or a concurrent CTAS: nothing is on record
--   txn_aborted, txn_committed, txn_unknown
-- with the blocker of the first blocked component where there is one. `operations` has the letter of what the
-- transaction is going to write, null for nothing; `dynamic` components write to partitions not known yet.
--
-- Requests that can be in each other's way go one by one: all that overlap have finished, and are visible, once the
-- advisory locks are held, and only then is the id drawn. So a smaller id that matters is always seen.
-- A repetition in a transaction does no harm; outside of one it queues behind the first attempt.
CREATE OR REPLACE FUNCTION request_lock(
    requester bigint, in_user text, in_host text, in_agent text, reader_waits boolean, exclusive_ctas boolean,
    types text[], dbs text[], tbls text[], partitions text[], operations text[], dynamic boolean[]
) RETURNS TABLE (outcome text, lock_id bigint, blocked_component integer, blocker_lock bigint,
                 blocker_component integer, blocker_type text, blocker_state text, blocker_txn bigint)
LANGUAGE plpgsql AS $$
#variable_conflict use_variable
DECLARE
    txn_state text;
    instant timestamptz;
BEGIN
    IF requester <> 0 THEN
        SELECT t.state INTO txn_state FROM txn t WHERE t.txn_id = requester FOR SHARE;
        IF txn_state IS DISTINCT FROM 'o' THEN
            outcome := CASE txn_state WHEN 'a' THEN 'txn_aborted' WHEN 'c' THEN 'txn_committed' ELSE 'txn_unknown' END;
            RETURN NEXT;
            RETURN;
        END IF;
    END IF;
    PERFORM CASE WHEN alone THEN pg_advisory_xact_lock(key) ELSE pg_advisory_xact_lock_shared(key) END
       FROM (SELECT advisory_key(2, name) AS key, bool_or(whole) AS alone
               FROM (SELECT d AS name, t = '' AS whole FROM unnest(dbs, tbls) AS asked (d, t)
                     UNION ALL
                     SELECT d || '.' || t, true FROM unnest(dbs, tbls) AS asked (d, t) WHERE t <> '') AS names
              GROUP BY key ORDER BY key) AS sorted;
    lock_id := nextval('lock_id');
    SELECT b.component, b.blocker_lock, b.blocker_component
      INTO blocked_component, blocker_lock, blocker_component
      FROM find_blocker(lock_id, requester, types, dbs, tbls, partitions) b;
    outcome := CASE WHEN blocked_component IS NULL THEN 'acquired' ELSE 'waiting' END;
    IF blocked_component IS NOT NULL THEN
        SELECT h.type, h.state, h.txn_id INTO blocker_type, blocker_state, blocker_txn
          FROM lock_component h WHERE h.lock_id = blocker_lock AND h.component = blocker_component;
        IF requester <> 0 AND (exclusive_ctas OR NOT reader_waits AND types[blocked_component] = 'r') THEN
            outcome := 'not_acquired';
            RETURN NEXT;
            RETURN;
        END IF;
    END IF;
    instant := clock_timestamp();
    INSERT INTO lock_component (lock_id, component, txn_id, db, tbl, partition, type, state, user_name, host_name,
                                agent_info, heartbeat_at, acquired_at, blocker_lock, blocker_component)
    SELECT lock_id, number, requester, a.d, a.t, a.p, a.type, CASE outcome WHEN 'acquired' THEN 'a' ELSE 'w' END,
           in_user, in_host, in_agent,
           CASE requester WHEN 0 THEN instant END, CASE outcome WHEN 'acquired' THEN instant END,
           CASE number WHEN blocked_component THEN blocker_lock END,
           CASE number WHEN blocked_component THEN blocker_component END
      FROM unnest(types, dbs, tbls, partitions) WITH ORDINALITY AS a (type, d, t, p, number);
    IF requester <> 0 THEN
        INSERT INTO txn_component (txn_id, db, tbl, partition, operation, write_id)
        SELECT DISTINCT requester, a.d, a.t, a.part, a.op,
               (SELECT w.write_id FROM write_id w WHERE w.db = a.d AND w.tbl = a.t AND w.txn_id = requester)
          FROM (SELECT d, t, nullif(p, '') AS part, o AS op
                  FROM unnest(dbs, tbls, partitions, operations, dynamic) AS c (d, t, p, o, y)
                 WHERE o IS NOT NULL AND NOT y AND t <> ''
                UNION ALL
                -- However many dynamic components: one row for the table, an update if any of them is more than an
                -- insert.
                SELECT d, t, NULL, CASE WHEN bool_or(o IN ('u', 'd')) THEN 'u' ELSE 'i' END
                  FROM unnest(dbs, tbls, operations, dynamic) AS c (d, t, o, y)
                 WHERE o IS NOT NULL AND y AND t <> ''
                 GROUP BY d, t) AS a
        ON CONFLICT DO NOTHING;
    END IF;
    RETURN NEXT;
END
$$;
