-- The snapshot of now: high-water mark, the open and the aborted transactions whose type is not excluded, and the
-- smallest open one of any type (transactions.md §1.4). One statement, so all of it is of one instant.
--
-- `aborted_version` says which aborted ones these are. Who names one of before in `known` is told only those that may
-- have aborted since, if both are of one era (what stands before the blank): in an era aborted transactions come and
-- none goes. Behind it stands the database transaction before which all had ended, so that none comes any more that was
-- aborted by an earlier one.
CREATE OR REPLACE FUNCTION get_open_txns(excluded_types smallint[], known text)
RETURNS TABLE (high_water_mark bigint, open_ids bigint[], aborted_ids bigint[], min_open bigint, aborted_version text)
LANGUAGE sql STABLE AS $$
    SELECT c.last_id,
           ARRAY(SELECT t.txn_id FROM txn t
                  WHERE t.state = 'o' AND t.type <> ALL (excluded_types) ORDER BY t.txn_id),
           CASE WHEN starts_with(known, e.era::text) THEN
               -- The order says which index: that of all aborted ones is longer.
               ARRAY(SELECT t.txn_id FROM txn t
                      WHERE t.state = 'a' AND t.ended_xid >= split_part(known, ' ', 2)::xid8
                        AND t.type <> ALL (excluded_types)
                      ORDER BY t.ended_xid)
           ELSE
               ARRAY(SELECT t.txn_id FROM txn t
                      WHERE t.state = 'a' AND t.type <> ALL (excluded_types) ORDER BY t.txn_id)
           END,
           (SELECT t.txn_id FROM txn t WHERE t.state = 'o' ORDER BY t.txn_id LIMIT 1),
           e.era::text || ' ' || pg_snapshot_xmin(pg_current_snapshot())::text
      FROM txn_counter c, aborted_era e;
$$;
