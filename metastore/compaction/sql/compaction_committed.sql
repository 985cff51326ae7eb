-- Called by the commit of a compaction's transaction, no open being in flight: from now on new transactions see the
-- output, and only those up to `horizon` may need what it replaced. The Cleaner waits for their end.
CREATE OR REPLACE FUNCTION compaction_committed(committing bigint, horizon bigint) RETURNS void
LANGUAGE sql AS $$
    UPDATE compaction SET committed_at = clock_timestamp(), next_txn_id = horizon
     WHERE txn_id = committing AND state = 'r' AND committed_at IS NULL;
$$;
