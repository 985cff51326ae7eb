-- Notes with what the Cleaner is to remove of a dropped database's tables that the directories of this go after it: those in
-- `whole` with all that lies in them, those in `if_empty` when no file is left there. Called inside the transaction that
-- drops the database.
CREATE OR REPLACE FUNCTION compaction_keep_homes(in_db text, whole text[], if_empty text[]) RETURNS void
LANGUAGE sql AS $$
    UPDATE compaction
       SET properties = properties || jsonb_strip_nulls(jsonb_build_object(
               'homes', nullif(array_to_string(whole, E'\n'), ''),
               'homes_if_empty', nullif(array_to_string(if_empty, E'\n'), '')))
     WHERE db = in_db AND state = 'r' AND properties ? 'location';
$$;
