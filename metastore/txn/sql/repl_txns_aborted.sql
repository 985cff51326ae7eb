-- Called by the abort of transactions of type REPL_CREATED. Those still in the map were not aborted by a replay, so the
-- databases they wrote to are not what their source says any more: they are flagged (transactions.md §1.7).
CREATE OR REPLACE FUNCTION repl_txns_aborted(txn_ids bigint[]) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM 1 FROM database d
      WHERE d.name IN (SELECT w.db FROM write_id w JOIN repl_txn_map m ON m.txn_id = w.txn_id
                        WHERE w.txn_id = ANY (txn_ids))
      ORDER BY d.name FOR NO KEY UPDATE;
    UPDATE database d SET parameters = d.parameters || '{"repl.incompatible": "true"}'
     WHERE d.name IN (SELECT w.db FROM write_id w JOIN repl_txn_map m ON m.txn_id = w.txn_id
                       WHERE w.txn_id = ANY (txn_ids));
    DELETE FROM repl_txn_map m WHERE m.txn_id = ANY (txn_ids);
END
$$;
