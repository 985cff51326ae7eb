-- The state of each transaction asked for, null for one that is not there. One that is lost (see recover_from_crash) is as
-- good as aborted.
CREATE OR REPLACE FUNCTION txn_states(txn_ids bigint[]) RETURNS TABLE (txn_id bigint, state text)
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN QUERY SELECT id, CASE t.durability WHEN 'l' THEN 'a' ELSE t.state END FROM unnest(txn_ids) AS id LEFT JOIN txn t ON t.txn_id = id;
END
$$;
