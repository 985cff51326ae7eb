-- Names the partitions that a transaction wrote to, in place of the whole table (transactions.md §1.8), or beside its
-- change of that. Outcome: ok, txn_aborted, txn_committed, txn_unknown or txn_read_only. Safe to repeat.
CREATE OR REPLACE FUNCTION add_dynamic_partitions(
    writer bigint, in_write_id bigint, in_db text, in_tbl text, partitions text[], in_operation text,
    also_whole_table boolean
) RETURNS TABLE (outcome text)
LANGUAGE plpgsql AS $$
DECLARE
    found_state text;
    found_type smallint;
BEGIN
    SELECT t.state, t.type INTO found_state, found_type FROM txn t WHERE t.txn_id = writer FOR SHARE;
    IF found_state IS DISTINCT FROM 'o' OR found_type = 2 THEN
        RETURN QUERY SELECT CASE found_state WHEN 'o' THEN 'txn_read_only'
            WHEN 'a' THEN 'txn_aborted' WHEN 'c' THEN 'txn_committed' ELSE 'txn_unknown' END;
        RETURN;
    END IF;
    INSERT INTO txn_component (txn_id, db, tbl, partition, operation, write_id)
    SELECT writer, in_db, in_tbl, name, in_operation, in_write_id FROM unnest(partitions) AS name
    ON CONFLICT DO NOTHING;
    DELETE FROM txn_component c
     WHERE c.txn_id = writer AND c.db = in_db AND c.tbl = in_tbl AND c.partition IS NULL AND c.operation <> 'c'
       AND NOT (also_whole_table AND c.operation = 'u');
    RETURN QUERY SELECT 'ok';
END
$$;
