-- Commits transactions, each as if alone (transactions.md §1.5, §1.6); one row for each, by its id. Outcome:
--   committed
--   committed_before  nothing to do
--   aborted_before    nothing done
--   unknown           nothing done
--   conflict          it is aborted now, for `conflict_reason`; the other columns say what it collided with
--   lost              it is aborted now, since it may lack a lock or a write id: see recover_from_crash
--   again             it would collide with an earlier one of this call: nothing done, to be asked again
-- and a last row, `freed`, with all the locks that were freed. Safe to repeat.
--
-- Two writes to the same data conflict when the other was committed by a database transaction that had not ended for
-- the snapshot in which this one was opened. The whole table and each of its partitions are the same data.
CREATE OR REPLACE FUNCTION commit_txns(txn_ids bigint[], skip_checks boolean[], conflict_reason text)
RETURNS TABLE (
    txn_id bigint, outcome text, freed_locks bigint[], db text, tbl text, partition text, operation text,
    commit_id bigint, other_txn bigint, other_commit_id bigint, other_operation text
)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    open_ids bigint[];
    plain boolean;
    read_only boolean;
    lost bigint[];
    unflushed text;
    deferred bigint[] := '{}';
    clashing bigint[] := '{}';
    several boolean;  -- whether two of them may change the same data
    clash record;
    freed bigint[] := '{}';
    released bigint[];
    waited bigint[];
    is_in_the_way boolean;
BEGIN
    SELECT array_agg(s.txn_id), bool_and(s.type IN (0, 2)), bool_and(s.type = 2),
           array_agg(s.txn_id) FILTER (WHERE s.durability = 'l')
      INTO open_ids, plain, read_only, lost
      FROM (SELECT t.txn_id, t.type, t.state, t.durability FROM txn t
             WHERE t.txn_id = ANY (txn_ids) ORDER BY t.txn_id FOR NO KEY UPDATE) AS s
     WHERE s.state = 'o';
    IF cardinality(open_ids) IS DISTINCT FROM cardinality(txn_ids) THEN
        RETURN QUERY
            SELECT id, CASE t.state WHEN 'c' THEN 'committed_before' WHEN 'a' THEN 'aborted_before' ELSE 'unknown' END,
                   NULL::bigint[], NULL::text, NULL::text, NULL::text, NULL::text, NULL::bigint, NULL::bigint,
                   NULL::bigint, NULL::text
              FROM unnest(txn_ids) AS id LEFT JOIN txn t ON t.txn_id = id
             WHERE open_ids IS NULL OR id <> ALL (open_ids);
        IF open_ids IS NULL THEN
            RETURN;
        END IF;
    END IF;
    IF lost IS NOT NULL THEN
        SELECT a.freed_locks INTO freed FROM abort_txns(lost, 'the database crashed before it had all on disk') a;
        RETURN QUERY SELECT id, 'lost', NULL::bigint[], NULL::text, NULL::text, NULL::text, NULL::text, NULL::bigint,
            NULL::bigint, NULL::bigint, NULL::text FROM unnest(lost) AS id;
        open_ids := ARRAY(SELECT id FROM unnest(open_ids) AS id WHERE id <> ALL (lost));
    END IF;
    IF read_only THEN
        -- Lost in a crash of Postgres it is open again, holds back nobody but the Cleaner, and times out.
        unflushed := set_config('synchronous_commit', 'off', true);
    ELSE
        -- Committers of changes to a table go one by one, from the check to the end of the database transaction.
        PERFORM pg_advisory_xact_lock(sorted.key)
           FROM (SELECT DISTINCT advisory_key(1, c.db || '.' || c.tbl) AS key FROM txn_component c
                  WHERE c.txn_id = ANY (open_ids) AND c.operation IN ('u', 'd') ORDER BY key) AS sorted;
        IF FOUND THEN
            IF cardinality(open_ids) > 1 THEN
                SELECT count(*) > count(DISTINCT (d.db, d.tbl, d.partition)) OR bool_or(d.partition IS NULL) INTO several
                  FROM txn_component d WHERE d.txn_id = ANY (open_ids) AND d.operation IN ('u', 'd');
            END IF;
            IF several THEN
                deferred := ARRAY(
                    WITH mine AS MATERIALIZED (
                        SELECT c.txn_id, c.db, c.tbl, c.partition, a.place, a.skips
                          FROM unnest(txn_ids, skip_checks) WITH ORDINALITY AS a (txn_id, skips, place)
                          JOIN txn_component c ON c.txn_id = a.txn_id AND c.operation IN ('u', 'd')
                         WHERE a.txn_id = ANY (open_ids)
                    )
                    SELECT DISTINCT later.txn_id
                      FROM mine later
                      JOIN mine sooner ON sooner.db = later.db AND sooner.tbl = later.tbl AND sooner.place < later.place
                       AND (sooner.partition = later.partition OR sooner.partition IS NULL OR later.partition IS NULL)
                     WHERE NOT later.skips);
            END IF;
            FOR clash IN
                SELECT DISTINCT ON (me.txn_id) me.txn_id, mine.db, mine.tbl,
                       coalesce(mine.partition, nullif(theirs.partition, '')) AS partition, mine.operation,
                       theirs.txn_id AS other_txn, theirs.commit_id AS other_commit_id,
                       theirs.operation AS other_operation
                  FROM unnest(txn_ids, skip_checks) AS a (txn_id, skips)
                  JOIN txn me ON me.txn_id = a.txn_id
                  JOIN txn_component mine ON mine.txn_id = me.txn_id AND mine.operation IN ('u', 'd')
                 CROSS JOIN LATERAL find_write_conflict(mine.db, mine.tbl, mine.partition, me.txn_id,
                                                        me.opened_snapshot) AS theirs
                 WHERE NOT a.skips AND a.txn_id = ANY (open_ids) AND a.txn_id <> ALL (deferred)
                 ORDER BY me.txn_id, theirs.committed_xid, theirs.txn_id, mine.partition
            LOOP
                clashing := clashing || clash.txn_id;
                RETURN QUERY SELECT clash.txn_id, 'conflict', NULL::bigint[], clash.db, clash.tbl, clash.partition,
                    clash.operation, (SELECT k.last_id FROM txn_counter k), clash.other_txn,
                    clash.other_commit_id, clash.other_operation;
            END LOOP;
            IF deferred <> '{}' OR clashing <> '{}' THEN
                -- All at once: what an abort locks is locked in one order everywhere.
                SELECT freed || a.freed_locks INTO freed FROM abort_txns(clashing, conflict_reason) a;
                RETURN QUERY SELECT id, 'again', NULL::bigint[], NULL::text, NULL::text, NULL::text, NULL::text,
                    NULL::bigint, NULL::bigint, NULL::bigint, NULL::text FROM unnest(deferred) AS id;
                open_ids := ARRAY(SELECT id FROM unnest(open_ids) AS id
                                   WHERE id <> ALL (deferred) AND id <> ALL (clashing));
            END IF;
        END IF;
    END IF;
    IF NOT plain THEN
        PERFORM special_txns_committed(open_ids);
    END IF;
    WITH gone AS (
        DELETE FROM txn_component c WHERE c.txn_id = ANY (open_ids)
        RETURNING c.txn_id, c.db, c.tbl, c.partition, c.operation, c.write_id
    ), resolved AS (
        DELETE FROM unresolved_write_id u WHERE u.txn_id = ANY (open_ids)
        RETURNING u.txn_id, u.db, u.tbl, u.write_id
    ), changed AS (
        INSERT INTO write_set (db, tbl, partition, operation, txn_id, commit_id, committed_xid)
        SELECT g.db, g.tbl, coalesce(g.partition, ''), g.operation, g.txn_id, (SELECT k.last_id FROM txn_counter k),
               pg_current_xact_id()
          FROM gone g WHERE g.operation IN ('u', 'd')
    ), completed AS (
        INSERT INTO completed_component (db, tbl, partition, txn_id, write_id, update_delete, committed_at)
        SELECT g.db, g.tbl, g.partition, g.txn_id, coalesce(max(r.write_id), max(g.write_id)),
               bool_or(g.operation <> 'i'), clock_timestamp()
          FROM gone g LEFT JOIN resolved r ON r.txn_id = g.txn_id AND r.db = g.db AND r.tbl = g.tbl
         WHERE g.operation <> 'c'
         GROUP BY g.txn_id, g.db, g.tbl, g.partition
    ), ended AS (
        UPDATE txn t SET state = 'c', ended_at = clock_timestamp(), ended_xid = pg_current_xact_id()
         WHERE t.txn_id = ANY (open_ids)
    ), released AS (
        DELETE FROM lock_component l WHERE l.txn_id = ANY (open_ids) RETURNING l.lock_id, l.state
    )
    SELECT array_agg(DISTINCT r.lock_id), array_agg(DISTINCT r.lock_id) FILTER (WHERE r.state = 'w'),
           bool_or(EXISTS (SELECT 1 FROM lock_component l WHERE l.blocker_lock = r.lock_id))
      INTO released, waited, is_in_the_way
      FROM released r;
    IF is_in_the_way OR waited IS NOT NULL THEN
        PERFORM tell_freed(released, waited);
    END IF;
    FOREACH txn_id IN ARRAY open_ids LOOP
        outcome := 'committed';
        RETURN NEXT;
    END LOOP;
    txn_id := NULL;
    outcome := 'freed';
    freed_locks := freed || released;
    RETURN NEXT;
END
$$;
