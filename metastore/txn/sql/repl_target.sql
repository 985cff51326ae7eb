-- The transaction here that replays one of another warehouse, null if it has ended or never began.
CREATE OR REPLACE FUNCTION repl_target(in_policy text, source_id bigint) RETURNS bigint
LANGUAGE sql STABLE AS $$
    SELECT m.txn_id FROM repl_txn_map m WHERE m.policy = in_policy AND m.source_txn_id = source_id;
$$;
