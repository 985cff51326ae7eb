-- Opens a transaction of type REPL_CREATED for each transaction of another warehouse that has none yet under the policy,
-- and returns that of every one (transactions.md §1.2). No rows, and nothing opened, if there would be more than
-- `max_open` open ones then. Safe to repeat: the same again.
CREATE OR REPLACE FUNCTION repl_open_txns(
    in_policy text, source_ids bigint[], in_user text, in_host text, in_agent text, max_open bigint
) RETURNS TABLE (source_id bigint, target_id bigint)
LANGUAGE plpgsql AS $$
DECLARE
    missing bigint[];
    asked integer[];
    first_id bigint;
    durability CONSTANT text := current_setting('synchronous_commit');
BEGIN
    -- The same opening, repeated meanwhile, waits and finds the transactions of the first.
    PERFORM pg_advisory_xact_lock(advisory_key(3, in_policy));
    missing := ARRAY(
        SELECT DISTINCT id FROM unnest(source_ids) AS id
         WHERE NOT EXISTS (SELECT 1 FROM repl_txn_map m WHERE m.policy = in_policy AND m.source_txn_id = id)
         ORDER BY id);
    IF cardinality(missing) > 0 THEN
        asked := ARRAY[cardinality(missing)];
        SELECT o.first_txn_id INTO first_id
          FROM open_txns(asked, array_fill(1::smallint, asked), array_fill(in_user, asked), array_fill(in_host, asked),
                         array_fill(in_agent, asked), array_fill(NULL::boolean, asked), '{}', '{}', '{}', max_open) o
         WHERE o.opened > 0;
        -- The source relies on its mapping, and may take days.
        PERFORM set_config('synchronous_commit', durability, true);
        PERFORM keep_txns(ARRAY(SELECT generate_series(first_id, first_id + cardinality(missing) - 1)));
        IF first_id IS NULL THEN
            RETURN;
        END IF;
        INSERT INTO repl_txn_map (policy, source_txn_id, txn_id)
        SELECT in_policy, id, first_id + position - 1 FROM unnest(missing) WITH ORDINALITY AS m (id, position);
    END IF;
    RETURN QUERY
        SELECT m.source_txn_id, m.txn_id FROM repl_txn_map m
         WHERE m.policy = in_policy AND m.source_txn_id = ANY (source_ids);
END
$$;
