-- The circle of waiting transactions that a transaction is part of: one row for each step, in their order around, from
-- `start` on; none if there is no circle. Each waits, with a request of `type`, for the next.
--
-- Who waits for whom is taken from all locks in the way, not only from those on record as blockers, all as of one
-- moment. Locks outside of transactions are passed through: they cannot begin a circle, having no earlier lock that
-- somebody waits for, but can be in the queue between two of its transactions. Holders are transaction ids, or the
-- negated lock id outside of transactions.
--
-- From all holders of a round those that wait for the same thing with the same type are represented by the one with
-- the largest lock id: it waits for all that the others wait for. So a round costs a walk of each queue, however long.
CREATE OR REPLACE FUNCTION find_deadlock(start bigint)
RETURNS TABLE (waiter bigint, waits_for bigint, type text, db text, tbl text, partition text)
LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
DECLARE
    reached bigint[] := ARRAY[start];
    through integer[] := '{0}';      -- the step that reached it, an index of `steps`
    steps jsonb[] := '{}';
    frontier bigint[] := ARRAY[start];
    step record;
    last_step integer;
    circle jsonb[] := '{}';
BEGIN
    WHILE frontier <> '{}' AND last_step IS NULL LOOP
        FOR step IN
            WITH waiting AS MATERIALIZED (
                SELECT DISTINCT ON (k.type, k.db, k.tbl, k.partition)
                       CASE k.txn_id WHEN 0 THEN -k.lock_id ELSE k.txn_id END AS holder, k.txn_id, k.lock_id,
                       k.type, k.db, k.tbl, k.partition
                  FROM (SELECT l.* FROM lock_component l WHERE l.txn_id = ANY (frontier) AND l.txn_id > 0
                        UNION ALL
                        SELECT l.* FROM lock_component l
                         WHERE l.lock_id = ANY (ARRAY(SELECT -f FROM unnest(frontier) AS f WHERE f < 0))) AS k
                 WHERE k.state = 'w'
                 ORDER BY k.type, k.db, k.tbl, k.partition, k.lock_id DESC)
            SELECT DISTINCT ON (b.holder) w.holder AS waiter, b.holder, w.type, w.db, w.tbl, w.partition
              FROM waiting w
             CROSS JOIN LATERAL (
                SELECT CASE f.txn_id WHEN 0 THEN -f.lock_id ELSE f.txn_id END AS holder
                  FROM find_blockers(w.lock_id, w.txn_id, w.type, w.db, w.tbl, w.partition) AS f
                OFFSET 0) AS b  -- from the waiting ones to what is in their way, not the other way round
             WHERE b.holder = start OR b.holder <> ALL (reached)
             ORDER BY b.holder
        LOOP
            steps := steps || to_jsonb(step);
            IF step.holder = start THEN
                last_step := cardinality(steps);
            ELSE
                reached := reached || step.holder;
                through := through || cardinality(steps);
            END IF;
        END LOOP;
        frontier := reached[1 + array_position(reached, frontier[cardinality(frontier)]):];
    END LOOP;
    WHILE last_step > 0 LOOP
        circle := steps[last_step] || circle;
        last_step := through[array_position(reached, (steps[last_step] ->> 'waiter')::bigint)];
    END LOOP;
    RETURN QUERY
        SELECT (s ->> 'waiter')::bigint, (s ->> 'holder')::bigint, s ->> 'type', s ->> 'db', s ->> 'tbl',
               s ->> 'partition'
          FROM unnest(circle) AS s;
END
$$;
