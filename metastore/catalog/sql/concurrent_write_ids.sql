-- The write ids of a table above a snapshot's high-water mark and below `own_write_id`, the owner of which still is open:
-- up to `at_most` that are open, or were committed in the meantime. Those that aborted are none.
CREATE OR REPLACE FUNCTION concurrent_write_ids(in_table_id bigint, mark bigint, own_write_id bigint, at_most integer)
RETURNS SETOF bigint
LANGUAGE sql STABLE AS $$
    SELECT s.id
      FROM tbl t JOIN write_id w ON w.db = t.database AND w.tbl = t.name AND w.write_id > mark,
           generate_series(greatest(coalesce(w.first_write_id, w.write_id), mark + 1),
                           least(w.write_id, own_write_id - 1)) AS s (id)
     WHERE t.id = in_table_id AND coalesce(w.first_write_id, w.write_id) < own_write_id
       AND NOT EXISTS (SELECT 1 FROM txn x WHERE x.txn_id = w.txn_id AND x.state = 'a')
     LIMIT at_most;
$$;
