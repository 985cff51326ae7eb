-- What has happened to a table since a snapshot of it, by its write ids: a materialised view made of that snapshot can be
-- rebuilt by the new rows alone unless something was updated or compacted (transactions.md §8.11).
--   known      whether that can be told: the write ids have not begun again, and there is a record of the last write
--   updated    a write that the snapshot did not see has updated or deleted; also one whose write id nobody knows
--   compacted  a compaction has put such writes together, or is about to
-- Records of writes go with a compaction, which is then in the way itself, or with a table that was dropped and brought
-- back. What a later write to the same data makes superfluous was no update, or that one is.
CREATE OR REPLACE FUNCTION changes_since(in_db text, in_tbl text, high_water_mark bigint, open_ids bigint[])
RETURNS TABLE (known boolean, updated boolean, compacted boolean)
LANGUAGE plpgsql STABLE AS $$
DECLARE
    last_id bigint := coalesce((SELECT k.last_write_id FROM write_id_counter k
                                 WHERE k.db = in_db AND k.tbl = in_tbl), 0);
    recorded_id bigint := greatest(
        high_water_mark,
        (SELECT max(c.write_id) FROM completed_component c WHERE c.db = in_db AND c.tbl = in_tbl),
        (SELECT max(c.highest_write_id) FROM compaction c
          WHERE c.db = in_db AND c.tbl = in_tbl AND c.type <> 'c' AND c.state IN ('r', 's')));
BEGIN
    RETURN QUERY
        SELECT last_id >= high_water_mark
               AND last_id - recorded_id <= (SELECT count(*) FROM unresolved_write_id u
                                              WHERE u.db = in_db AND u.tbl = in_tbl AND u.write_id > recorded_id),
               EXISTS (SELECT 1 FROM completed_component c
                        WHERE c.db = in_db AND c.tbl = in_tbl AND c.update_delete
                          AND (c.write_id IS NULL OR c.write_id > high_water_mark OR c.write_id = ANY (open_ids))),
               EXISTS (SELECT 1 FROM compaction c
                        WHERE c.db = in_db AND c.tbl = in_tbl AND c.type <> 'c'
                          AND (c.state IN ('i', 'w') OR c.state IN ('r', 's')
                               AND (c.highest_write_id IS NULL OR c.highest_write_id > high_water_mark
                                    OR c.highest_write_id >= (SELECT min(o) FROM unnest(open_ids) AS o))));
END
$$;
