-- Every compaction that waits for the Cleaner, and what is in the way of it: nothing, if `obstacle` is null
-- (transactions.md §4.8).
--   uncommitted  its transaction has not committed
--   reader       `blocker` is open, and may need what it replaced; `need` says why (see clean_needs)
--   retention    replaced files are kept for `retention_ms`, to `until`
--   retry        an earlier attempt failed, the next one is at `until`
CREATE OR REPLACE FUNCTION clean_outlook(retention_ms bigint)
RETURNS TABLE (id bigint, db text, tbl text, partition text, highest_write_id bigint, obstacle text,
               until timestamptz, blocker bigint, need text)
LANGUAGE sql STABLE AS $$
    WITH ready AS MATERIALIZED (
        SELECT c.* FROM compaction c WHERE c.state = 'r' AND c.type <> 'c'
    ), first_needs AS MATERIALIZED (
        SELECT n.need, n.db, n.tbl, n.partition, min(n.txn_id) AS txn_id
          FROM clean_needs((SELECT max(r.next_txn_id) FROM ready r)) n
         GROUP BY n.need, n.db, n.tbl, n.partition
    ), unnamed AS MATERIALIZED (
        SELECT min(n.txn_id) AS txn_id FROM first_needs n WHERE n.need = 'unnamed'
    ), named AS MATERIALIZED (
        SELECT n.db, n.tbl, n.txn_id FROM first_needs n WHERE n.need = 'named'
    ), compacting AS MATERIALIZED (  -- few, and looked through for each
        SELECT n.db, n.tbl, n.partition, n.txn_id FROM first_needs n WHERE n.need = 'compacts'
    )
    SELECT r.id, r.db, r.tbl, r.partition, r.highest_write_id,
           CASE WHEN r.committed_at IS NULL THEN 'uncommitted'
                WHEN least(n.txn_id, k.txn_id, u.txn_id) <= r.next_txn_id THEN 'reader'
                WHEN r.committed_at > clock_timestamp() - make_interval(secs => retention_ms / 1000.0) THEN 'retention'
                WHEN r.clean_after > clock_timestamp() THEN 'retry' END,
           CASE WHEN r.clean_after > clock_timestamp() THEN r.clean_after
                ELSE r.committed_at + make_interval(secs => retention_ms / 1000.0) END,
           least(n.txn_id, k.txn_id, u.txn_id),
           CASE least(n.txn_id, k.txn_id, u.txn_id)
                WHEN n.txn_id THEN 'named' WHEN k.txn_id THEN 'compacts' WHEN u.txn_id THEN 'unnamed' END
      FROM ready r
     CROSS JOIN unnamed u
      LEFT JOIN named n ON n.db = r.db AND n.tbl = r.tbl
      LEFT JOIN LATERAL (
            SELECT min(f.txn_id) AS txn_id FROM compacting f
             WHERE f.db = r.db AND f.tbl = r.tbl
               AND (f.partition = r.partition OR f.partition IS NULL OR r.partition IS NULL)) AS k ON true
$$;
