-- Forgets a figure of a table or partition (transactions.md §4.12). Safe to repeat.
CREATE OR REPLACE FUNCTION remove_compaction_metric(in_db text, in_tbl text, in_partition text, in_type integer)
RETURNS void
LANGUAGE sql AS $$
    DELETE FROM compaction_metric m
     WHERE m.db = in_db AND m.tbl = in_tbl AND m.partition IS NOT DISTINCT FROM in_partition AND m.type = in_type;
$$;
