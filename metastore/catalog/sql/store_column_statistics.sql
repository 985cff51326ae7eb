-- Stores statistics of columns, or replaces those of the same column and engine. The rows come as objects with the
-- columns of the table, numbers and bytes as texts that Postgres reads.
CREATE OR REPLACE FUNCTION store_column_statistics(given text) RETURNS void
LANGUAGE sql AS $$
    INSERT INTO column_statistics SELECT * FROM json_populate_recordset(NULL::column_statistics, given::json)
    ON CONFLICT (table_id, coalesce(partition_id, 0), column_name, engine) DO UPDATE SET
        column_type = excluded.column_type, kind = excluded.kind, analyzed_s = excluded.analyzed_s,
        nulls = excluded.nulls, distinct_values = excluded.distinct_values, trues = excluded.trues,
        falses = excluded.falses, max_length = excluded.max_length, avg_length = excluded.avg_length,
        low = excluded.low, high = excluded.high, low_double = excluded.low_double,
        high_double = excluded.high_double, bit_vector = excluded.bit_vector, histogram = excluded.histogram;
$$;
