-- The events of write ids given out, one for each table; called by a trigger, see `metastore.txn.recording`.
CREATE OR REPLACE FUNCTION record_write_ids_allocated(dbs text[], tbls text[], txn_ids bigint[], write_ids bigint[])
RETURNS void
LANGUAGE sql AS $$
    INSERT INTO notification_event (event_type, db, tbl, details)
    SELECT 'ALLOC_WRITE_ID_EVENT', a.db, a.tbl,
           json_build_object('txn_ids', array_agg(a.txn_id ORDER BY a.write_id),
                             'write_ids', array_agg(a.write_id ORDER BY a.write_id))
      FROM unnest(dbs, tbls, txn_ids, write_ids) AS a (db, tbl, txn_id, write_id)
     GROUP BY a.db, a.tbl ORDER BY a.db, a.tbl;
$$;
