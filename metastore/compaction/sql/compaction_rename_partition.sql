-- Carries the compactions of a partition over to its new name, but for what is handed to the Cleaner by its location.
-- Called inside the transaction that renames it. A compaction under way ends without an effect: it finds the partition
-- gone or its directory moved; one that waits is carried out under the new name. With the directory go the files of earlier
-- partitions that were dropped there: nobody finds them any more by the ids of these (moved_places).
CREATE OR REPLACE FUNCTION compaction_rename_partition(
    in_db text, in_tbl text, old_partition text, new_partition text, old_place text
) RETURNS void
LANGUAGE sql AS $$
    UPDATE compaction SET partition = new_partition
     WHERE db = in_db AND tbl = in_tbl AND partition = old_partition AND NOT (state = 'r' AND properties ? 'location');
    UPDATE compaction SET properties = properties - 'ids'
     WHERE db = in_db AND tbl = in_tbl AND state = 'r' AND properties ? 'ids' AND properties ->> 'location' = old_place;
    UPDATE compaction_metric SET partition = new_partition
     WHERE db = in_db AND tbl = in_tbl AND partition = old_partition;
    UPDATE compaction_decision SET partition = new_partition
     WHERE db = in_db AND tbl = in_tbl AND partition = old_partition;
$$;
