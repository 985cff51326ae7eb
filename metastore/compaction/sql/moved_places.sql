-- Which of these partitions, and of the table (a null id), are not there any more under their ids and at their places, and
-- whether the Cleaner keeps what was there for a transaction, as something that was dropped. It does so until all have
-- ended that were open at the drop: a reader that has begun later is not waited for. For a transaction that has ended
-- nothing is kept, and the table counts as moved.
CREATE OR REPLACE FUNCTION moved_places(
    in_txn_id bigint, in_db text, in_tbl text, in_table_id bigint, in_place text, ids bigint[], places text[]
) RETURNS TABLE (id bigint, is_kept boolean)
LANGUAGE sql STABLE AS $$
    WITH held AS MATERIALIZED (
        SELECT (c.properties ->> 'ids')::jsonb AS ids, c.properties ->> 'location' AS place
          FROM compaction c
         WHERE c.state = 'r' AND c.db = in_db AND c.tbl = in_tbl AND c.properties ? 'ids'
           AND coalesce(c.next_txn_id, in_txn_id) >= in_txn_id
    ), kept AS MATERIALIZED (
        SELECT (h.ids ->> 'partition')::bigint AS id, h.place FROM held h WHERE h.ids ? 'partition'
        UNION
        SELECT below.id::bigint, h.place || '/' || below.name
          FROM held h, jsonb_each_text(h.ids -> 'partitions') AS below (id, name)
    )
    SELECT NULL::bigint, EXISTS (
        SELECT 1 FROM held h WHERE (h.ids ->> 'table')::bigint = in_table_id AND h.place = in_place)
     WHERE NOT EXISTS (SELECT 1 FROM tbl t WHERE t.id = in_table_id AND t.location = in_place)
    UNION ALL
    SELECT NULL, false WHERE NOT EXISTS (SELECT 1 FROM txn t WHERE t.txn_id = in_txn_id AND t.state = 'o')
    UNION ALL
    SELECT a.id, EXISTS (SELECT 1 FROM kept k WHERE k.id = a.id AND k.place = a.place)
      FROM unnest(ids, places) AS a (id, place)
     WHERE NOT EXISTS (
        SELECT 1 FROM partition p WHERE p.id = a.id AND p.table_id = in_table_id AND p.location = a.place)
$$;
