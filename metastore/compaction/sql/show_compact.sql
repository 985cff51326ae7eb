-- Compactions, waiting ones first, then the latest (transactions.md §4.3); every null argument leaves out its condition.
-- `in_order` is SQL that the caller has made of its own words. The pool of those that name none is called default.
CREATE OR REPLACE FUNCTION show_compact(
    in_id bigint, in_db text, in_tbl text, in_partition text, in_state text, in_type text, in_pool text,
    in_order text, at_most bigint
) RETURNS SETOF compaction
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN QUERY EXECUTE
        'SELECT * FROM compaction
          WHERE ($1 IS NULL OR id = $1) AND ($2 IS NULL OR db = $2) AND ($3 IS NULL OR tbl = $3)
            AND ($4 IS NULL OR partition = $4) AND ($5 IS NULL OR state = $5) AND ($6 IS NULL OR type = $6)
            AND ($7 IS NULL OR coalesce(pool, ''default'') = $7)
          ORDER BY '
        || coalesce(in_order || ', id',
                    'greatest(ended_at, committed_at, started_at) DESC NULLS FIRST, enqueued_at DESC, id DESC')
        || ' LIMIT $8'
    USING in_id, in_db, in_tbl, in_partition, in_state, in_type, in_pool, at_most;
END
$$;
