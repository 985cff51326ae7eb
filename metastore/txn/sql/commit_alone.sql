-- Commits a transaction that has replaced all of a table, definition and rows, if no other write can have been made by
-- the definition that goes: one whose write id is larger, or smaller and open still. Whoever is given a write id later
-- finds the new definition, if it is stored in the same database transaction: till its end none is given out.
-- Outcomes are those of commit_txns, or, and nothing is done and the transaction still open: no_write (it has no write
-- id of the table), others_write. Safe to repeat.
CREATE OR REPLACE FUNCTION commit_alone(committing bigint, conflict_reason text, of_db text, of_tbl text)
RETURNS TABLE (
    txn_id bigint, outcome text, freed_locks bigint[], db text, tbl text, partition text, operation text,
    commit_id bigint, other_txn bigint, other_commit_id bigint, other_operation text
)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    is_open boolean;
    own bigint;
BEGIN
    SELECT t.state = 'o' INTO is_open FROM txn t WHERE t.txn_id = committing FOR NO KEY UPDATE;
    IF is_open THEN
        PERFORM 1 FROM write_id_counter k WHERE k.db = of_db AND k.tbl = of_tbl FOR UPDATE;
        SELECT u.write_id INTO own FROM unresolved_write_id u
         WHERE u.txn_id = committing AND u.db = of_db AND u.tbl = of_tbl;
        outcome := CASE
            WHEN own IS NULL THEN 'no_write'
            WHEN EXISTS (SELECT 1 FROM unresolved_write_id u
                          WHERE u.db = of_db AND u.tbl = of_tbl AND NOT u.is_aborted AND u.txn_id <> committing)
              OR EXISTS (SELECT 1 FROM write_id w
                          WHERE w.db = of_db AND w.tbl = of_tbl AND w.write_id > own
                            AND NOT EXISTS (SELECT 1 FROM unresolved_write_id u
                                             WHERE u.txn_id = w.txn_id AND u.db = of_db AND u.tbl = of_tbl))
            THEN 'others_write'
        END;
        IF outcome IS NOT NULL THEN
            txn_id := committing;
            RETURN NEXT;
            RETURN;
        END IF;
    END IF;
    RETURN QUERY SELECT c.* FROM commit_txns(ARRAY[committing], ARRAY[false], conflict_reason) c;
END
$$;
