-- Whether aborted transactions are on record that have written to a table without naming the partitions, or to one that
-- has none.
CREATE OR REPLACE FUNCTION has_unnamed_aborts(in_db text, in_tbl text) RETURNS boolean
LANGUAGE sql STABLE AS $$
    SELECT EXISTS (SELECT 1 FROM txn_component c JOIN txn t ON t.txn_id = c.txn_id AND t.state = 'a'
                    WHERE c.db = in_db AND c.tbl = in_tbl AND c.partition IS NULL);
$$;
