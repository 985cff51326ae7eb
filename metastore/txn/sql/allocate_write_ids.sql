-- Gives each of the transactions its write id of a table (transactions.md §2.1): the one it has, else new ones, the
-- smallest to the smallest transaction. `reallocate` burns the ones they have and gives new ones.
-- One row per transaction with the outcome ok; or a single row with txn_unknown, txn_aborted, txn_committed or
-- txn_read_only for the first transaction that may not write, and nothing allocated.
-- Safe to repeat, but for reallocate, which then burns one id more.
CREATE OR REPLACE FUNCTION allocate_write_ids(in_db text, in_tbl text, txn_ids bigint[], reallocate boolean)
RETURNS TABLE (outcome text, txn_id bigint, write_id bigint)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    refused record;
    missing bigint[];
    last_allocated bigint;
BEGIN
    -- Share locks to the end: no abort or commit slips in between the check and the allocation.
    PERFORM 1 FROM txn t WHERE t.txn_id = ANY (txn_ids) ORDER BY t.txn_id FOR SHARE;
    SELECT id, t.state INTO refused
      FROM unnest(txn_ids) AS id LEFT JOIN txn t ON t.txn_id = id
     WHERE t.state IS DISTINCT FROM 'o' OR t.type = 2
     ORDER BY id LIMIT 1;
    IF FOUND THEN
        RETURN QUERY SELECT CASE refused.state WHEN 'o' THEN 'txn_read_only' WHEN 'a' THEN 'txn_aborted'
                                 WHEN 'c' THEN 'txn_committed' ELSE 'txn_unknown' END, refused.id, NULL::bigint;
        RETURN;
    END IF;
    IF reallocate THEN
        PERFORM burn_write_ids(in_db, in_tbl, txn_ids);
    END IF;
    SELECT array_agg(DISTINCT id ORDER BY id) INTO missing
      FROM unnest(txn_ids) AS id
     WHERE NOT EXISTS (SELECT 1 FROM write_id w WHERE w.db = in_db AND w.tbl = in_tbl AND w.txn_id = id);
    IF missing IS NOT NULL THEN
        INSERT INTO write_id_counter AS k (db, tbl, last_write_id) VALUES (in_db, in_tbl, cardinality(missing))
        ON CONFLICT (db, tbl) DO UPDATE SET last_write_id = k.last_write_id + cardinality(missing)
        RETURNING k.last_write_id INTO last_allocated;
        -- Of two calls for the same transaction the second finds the rows of the first, after waiting for the counter.
        INSERT INTO write_id (db, tbl, write_id, txn_id)
        SELECT in_db, in_tbl, last_allocated - cardinality(missing) + position, id
          FROM unnest(missing) WITH ORDINALITY AS given (id, position)
        ON CONFLICT (db, tbl, txn_id) DO NOTHING;
    END IF;
    RETURN QUERY
        SELECT 'ok', w.txn_id, w.write_id FROM write_id w
         WHERE w.db = in_db AND w.tbl = in_tbl AND w.txn_id = ANY (txn_ids) ORDER BY w.txn_id;
END
$$;
