-- Forgets the compactions of dropped partitions, but for what is handed to the Cleaner by its location: that is what
-- remains of them. Called inside the transaction that drops them.
CREATE OR REPLACE FUNCTION compaction_forget_partitions(in_db text, in_tbl text, partitions text[]) RETURNS void
LANGUAGE sql AS $$
    DELETE FROM compaction
     WHERE db = in_db AND tbl = in_tbl AND partition = ANY (partitions)
       AND NOT (state = 'r' AND properties ? 'location');
    DELETE FROM compaction_metric WHERE db = in_db AND tbl = in_tbl AND partition = ANY (partitions);
    DELETE FROM compaction_decision WHERE db = in_db AND tbl = in_tbl AND partition = ANY (partitions);
$$;
