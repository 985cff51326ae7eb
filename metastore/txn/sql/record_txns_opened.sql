-- The event of opened transactions, READ_ONLY ones left out; called by a trigger, see `metastore.txn.recording`.
CREATE OR REPLACE FUNCTION record_txns_opened(txn_ids bigint[]) RETURNS void
LANGUAGE sql AS $$
    INSERT INTO notification_event (event_type, details)
    SELECT 'OPEN_TXN', json_build_object('txn_ids', txn_ids) WHERE cardinality(txn_ids) > 0;
$$;
