-- The write ids of some tables as of now (transactions.md §2.2), one row per table in the order asked: its place, the last one
-- given out, the open ones, the aborted ones, and whether a valid one above the lowest of them may exist.
-- `known_versions` says which aborted ids the caller has: if they are the same still, they are null here.
CREATE OR REPLACE FUNCTION current_write_ids(dbs text[], tbls text[], known_versions bigint[])
RETURNS TABLE (
    place bigint, last_write_id bigint, open_ids bigint[], aborted_version bigint, aborted_ids bigint[], has_valid boolean
)
LANGUAGE sql STABLE AS $$
    SELECT a.place, coalesce(k.last_write_id, 0),
           ARRAY(SELECT u.write_id FROM unresolved_write_id u
                  WHERE u.db = a.db AND u.tbl = a.tbl AND NOT u.is_aborted ORDER BY u.write_id),
           coalesce(k.aborted_version, 0),
           CASE WHEN coalesce(k.aborted_version, 0) IS DISTINCT FROM a.known THEN
               ARRAY(SELECT u.write_id FROM unresolved_write_id u
                      WHERE u.db = a.db AND u.tbl = a.tbl AND u.is_aborted ORDER BY u.write_id) END,
           -- The order says which index: by an equality alone a plan that was made on an empty table may take the one
           -- of transactions, and read all write ids of the table.
           NOT EXISTS (SELECT 1
                         FROM (SELECT w.txn_id FROM write_id w
                                WHERE w.db = a.db AND w.tbl = a.tbl AND w.write_id >= k.last_write_id
                                ORDER BY w.write_id DESC LIMIT 1) AS last
                         JOIN unresolved_write_id u ON u.txn_id = last.txn_id AND u.db = a.db AND u.tbl = a.tbl)
           OR EXISTS (SELECT 1 FROM write_id w
                       WHERE w.db = a.db AND w.tbl = a.tbl
                         AND NOT EXISTS (SELECT 1 FROM unresolved_write_id u
                                          WHERE u.txn_id = w.txn_id AND u.db = w.db AND u.tbl = w.tbl))
      FROM unnest(dbs, tbls, known_versions) WITH ORDINALITY AS a (db, tbl, known, place)
      -- A look-up for each table: a plan that was made when there were few would read the counters of all.
      LEFT JOIN LATERAL (SELECT i.last_write_id, i.aborted_version FROM write_id_counter i
                          WHERE i.db = a.db AND i.tbl = a.tbl LIMIT 1) AS k ON true
     ORDER BY a.place;
$$;
