-- The newest compaction of a table, or of each of its partitions (of those named, if not null), that has been marked as
-- compacted, if its id is above `after_id` (transactions.md §4.3). What a drop left to the Cleaner is none.
CREATE OR REPLACE FUNCTION latest_committed_compactions(in_db text, in_tbl text, partitions text[], after_id bigint)
RETURNS SETOF compaction
LANGUAGE sql STABLE AS $$
    SELECT DISTINCT ON (c.partition) c.* FROM compaction c
     WHERE c.db = in_db AND c.tbl = in_tbl AND c.state IN ('s', 'r') AND c.type <> 'c' AND NOT c.properties ? 'location'
       AND (partitions IS NULL OR c.partition = ANY (partitions))
       AND (after_id IS NULL OR c.id > after_id)
     ORDER BY c.partition, c.id DESC;
$$;
