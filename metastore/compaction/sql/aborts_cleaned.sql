-- The files of these aborted transactions are gone from a table or partition: so is the record of them, but for
-- `kept_write_ids`, which files may still hold (transactions.md §4.10). Returns how many records went.
CREATE OR REPLACE FUNCTION aborts_cleaned(
    in_db text, in_tbl text, in_partition text, txn_ids bigint[], kept_write_ids bigint[]
) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    forgotten bigint;
BEGIN
    DELETE FROM txn_component c USING txn t
     WHERE c.db = in_db AND c.tbl = in_tbl AND c.partition IS NOT DISTINCT FROM in_partition
       AND c.txn_id = ANY (txn_ids) AND t.txn_id = c.txn_id AND t.state = 'a'
       AND (c.operation = 'c' OR c.write_id IS NULL OR c.write_id <> ALL (kept_write_ids));
    GET DIAGNOSTICS forgotten = ROW_COUNT;
    DELETE FROM compaction c
     WHERE c.type = 'c' AND c.state = 'r' AND c.db = in_db AND c.tbl = in_tbl
       AND c.partition IS NOT DISTINCT FROM in_partition;
    RETURN forgotten;
END
$$;
