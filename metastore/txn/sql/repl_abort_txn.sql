-- Replays the abort of another warehouse's transaction (transactions.md §1.7). No row if it has no transaction here: it
-- has ended before. Safe to repeat.
CREATE OR REPLACE FUNCTION repl_abort_txn(in_policy text, source_id bigint, reason text)
RETURNS TABLE (freed_locks bigint[])
LANGUAGE plpgsql AS $$
DECLARE
    target bigint;
BEGIN
    -- Without its row in the map an abort is not taken for one that the replay does not know of.
    DELETE FROM repl_txn_map m WHERE m.policy = in_policy AND m.source_txn_id = source_id
    RETURNING m.txn_id INTO target;
    IF target IS NOT NULL THEN
        RETURN QUERY SELECT a.freed_locks FROM abort_txns(ARRAY[target], reason) a;
    END IF;
END
$$;
