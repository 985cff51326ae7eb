-- Compactions, waiting ones first, then the latest (transactions.md §4.3); every null argument leaves out its condition.
-- `order_column` is a column's name, checked by the caller.
CREATE OR REPLACE FUNCTION show_compact(
    in_id bigint, in_db text, in_tbl text, in_partition text, in_state text, in_type text, in_pool text,
    order_column text, is_descending boolean, at_most bigint
) RETURNS SETOF compaction
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN QUERY EXECUTE format(
        'SELECT * FROM compaction
          WHERE ($1 IS NULL OR id = $1) AND ($2 IS NULL OR db = $2) AND ($3 IS NULL OR tbl = $3)
            AND ($4 IS NULL OR partition = $4) AND ($5 IS NULL OR state = $5) AND ($6 IS NULL OR type = $6)
            AND ($7 IS NULL OR pool = $7)
          ORDER BY %s LIMIT $8',
        CASE WHEN order_column IS NULL
             THEN 'greatest(ended_at, committed_at, started_at) DESC NULLS FIRST, enqueued_at DESC, id DESC'
             ELSE format('%I %s NULLS LAST, id', order_column, CASE WHEN is_descending THEN 'DESC' ELSE 'ASC' END) END)
    USING in_id, in_db, in_tbl, in_partition, in_state, in_type, in_pool, at_most;
END
$$;
