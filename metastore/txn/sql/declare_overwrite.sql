-- Puts on record that a transaction replaces all rows of a table (a null partition) or of partitions under its write id
-- (transactions.md §1.6): it conflicts with every other change of them. Without `writer` it is the one that has the write
-- id. Outcome: ok, txn_aborted, txn_committed, txn_unknown or txn_read_only; and who that is. `earlier_txn` is an open
-- transaction with a smaller write id, whose rows the new base would cover; not one that has it all to itself by an
-- exclusive lock, which is the one in which the client drops or truncates: Hive has a write id for that. Safe to repeat.
CREATE OR REPLACE FUNCTION declare_overwrite(
    in_writer bigint, in_write_id bigint, in_db text, in_tbl text, partitions text[]
) RETURNS TABLE (outcome text, writer bigint, earlier_txn bigint)
LANGUAGE plpgsql AS $$
DECLARE
    found_state text;
    found_type smallint;
BEGIN
    writer := coalesce(in_writer, (SELECT w.txn_id FROM write_id w
                                    WHERE w.db = in_db AND w.tbl = in_tbl AND w.write_id = in_write_id));
    SELECT t.state, t.type INTO found_state, found_type FROM txn t WHERE t.txn_id = writer FOR SHARE;
    outcome := CASE WHEN found_state = 'o' AND found_type <> 2 THEN 'ok' WHEN found_state = 'o' THEN 'txn_read_only'
                    WHEN found_state = 'a' THEN 'txn_aborted' WHEN found_state = 'c' THEN 'txn_committed'
                    ELSE 'txn_unknown' END;
    IF outcome = 'ok' THEN
        INSERT INTO txn_component (txn_id, db, tbl, partition, operation, write_id)
        SELECT writer, in_db, in_tbl, name, 'd', in_write_id FROM unnest(partitions) AS name
        ON CONFLICT DO NOTHING;
        SELECT min(u.txn_id) INTO earlier_txn FROM unresolved_write_id u
         WHERE u.db = in_db AND u.tbl = in_tbl AND NOT u.is_aborted AND u.write_id < in_write_id
           AND u.txn_id <> writer
           AND NOT EXISTS (SELECT 1 FROM lock_component l
                            WHERE l.txn_id = u.txn_id AND l.type = 'e' AND l.state = 'a'
                              AND l.db = in_db AND l.tbl IN ('', in_tbl)
                              AND (l.partition = '' OR l.partition = ANY (partitions)));
    END IF;
    RETURN NEXT;
END
$$;
