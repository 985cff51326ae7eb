-- Forgets what was written to dropped partitions of a table (transactions.md §2.4); locks and write sets go by
-- themselves. Called inside the transaction that drops them.
CREATE OR REPLACE FUNCTION txn_forget_partitions(in_db text, in_tbl text, partitions text[]) RETURNS void
LANGUAGE sql AS $$
    DELETE FROM txn_component WHERE db = in_db AND tbl = in_tbl AND partition = ANY (partitions);
    DELETE FROM completed_component WHERE db = in_db AND tbl = in_tbl AND partition = ANY (partitions);
$$;
