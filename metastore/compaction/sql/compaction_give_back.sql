-- Takes the directories of a dropped table away from the Cleaner: it is brought back.
CREATE OR REPLACE FUNCTION compaction_give_back(places text[]) RETURNS void
LANGUAGE sql AS $$
    DELETE FROM compaction WHERE state = 'r' AND properties ->> 'location' = ANY (places);
$$;
