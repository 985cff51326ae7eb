-- As allocate_write_ids for one table, but transactions that have a write id of it lose that and get new ones
-- (transactions.md §2.1). A repetition burns one id more.
CREATE OR REPLACE FUNCTION reallocate_write_ids(in_db text, in_tbl text, txn_ids bigint[])
RETURNS TABLE (request integer, outcome text, txn_id bigint, write_id bigint)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    live bigint;
BEGIN
    SELECT count(*) INTO live
      FROM (SELECT t.state, t.type FROM txn t WHERE t.txn_id = ANY (txn_ids) ORDER BY t.txn_id FOR NO KEY UPDATE) AS s
     WHERE s.state = 'o' AND s.type <> 2;
    IF live = cardinality(txn_ids) THEN
        PERFORM burn_write_ids(in_db, in_tbl, txn_ids);
    END IF;
    RETURN QUERY
        SELECT a.* FROM allocate_write_ids(array_fill(0, ARRAY[cardinality(txn_ids)]),
                                           array_fill(in_db, ARRAY[cardinality(txn_ids)]),
                                           array_fill(in_tbl, ARRAY[cardinality(txn_ids)]), txn_ids) AS a;
END
$$;
