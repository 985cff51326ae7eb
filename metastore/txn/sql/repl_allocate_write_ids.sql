-- Gives replayed transactions the write ids that their sources have (transactions.md §2.1): files are copied under their
-- own names, which carry them. Where the first of them is not the next one of the table, a former replay of the table has
-- been given up: its write ids are forgotten.
-- One row per transaction, of this warehouse, with the outcome ok; none if one of the sources has no transaction here,
-- since it has ended; or a single row with txn_aborted, txn_committed or txn_unknown for the first that is not open, and
-- nothing allocated. Safe to repeat.
CREATE OR REPLACE FUNCTION repl_allocate_write_ids(
    in_policy text, in_db text, in_tbl text, source_ids bigint[], source_write_ids bigint[]
) RETURNS TABLE (outcome text, txn_id bigint, write_id bigint)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    targets bigint[];
    refused record;
    lowest bigint := (SELECT min(w) FROM unnest(source_write_ids) AS w);
    highest bigint := (SELECT max(w) FROM unnest(source_write_ids) AS w);
    last_allocated bigint;
BEGIN
    targets := ARRAY(
        SELECT m.txn_id FROM unnest(source_ids) WITH ORDINALITY AS s (id, position)
          JOIN repl_txn_map m ON m.policy = in_policy AND m.source_txn_id = s.id
         ORDER BY s.position);
    IF cardinality(targets) <> cardinality(source_ids) THEN
        RETURN;
    END IF;
    PERFORM 1 FROM txn t WHERE t.txn_id = ANY (targets) ORDER BY t.txn_id FOR SHARE;
    SELECT id, t.state INTO refused
      FROM unnest(targets) AS id LEFT JOIN txn t ON t.txn_id = id
     WHERE t.state IS DISTINCT FROM 'o'
     ORDER BY id LIMIT 1;
    IF FOUND THEN
        RETURN QUERY SELECT CASE refused.state WHEN 'a' THEN 'txn_aborted' WHEN 'c' THEN 'txn_committed'
                                 ELSE 'txn_unknown' END, refused.id, NULL::bigint;
        RETURN;
    END IF;
    INSERT INTO write_id_counter (db, tbl, last_write_id) VALUES (in_db, in_tbl, lowest - 1) ON CONFLICT DO NOTHING;
    SELECT k.last_write_id INTO last_allocated FROM write_id_counter k
     WHERE k.db = in_db AND k.tbl = in_tbl FOR NO KEY UPDATE;
    IF EXISTS (SELECT 1 FROM unnest(targets, source_write_ids) AS asked (id, wanted)
                WHERE NOT EXISTS (SELECT 1 FROM write_id w WHERE w.db = in_db AND w.tbl = in_tbl
                                     AND w.txn_id = asked.id AND w.write_id = asked.wanted))
    THEN
        -- Aborted writes below stay on record: without it they would count as committed.
        WITH forgotten AS (
            DELETE FROM write_id w
             WHERE w.db = in_db AND w.tbl = in_tbl
               AND (w.txn_id = ANY (targets)
                    OR lowest <> last_allocated + 1
                       AND (w.write_id >= lowest
                            OR NOT EXISTS (SELECT 1 FROM txn t WHERE t.txn_id = w.txn_id AND t.state = 'a')))
            RETURNING w.txn_id
        )
        DELETE FROM unresolved_write_id u USING forgotten f
         WHERE u.db = in_db AND u.tbl = in_tbl AND u.txn_id = f.txn_id;
        INSERT INTO write_id (db, tbl, write_id, txn_id)
        SELECT in_db, in_tbl, asked.wanted, asked.id FROM unnest(targets, source_write_ids) AS asked (id, wanted);
        INSERT INTO unresolved_write_id (txn_id, db, tbl, write_id)
        SELECT asked.id, in_db, in_tbl, asked.wanted FROM unnest(targets, source_write_ids) AS asked (id, wanted);
        UPDATE write_id_counter SET last_write_id = highest, aborted_version = nextval('table_version')
         WHERE db = in_db AND tbl = in_tbl;
    END IF;
    RETURN QUERY
        SELECT 'ok', w.txn_id, w.write_id FROM write_id w
         WHERE w.db = in_db AND w.tbl = in_tbl AND w.txn_id = ANY (targets) ORDER BY w.txn_id;
END
$$;
