-- The tables that were made to take the place of others, and never will: the transaction that each is named after is open
-- no more. With its commit it would have another name. The condition is that of an index.
CREATE OR REPLACE FUNCTION abandoned_successors() RETURNS TABLE (database text, name text)
LANGUAGE sql STABLE AS $$
    SELECT b.database, b.name
      FROM tbl b
     WHERE starts_with(b.name, 'hive_acid_successor_')
       AND b.name ~ '^hive_acid_successor_[0-9]{1,18}$'
       AND b.parameters ? 'hive_acid.succeeds'
       AND NOT EXISTS (SELECT 1 FROM txn t
                        WHERE t.state = 'o' AND t.txn_id = substr(b.name, length('hive_acid_successor_') + 1)::bigint)
$$;
