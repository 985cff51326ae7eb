-- The parameters that commit_txn_with sets: whether they can be set, and then, with `store`, their setting. Outcome: ok,
-- no_parameter, not_newer, no_database or no_table. What is found stays locked to the end of the database transaction.
-- A parameter `_meta.batch.…` is how far a stream got: it need not be there, and is only ever raised.
CREATE OR REPLACE FUNCTION store_commit_extras(
    param_table_id bigint, param_key text, param_value text,
    repl_id text, repl_db text, repl_tbl text, repl_partitions text[], store boolean
) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    last_id jsonb := jsonb_build_object('repl.last.id', repl_id);
    repl_table_id bigint;
    is_progress boolean := starts_with(param_key, '_meta.batch.');
    last_batch text;
BEGIN
    IF repl_db IS NOT NULL THEN
        PERFORM 1 FROM database d WHERE d.name = repl_db FOR NO KEY UPDATE;
        IF NOT FOUND THEN
            RETURN 'no_database';
        END IF;
        IF repl_tbl IS NOT NULL THEN
            SELECT t.id INTO repl_table_id FROM tbl t WHERE t.database = repl_db AND t.name = repl_tbl FOR NO KEY UPDATE;
            IF NOT FOUND THEN
                RETURN 'no_table';
            END IF;
        END IF;
    END IF;
    IF param_key IS NOT NULL THEN
        SELECT t.parameters ->> param_key INTO last_batch
          FROM tbl t WHERE t.id = param_table_id AND (is_progress OR t.parameters ? param_key) FOR NO KEY UPDATE;
        IF NOT FOUND THEN
            RETURN 'no_parameter';
        END IF;
        IF is_progress AND NOT store AND last_batch ~ '^[0-9]{1,18}$' AND last_batch::bigint >= param_value::bigint THEN
            RETURN 'not_newer';
        END IF;
    END IF;
    IF store THEN
        UPDATE database d SET parameters = d.parameters || last_id WHERE d.name = repl_db;
        UPDATE tbl t SET parameters = t.parameters || last_id WHERE t.id = repl_table_id;
        UPDATE partition p SET parameters = p.parameters || last_id
         WHERE p.table_id = repl_table_id AND p.name = ANY (repl_partitions);
        UPDATE tbl t SET parameters = t.parameters || jsonb_build_object(param_key, param_value)
         WHERE t.id = param_table_id AND param_key IS NOT NULL;
    END IF;
    RETURN 'ok';
END
$$;
