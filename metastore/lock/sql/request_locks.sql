-- Requests locks, for many callers at once; each request is on several things, all or none (transactions.md §3.2 to
-- §3.4). Arrays up to `exclusive_ctas` have an entry for each request, the others one for each component, `requests`
-- says of which request and `numbers` its number there, from 1. One row per request. Outcome:
--   acquired, waiting            the request is on record under `lock_id`
--   not_acquired                 a reader that will not wait, or a concurrent CTAS: nothing is on record
--   txn_aborted, txn_committed, txn_unknown, txn_read_only     nothing is on record
--   again                        its outcome hangs on an earlier one of this call, or what was in its way has just
--                                gone: nothing done, to be asked again
-- with a blocker where there is one, the nearest before it: who waits for the nearest is woken once, not at each end
-- of those before. `operations` has the letter of what the transaction is going to write, null for nothing; `dynamic`
-- components write to partitions not known yet.
--
-- Calls go one by one: the advisory lock is held until a call is visible, and ids are drawn under it. So a smaller id
-- is always seen, and of the requests of a call an earlier one has the smaller id.
-- A repetition in a transaction is given what the first attempt got; outside of one it queues behind that.
-- Locks of young transactions are not flushed, see recover_from_crash.
-- `opened_here` says that this database transaction has opened the requesters, none of them to read only if it is to
-- write. Nobody else knows of them, so they are not looked at.
CREATE OR REPLACE FUNCTION request_locks(
    requesters bigint[], user_names text[], host_names text[], agent_infos text[], reader_waits boolean[],
    exclusive_ctas boolean[], requests integer[], numbers integer[], types text[], dbs text[], tbls text[],
    partitions text[], operations text[], dynamic boolean[], opened_here boolean DEFAULT false
) RETURNS TABLE (outcome text, lock_id bigint, blocked_component integer, blocker_lock bigint,
                 blocker_component integer, blocker_type text, blocker_state text, blocker_txn bigint)
LANGUAGE plpgsql AS $$
#variable_conflict use_variable
DECLARE
    total CONSTANT integer := cardinality(requesters);
    open_ids bigint[];
    read_only_ids bigint[];
    young_ids bigint[];
    unflushed text;
    outcomes text[];
    states text[];  -- of requests that are repeated
    lock_ids bigint[];
    blocked integer[];  -- by request: the component, its place in the arrays
    blockers bigint[];
    blocker_components integer[];
    contended boolean;
    may_be_repeated boolean;
    serialized boolean;
    unsure boolean := false;
    instant timestamptz;
    found record;
BEGIN
    -- Share locks to the end: no abort or commit slips in between the check and the rows.
    IF opened_here THEN
        open_ids := requesters;
        young_ids := requesters;
    ELSE
        SELECT array_agg(t.txn_id), array_agg(t.txn_id) FILTER (WHERE t.type = 2),
               array_agg(t.txn_id) FILTER (WHERE t.durability = 'y')
          INTO open_ids, read_only_ids, young_ids
          FROM (SELECT k.txn_id, k.state, k.type, k.durability FROM txn k
                 WHERE k.txn_id = ANY (requesters) ORDER BY k.txn_id FOR SHARE) AS t
         WHERE t.state = 'o' AND t.durability <> 'l';
    END IF;
    IF requesters <@ young_ids THEN
        unflushed := set_config('synchronous_commit', 'off', true);
    END IF;
    serialized := pg_advisory_xact_lock(advisory_key(2, '')) IS NULL;  -- an assignment costs less than PERFORM
    FOR i IN 1..total LOOP
        outcomes[i] := 'acquired';
        IF requesters[i] <> 0 AND (requesters[i] = ANY (open_ids)) IS NOT TRUE THEN
            outcomes[i] := coalesce((SELECT CASE t.state WHEN 'c' THEN 'txn_committed' ELSE 'txn_aborted' END
                                       FROM txn t WHERE t.txn_id = requesters[i]), 'txn_unknown');
        END IF;
        lock_ids[i] := nextval('lock_id');
    END LOOP;
    IF read_only_ids IS NOT NULL THEN
        FOR c IN 1..cardinality(types) LOOP
            IF operations[c] IS NOT NULL AND requesters[requests[c]] = ANY (read_only_ids) THEN
                outcomes[requests[c]] := 'txn_read_only';
            END IF;
        END LOOP;
    END IF;
    -- A transaction that asks for the same again has lost the answer: a new request would queue behind those who wait
    -- for the first one. So it is given that.
    FOR i IN 2..total LOOP
        IF requesters[i] <> 0 AND requesters[i] = ANY (requesters[:i - 1]) AND outcomes[i] = 'acquired' THEN
            outcomes[i] := 'again';
        END IF;
    END LOOP;
    -- Most often there are only shared locks, one look at the strong ones shows that nobody is in the way, and nobody
    -- has a lock already. LIMIT keeps it a look per component, whatever the planner thinks of the number of strong locks.
    SELECT EXISTS (
               SELECT 1 FROM generate_subscripts(tbls, 1) AS c
                CROSS JOIN LATERAL (
                   SELECT 1 FROM lock_component s
                    WHERE s.type IN ('x', 'e') AND s.db = dbs[c] AND s.tbl = ANY (ARRAY[tbls[c], '']) LIMIT 1) AS strong),
           NOT opened_here AND EXISTS (SELECT 1 FROM lock_component l WHERE l.txn_id = ANY (array_remove(requesters, 0)))
      INTO contended, may_be_repeated;
    contended := contended OR types && '{x,e}' OR '' = ANY (tbls);
    IF may_be_repeated THEN
        FOR found IN
            SELECT r AS request, h.lock_id AS lock, max(h.state) AS state, max(h.blocker_lock) AS blocker,
                   max(h.blocker_component) AS blocker_part
              FROM generate_subscripts(requesters, 1) AS r
             CROSS JOIN LATERAL (SELECT * FROM lock_component l WHERE l.txn_id = requesters[r] OFFSET 0) AS h
             WHERE requesters[r] <> 0 AND outcomes[r] = 'acquired'
             GROUP BY r, h.lock_id
            HAVING count(*) = (SELECT count(*) FROM unnest(requests) AS q WHERE q = r)
               AND bool_and(EXISTS (
                       SELECT 1 FROM generate_subscripts(types, 1) AS c
                        WHERE requests[c] = r AND numbers[c] = h.component AND types[c] = h.type AND dbs[c] = h.db
                          AND tbls[c] = h.tbl AND partitions[c] = h.partition))
             ORDER BY r, h.lock_id DESC
        LOOP
            outcomes[found.request] := 'repeated';
            states[found.request] := CASE found.state WHEN 'a' THEN 'acquired' ELSE 'waiting' END;
            lock_ids[found.request] := found.lock;
            blockers[found.request] := found.blocker;
            blocker_components[found.request] := found.blocker_part;
        END LOOP;
    END IF;
    IF contended THEN
        FOR found IN
            SELECT DISTINCT ON (requests[c]) requests[c] AS request, c AS component, b.lock_id AS blocker,
                   b.component AS blocker_part
              FROM generate_subscripts(types, 1) AS c
             CROSS JOIN LATERAL (
                SELECT f.lock_id, f.component
                  FROM find_blockers(lock_ids[requests[c]], requesters[requests[c]], types[c], dbs[c], tbls[c],
                                     partitions[c]) AS f
                 ORDER BY f.lock_id DESC, f.component LIMIT 1) AS b
             WHERE outcomes[requests[c]] = 'acquired'
             ORDER BY requests[c], c
        LOOP
            outcomes[found.request] := 'waiting';
            blocked[found.request] := found.component;
            blockers[found.request] := found.blocker;
            blocker_components[found.request] := found.blocker_part;
            IF requesters[found.request] <> 0 AND (exclusive_ctas[found.request]
                    OR NOT reader_waits[found.request] AND types[found.component] = 'r') THEN
                outcomes[found.request] := 'not_acquired';
            END IF;
        END LOOP;
        IF total > 1 AND types && '{x,e}' THEN
            FOR found IN
                SELECT DISTINCT ON (requests[c]) requests[c] AS request, c AS component, b.sooner
                  FROM generate_subscripts(types, 1) AS c
                 CROSS JOIN LATERAL (
                    SELECT s AS sooner FROM generate_series(c - numbers[c], 1, -1) AS s
                     WHERE dbs[s] = dbs[c]
                       AND (requesters[requests[s]] <> requesters[requests[c]] OR requesters[requests[c]] = 0)
                       AND outcomes[requests[s]] IN ('acquired', 'waiting')
                       AND locks_collide(types[c], tbls[c], partitions[c], types[s], tbls[s], partitions[s])
                     LIMIT 1) AS b
                 WHERE outcomes[requests[c]] IN ('acquired', 'waiting')
                 ORDER BY requests[c], c
            LOOP
                outcomes[found.request] := 'waiting';
                blocked[found.request] := found.component;
                blockers[found.request] := lock_ids[requests[found.sooner]];
                blocker_components[found.request] := numbers[found.sooner];
                -- Whether such a one is refused, and with it who waits for it, is told by the next call.
                unsure := unsure OR NOT reader_waits[found.request] OR exclusive_ctas[found.request]
                    OR NOT reader_waits[requests[found.sooner]] OR exclusive_ctas[requests[found.sooner]];
            END LOOP;
            IF unsure THEN
                FOR i IN 1..total LOOP
                    IF blockers[i] = ANY (lock_ids) THEN
                        outcomes[i] := 'again';
                    END IF;
                END LOOP;
            END IF;
        END IF;
    END IF;
    instant := clock_timestamp();
    INSERT INTO lock_component (lock_id, component, txn_id, db, tbl, partition, type, state, user_name, host_name,
                                agent_info, heartbeat_at, acquired_at, blocker_lock, blocker_component)
    SELECT lock_ids[requests[c]], numbers[c], requesters[requests[c]], dbs[c], tbls[c], partitions[c], types[c],
           CASE outcomes[requests[c]] WHEN 'acquired' THEN 'a' ELSE 'w' END,
           user_names[requests[c]], host_names[requests[c]], agent_infos[requests[c]],
           CASE requesters[requests[c]] WHEN 0 THEN instant END,
           CASE outcomes[requests[c]] WHEN 'acquired' THEN instant END,
           CASE c WHEN blocked[requests[c]] THEN blockers[requests[c]] END,
           CASE c WHEN blocked[requests[c]] THEN blocker_components[requests[c]] END
      FROM generate_subscripts(types, 1) AS c
     WHERE outcomes[requests[c]] IN ('acquired', 'waiting');
    IF cardinality(array_remove(operations, NULL)) > 0 THEN
        INSERT INTO txn_component (txn_id, db, tbl, partition, operation, write_id)
        SELECT requesters[requests[c]], dbs[c], tbls[c], nullif(partitions[c], ''), operations[c],
               (SELECT u.write_id FROM unresolved_write_id u
                 WHERE u.txn_id = requesters[requests[c]] AND u.db = dbs[c] AND u.tbl = tbls[c])
          FROM generate_subscripts(types, 1) AS c
         WHERE operations[c] IS NOT NULL AND NOT dynamic[c] AND tbls[c] <> ''
           AND outcomes[requests[c]] IN ('acquired', 'waiting', 'repeated')
        ON CONFLICT DO NOTHING;
    END IF;
    IF true = ANY (dynamic) THEN
        -- However many dynamic components: one row for the table, an update if any of them is more than an insert.
        INSERT INTO txn_component (txn_id, db, tbl, operation, write_id)
        SELECT a.txn_id, a.d, a.t, CASE WHEN a.changes THEN 'u' ELSE 'i' END,
               (SELECT u.write_id FROM unresolved_write_id u WHERE u.txn_id = a.txn_id AND u.db = a.d AND u.tbl = a.t)
          FROM (SELECT requesters[requests[c]] AS txn_id, dbs[c] AS d, tbls[c] AS t,
                       bool_or(operations[c] IN ('u', 'd')) AS changes
                  FROM generate_subscripts(types, 1) AS c
                 WHERE operations[c] IS NOT NULL AND dynamic[c] AND tbls[c] <> ''
                   AND outcomes[requests[c]] IN ('acquired', 'waiting', 'repeated')
                 GROUP BY requesters[requests[c]], requests[c], dbs[c], tbls[c]) AS a
        ON CONFLICT DO NOTHING;
    END IF;
    FOR i IN 1..total LOOP
        outcome := CASE outcomes[i] WHEN 'repeated' THEN states[i] ELSE outcomes[i] END;
        lock_id := lock_ids[i];
        blocked_component := numbers[blocked[i]];
        blocker_lock := blockers[i];
        blocker_component := blocker_components[i];
        IF outcome = 'not_acquired' THEN
            SELECT h.type, h.state, h.txn_id INTO blocker_type, blocker_state, blocker_txn
              FROM lock_component h WHERE h.lock_id = blocker_lock AND h.component = blocker_component;
            IF blocker_type IS NULL THEN
                outcome := 'again';  -- it has gone since it was found in the way
            END IF;
        END IF;
        RETURN NEXT;
    END LOOP;
END
$$;
