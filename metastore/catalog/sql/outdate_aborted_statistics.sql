-- Keeps in mind which statistics were stored by transactions that aborted, for snapshots are about to name their write
-- ids no longer. Called in the transaction that forgets these, before.
CREATE OR REPLACE FUNCTION outdate_aborted_statistics(txn_ids bigint[]) RETURNS void
LANGUAGE sql AS $$
    UPDATE statistics_basis b SET is_outdated = true
      FROM unresolved_write_id u JOIN tbl t ON t.database = u.db AND t.name = u.tbl
     WHERE u.txn_id = ANY (txn_ids) AND b.table_id = t.id AND b.write_id = u.write_id;
$$;
