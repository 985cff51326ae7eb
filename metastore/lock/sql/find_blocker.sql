-- The first lock in the way of a request: held or waited for under a smaller lock id, by another transaction or by
-- none, for something that overlaps, in a type that does not go with the requested one (transactions.md §3.3, §3.4).
-- No row when the request can be granted. Components are numbered from 1, the order of the arrays.
--
-- Four branches, each one walk of an index: only strong locks bother readers and writers, so these never look at
-- each other; and a lock on a whole database meets everything in it.
CREATE OR REPLACE FUNCTION find_blocker(
    before bigint, requester bigint, types text[], dbs text[], tbls text[], partitions text[]
) RETURNS TABLE (component integer, blocker_lock bigint, blocker_component integer)
LANGUAGE sql STABLE AS $$
    SELECT found.number::integer, found.lock_id, found.component
      FROM (
        SELECT asked.number, asked.type AS asked_type, asked.tbl AS asked_tbl, asked.partition AS asked_partition,
               held.lock_id, held.component, held.txn_id, held.type, held.tbl, held.partition
          FROM unnest(types, dbs, tbls, partitions) WITH ORDINALITY AS asked (type, db, tbl, partition, number)
          JOIN lock_component held ON held.type IN ('x', 'e') AND held.db = asked.db
               AND held.tbl = ANY (ARRAY[asked.tbl, '']) AND held.lock_id < before
         WHERE asked.tbl <> ''
        UNION ALL
        SELECT asked.number, asked.type, asked.tbl, asked.partition,
               held.lock_id, held.component, held.txn_id, held.type, held.tbl, held.partition
          FROM unnest(types, dbs, tbls, partitions) WITH ORDINALITY AS asked (type, db, tbl, partition, number)
          JOIN lock_component held ON held.type IN ('x', 'e') AND held.db = asked.db AND held.lock_id < before
         WHERE asked.tbl = ''
        UNION ALL
        SELECT asked.number, asked.type, asked.tbl, asked.partition,
               held.lock_id, held.component, held.txn_id, held.type, held.tbl, held.partition
          FROM unnest(types, dbs, tbls, partitions) WITH ORDINALITY AS asked (type, db, tbl, partition, number)
          JOIN lock_component held ON held.type IN ('r', 'w') AND held.db = asked.db
               AND held.tbl = ANY (ARRAY[asked.tbl, '']) AND held.lock_id < before
         WHERE asked.tbl <> '' AND asked.type IN ('x', 'e')
        UNION ALL
        SELECT asked.number, asked.type, asked.tbl, asked.partition,
               held.lock_id, held.component, held.txn_id, held.type, held.tbl, held.partition
          FROM unnest(types, dbs, tbls, partitions) WITH ORDINALITY AS asked (type, db, tbl, partition, number)
          JOIN lock_component held ON held.type IN ('r', 'w') AND held.db = asked.db AND held.lock_id < before
         WHERE asked.tbl = '' AND asked.type IN ('x', 'e')
      ) AS found
     WHERE (found.txn_id <> requester OR requester = 0)
       AND (found.asked_partition = '' OR found.partition IN ('', found.asked_partition))
       AND CASE found.asked_type
               WHEN 'r' THEN found.type = 'e'
               WHEN 'w' THEN found.type IN ('x', 'e')
               WHEN 'x' THEN found.type <> 'r'
               ELSE true
           END
       -- DDL reads a database only to keep it from being dropped: that goes with an exclusive lock inside it.
       AND NOT (found.asked_type = 'r' AND found.asked_tbl = '' AND found.type = 'e' AND found.tbl <> '')
       AND NOT (found.asked_type = 'e' AND found.asked_tbl <> '' AND found.type = 'r' AND found.tbl = '')
     ORDER BY found.number, found.lock_id, found.component
     LIMIT 1;
$$;
