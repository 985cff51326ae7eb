-- The events of committed and aborted transactions, READ_ONLY ones left out, and of the compactions that commit; an
-- abort names the databases that were written to (transactions.md §1.7). Called by a trigger, see
-- `metastore.txn.recording`.
CREATE OR REPLACE FUNCTION record_txns_ended(txn_ids bigint[], states text[]) RETURNS void
LANGUAGE sql AS $$
    INSERT INTO notification_event (event_type, details)
    SELECT CASE e.state WHEN 'c' THEN 'COMMIT_TXN' ELSE 'ABORT_TXN' END,
           CASE e.state WHEN 'c' THEN json_build_object('txn_id', e.txn_id)
                ELSE json_build_object('txn_id', e.txn_id, 'databases',
                                       ARRAY(SELECT DISTINCT u.db FROM unresolved_write_id u
                                              WHERE u.txn_id = e.txn_id ORDER BY u.db)) END
      FROM unnest(txn_ids, states) WITH ORDINALITY AS e (txn_id, state, place)
     ORDER BY e.place;
    SELECT record_compactions_committed(
        ARRAY(SELECT e.txn_id FROM unnest(txn_ids, states) AS e (txn_id, state) WHERE e.state = 'c'));
$$;
