-- Commits the transaction of a rebalance, unless somebody would fail by it: then the outcome is in_the_way, `other_txn`
-- who, and nothing is done. Outcomes are those of commit_txns otherwise. Safe to repeat.
CREATE OR REPLACE FUNCTION commit_rebalance(
    committing bigint, in_db text, in_tbl text, in_partition text, conflict_reason text
) RETURNS TABLE (
    txn_id bigint, outcome text, freed_locks bigint[], db text, tbl text, partition text, operation text,
    commit_id bigint, other_txn bigint, other_commit_id bigint, other_operation text
)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    is_open boolean;
BEGIN
    SELECT t.state = 'o' INTO is_open FROM txn t WHERE t.txn_id = committing FOR NO KEY UPDATE;
    IF is_open THEN
        -- No open may be in flight: who opens later sees the new ids.
        PERFORM 1 FROM txn_counter FOR UPDATE;
        SELECT o.txn_id INTO other_txn FROM rebalance_obstacle(committing, in_db, in_tbl, in_partition) o;
        IF other_txn IS NOT NULL THEN
            txn_id := committing;
            outcome := 'in_the_way';
            RETURN NEXT;
            RETURN;
        END IF;
    END IF;
    RETURN QUERY SELECT d.* FROM commit_txns(ARRAY[committing], ARRAY[false], conflict_reason) d;
END
$$;
