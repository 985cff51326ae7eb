-- Called by the commit of a compaction's transaction, no open being in flight: from now on new transactions see the
-- output, and only those up to `horizon` may need what it replaced. The Cleaner waits for their end. What was left to
-- another round is queued.
CREATE OR REPLACE FUNCTION compaction_committed(committing bigint, horizon bigint) RETURNS void
LANGUAGE sql AS $$
    UPDATE compaction SET committed_at = clock_timestamp(), next_txn_id = horizon
     WHERE txn_id = committing AND state = 'r' AND committed_at IS NULL;
    SELECT queue_next_round(c.id) FROM compaction c
     WHERE c.txn_id = committing AND c.state = 'r' AND c.has_more AND c.next_id IS NULL;
$$;
