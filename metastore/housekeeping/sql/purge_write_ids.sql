-- Forgets which transactions write ids belong to, as far as no snapshot can ask (transactions.md §5). Walks over up
-- to `at_most` of them from a table and write id on, in order; `was_blocked` is what the call before said of that table.
-- Returns how many it looked at, how many went, how many of these into others, and where to go on.
--
-- A missing write id counts as committed, and the highest one that a snapshot sees must stay findable. So per table
-- those go that were committed below `horizon`, up to the first for which that is not so (the table is blocked there).
-- Behind it, neighbours that were committed before they were `settled` and are seen by the same open transactions
-- become one row: an old transaction, or an aborted one whose files are not cleaned up, holds back rows by
-- the number of transactions that are open or aborted, not of those that have committed since. The Cleaner looks
-- from where a compaction was committed, so no row stands for both sides of that. The write id of a change that may be
-- a conflict is asked for by its transaction (commit_rows), so that of one in write_set is the last of its run.
CREATE OR REPLACE FUNCTION purge_write_ids(
    horizon xid8, settled xid8, after_db text, after_tbl text, after_id bigint, was_blocked boolean, at_most integer
) RETURNS TABLE (examined bigint, purged bigint, merged bigint, last_db text, last_tbl text, last_id bigint,
                 is_blocked boolean)
LANGUAGE plpgsql SET enable_seqscan = off AS $$
#variable_conflict use_column
DECLARE
    open_ids bigint[];
    xmins xid8[];
    views bigint[];
BEGIN
    PERFORM set_config('synchronous_commit', 'off', true);  -- what a crash brings back goes again
    SELECT array_agg(t.txn_id ORDER BY t.txn_id), array_agg(pg_snapshot_xmin(t.opened_snapshot) ORDER BY t.txn_id)
      INTO open_ids, xmins FROM txn t WHERE t.state = 'o';
    open_ids := coalesce(open_ids, '{}');
    xmins := coalesce(xmins, '{}');
    views := ARRAY(SELECT DISTINCT c.next_txn_id + 1 AS id FROM compaction c
                    WHERE c.state = 'r' AND c.next_txn_id IS NOT NULL ORDER BY id);
    RETURN QUERY
        WITH chunk AS MATERIALIZED (
            SELECT w.ctid AS place, w.db, w.tbl, w.write_id, coalesce(w.first_write_id, w.write_id) AS first_id,
                   w.txn_id, width_bucket(w.txn_id, open_ids) AS opened_before,
                   width_bucket(w.txn_id, views) AS compacted_before
              FROM write_id w
             WHERE (w.db, w.tbl, w.write_id) > (after_db, after_tbl, after_id)
             ORDER BY w.db, w.tbl, w.write_id LIMIT at_most
        ), judged AS MATERIALIZED (
            SELECT c.*,
                   t.state IS NULL OR t.state = 'c' AND t.ended_xid < horizon AS is_resolved,
                   -- Transactions opened before this one never see it. One opened later does if it had ended by then;
                   -- if not, that depends on when the other asks.
                   CASE WHEN t.state = 'c' AND t.ended_xid < least(xmins[c.opened_before + 1], settled)
                        THEN c.opened_before END AS seen_by,
                   EXISTS (SELECT 1 FROM write_set s
                            WHERE s.committed_xid = t.ended_xid AND s.txn_id = c.txn_id
                              AND s.db = c.db AND s.tbl = c.tbl) AS may_conflict
              FROM chunk c
              -- A probe for each: the planner cannot know how few they are.
              LEFT JOIN LATERAL (SELECT t.state, t.ended_xid FROM txn t WHERE t.txn_id = c.txn_id OFFSET 0) t ON true
        ), cut AS MATERIALIZED (
            SELECT j.*, count(*) FILTER (WHERE j.may_conflict) OVER (
                            PARTITION BY j.db, j.tbl ORDER BY j.write_id
                             ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS conflicts_before
              FROM judged j
        ), ordered AS MATERIALIZED (
            SELECT j.*,
                   bool_or(NOT j.is_resolved) OVER (PARTITION BY j.db, j.tbl ORDER BY j.write_id)
                       OR was_blocked AND j.db = after_db AND j.tbl = after_tbl AS is_blocked,
                   row_number() OVER (PARTITION BY j.db, j.tbl ORDER BY j.write_id)
                       - row_number() OVER (PARTITION BY j.db, j.tbl, j.seen_by, j.compacted_before, j.conflicts_before
                                              ORDER BY j.write_id) AS run
              FROM cut j
        ), runs AS MATERIALIZED (
            SELECT max(o.write_id) AS last_id, min(o.first_id) AS first_id, o.db, o.tbl, array_agg(o.place) AS places
              FROM ordered o
             WHERE o.is_blocked AND o.seen_by IS NOT NULL
             GROUP BY o.db, o.tbl, o.seen_by, o.compacted_before, o.conflicts_before, o.run HAVING count(*) > 1
        ), kept AS MATERIALIZED (
            SELECT o.place, r.first_id FROM runs r JOIN ordered o ON o.db = r.db AND o.tbl = r.tbl
               AND o.write_id = r.last_id
        ), widened AS (
            UPDATE write_id w SET first_write_id = k.first_id FROM kept k WHERE w.ctid = k.place
        ), settled_now AS (
            DELETE FROM write_id w
             WHERE w.ctid = ANY (ARRAY(SELECT o.place FROM ordered o WHERE NOT o.is_blocked)) RETURNING 1
        ), absorbed AS (
            DELETE FROM write_id w
             WHERE w.ctid = ANY (ARRAY(SELECT unnest(r.places) FROM runs r EXCEPT SELECT k.place FROM kept k))
            RETURNING 1
        )
        SELECT e.examined, s.purged, a.merged, l.db, l.tbl, l.write_id, l.is_blocked
          FROM (SELECT count(*) AS examined FROM ordered) e,
               (SELECT count(*) AS purged FROM settled_now) s,
               (SELECT count(*) AS merged FROM absorbed) a
          LEFT JOIN (SELECT o.db, o.tbl, o.write_id, o.is_blocked FROM ordered o
                      ORDER BY o.db DESC, o.tbl DESC, o.write_id DESC LIMIT 1) l ON true;
END
$$;
