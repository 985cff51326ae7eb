-- Commits a transaction whose owner has found that the transactions `checked` have changed other rows than it has
-- (transactions.md §1.6): their changes of the same table or partition are no conflict then. If there are others it is
-- not committed, and still open: one row for each, unchecked, says who has changed what, and under which write id.
-- Outcomes are those of commit_txns otherwise; a conflict is one with a rebalance, by whose ids no row can be told, or
-- with more transactions than anybody will check. Safe to repeat.
--
-- `param_…` is what commit_txn_with sets by a commit, with its outcomes: no_parameter and not_newer.
--
-- Several changes of the same data that were merged (merge_write_set) are one row, of the last of them. Who has checked
-- that one after it had committed has seen the earlier ones, too.
CREATE OR REPLACE FUNCTION commit_rows(
    committing bigint, checked bigint[], conflict_reason text, param_table_id bigint, param_key text, param_value text
)
RETURNS TABLE (
    txn_id bigint, outcome text, freed_locks bigint[], db text, tbl text, partition text, operation text,
    commit_id bigint, other_txn bigint, other_commit_id bigint, other_operation text, other_write_id bigint
)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    most CONSTANT integer := 1000;
    is_open boolean;
    opened pg_snapshot;
    others bigint := 0;
    is_renumbered boolean;
BEGIN
    SELECT t.state = 'o' AND t.durability IS DISTINCT FROM 'l', t.opened_snapshot INTO is_open, opened
      FROM txn t WHERE t.txn_id = committing FOR NO KEY UPDATE;
    IF is_open THEN
        IF param_key IS NOT NULL THEN
            -- The table's row is locked before its changes are, as in commit_txn_with.
            outcome := store_commit_extras(param_table_id, param_key, param_value, NULL, NULL, NULL, '{}', false);
            IF outcome <> 'ok' THEN
                txn_id := committing;
                RETURN NEXT;
                RETURN;
            END IF;
        END IF;
        -- As in commit_txns, and in its order: nobody else commits a change of these tables until this has ended.
        PERFORM pg_advisory_xact_lock(sorted.key)
           FROM (SELECT DISTINCT advisory_key(1, c.db || '.' || c.tbl) AS key FROM txn_component c
                  WHERE c.txn_id = committing AND c.operation IN ('u', 'd') ORDER BY key) AS sorted;
        SELECT count(*), coalesce(bool_or(theirs.operation = 'r'), false) INTO others, is_renumbered
          FROM txn_component mine
         CROSS JOIN LATERAL find_write_conflict(mine.db, mine.tbl, mine.partition, committing, opened) AS theirs
         WHERE mine.txn_id = committing AND mine.operation IN ('u', 'd')
           AND (theirs.operation = 'r' OR theirs.txn_id <> ALL (checked));
        IF others BETWEEN 1 AND most AND NOT is_renumbered THEN
            RETURN QUERY
                SELECT DISTINCT committing, 'unchecked', NULL::bigint[], mine.db, mine.tbl,
                       nullif(theirs.partition, ''), NULL::text, NULL::bigint, theirs.txn_id, NULL::bigint, NULL::text,
                       w.write_id
                  FROM txn_component mine
                 CROSS JOIN LATERAL find_write_conflict(mine.db, mine.tbl, mine.partition, committing, opened) AS theirs
                  LEFT JOIN write_id w ON w.txn_id = theirs.txn_id AND w.db = mine.db AND w.tbl = mine.tbl
                 WHERE mine.txn_id = committing AND mine.operation IN ('u', 'd') AND theirs.txn_id <> ALL (checked);
            RETURN;
        END IF;
    END IF;
    IF param_key IS NULL THEN
        RETURN QUERY
            SELECT c.*, NULL::bigint FROM commit_txns(ARRAY[committing], ARRAY[others = 0], conflict_reason) c;
    ELSE
        RETURN QUERY
            SELECT c.*, NULL::bigint
              FROM commit_txn_with(committing, others = 0, conflict_reason, NULL, param_table_id, param_key, param_value,
                                   NULL, NULL, NULL, '{}', '{}', '{}', '{}', '{}') c;
    END IF;
END
$$;
