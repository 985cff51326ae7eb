-- The snapshot of now: high-water mark, the open and the aborted transactions whose type is not excluded, and the
-- smallest open one of any type (transactions.md §1.4). One statement, so all of it is of one instant.
CREATE OR REPLACE FUNCTION get_open_txns(excluded_types smallint[])
RETURNS TABLE (high_water_mark bigint, open_ids bigint[], aborted_ids bigint[], min_open bigint)
LANGUAGE sql STABLE AS $$
    SELECT c.last_id,
           ARRAY(SELECT t.txn_id FROM txn t
                  WHERE t.state = 'o' AND t.type <> ALL (excluded_types) ORDER BY t.txn_id),
           ARRAY(SELECT t.txn_id FROM txn t
                  WHERE t.state = 'a' AND t.type <> ALL (excluded_types) ORDER BY t.txn_id),
           (SELECT t.txn_id FROM txn t WHERE t.state = 'o' ORDER BY t.txn_id LIMIT 1)
      FROM txn_counter c;
$$;
