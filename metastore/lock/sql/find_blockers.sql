-- All locks in the way of one component of a request: held or waited for under a smaller lock id than `before`, by
-- another transaction than `requester` or by none (transactions.md §3.3, §3.4).
--
-- Four walks of an index, of which most requests make one: only strong locks bother readers and writers, so these never
-- look at each other; and only a lock on a whole database looks at everything in it.
CREATE OR REPLACE FUNCTION find_blockers(
    before bigint, requester bigint, asked_type text, asked_db text, asked_tbl text, asked_partition text
) RETURNS TABLE (lock_id bigint, component integer, txn_id bigint, type text, state text)
LANGUAGE sql STABLE AS $$
    SELECT h.lock_id, h.component, h.txn_id, h.type, h.state
      FROM (
        SELECT s.* FROM lock_component s
         WHERE asked_tbl <> ''
           AND s.type IN ('x', 'e') AND s.db = asked_db AND s.tbl = ANY (ARRAY[asked_tbl, '']) AND s.lock_id < before
        UNION ALL
        SELECT s.* FROM lock_component s
         WHERE asked_tbl = ''
           AND s.type IN ('x', 'e') AND s.db = asked_db AND s.lock_id < before
        UNION ALL
        SELECT s.* FROM lock_component s
         WHERE asked_tbl <> '' AND asked_type IN ('x', 'e')
           AND s.type IN ('r', 'w') AND s.db = asked_db AND s.tbl = ANY (ARRAY[asked_tbl, '']) AND s.lock_id < before
        UNION ALL
        SELECT s.* FROM lock_component s
         WHERE asked_tbl = '' AND asked_type IN ('x', 'e')
           AND s.type IN ('r', 'w') AND s.db = asked_db AND s.lock_id < before
      ) AS h
     WHERE (h.txn_id <> requester OR requester = 0)
       AND locks_collide(asked_type, asked_tbl, asked_partition, h.type, h.tbl, h.partition);
$$;
