-- Notes which writes the statistics of an ACID table (0) and its partitions include now.
CREATE OR REPLACE FUNCTION store_statistics_basis(
    in_table_id bigint, targets bigint[], in_write_id bigint, mark bigint, in_open_ids bigint[], in_is_outdated boolean
) RETURNS void
LANGUAGE sql AS $$
    INSERT INTO statistics_basis (table_id, partition_id, write_id, high_water_mark, open_ids, is_outdated)
    SELECT in_table_id, nullif(id, 0), in_write_id, mark, in_open_ids, in_is_outdated FROM unnest(targets) AS id
    ON CONFLICT (table_id, coalesce(partition_id, 0)) DO UPDATE SET
        write_id = excluded.write_id, high_water_mark = excluded.high_water_mark, open_ids = excluded.open_ids,
        is_outdated = excluded.is_outdated;
$$;
