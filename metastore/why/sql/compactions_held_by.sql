-- Compactions whose cleaning an open transaction holds up, whether or not others do so too.
CREATE OR REPLACE FUNCTION compactions_held_by(in_txn bigint, at_most integer)
RETURNS TABLE (id bigint)
LANGUAGE sql STABLE AS $$
    SELECT c.id FROM compaction c
     WHERE c.state = 'r' AND c.next_txn_id >= in_txn
       AND EXISTS (SELECT 1 FROM cleaning_readers(c.id, NULL) r WHERE r.txn_id = in_txn)
     ORDER BY c.id LIMIT at_most;
$$;
