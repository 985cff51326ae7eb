-- Makes young transactions that are open durable: from here on what they do is flushed, and this is, with all they have done
-- before (see recover_from_crash). Returns how many were.
CREATE OR REPLACE FUNCTION keep_txns(txn_ids bigint[]) RETURNS TABLE (kept bigint)
LANGUAGE plpgsql AS $$
BEGIN
    -- Whoever gives one of them a write id or a lock in this instant shares its row: it ends before, or sees the change.
    PERFORM 1 FROM txn t
      WHERE t.txn_id = ANY (txn_ids) AND t.state = 'o' AND t.durability = 'y' ORDER BY t.txn_id FOR NO KEY UPDATE;
    UPDATE txn SET durability = 'd' WHERE txn_id = ANY (txn_ids) AND state = 'o' AND durability = 'y';
    GET DIAGNOSTICS kept = ROW_COUNT;
    RETURN NEXT;
END
$$;
