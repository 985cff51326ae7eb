-- Whether what is left of a dropped table or partition waits for the Cleaner at, above or below a location.
CREATE OR REPLACE FUNCTION compaction_holds_place(place text) RETURNS boolean
LANGUAGE sql STABLE AS $$
    SELECT EXISTS (
        SELECT 1 FROM compaction c, LATERAL (SELECT c.properties ->> 'location' AS location) AS held
         WHERE c.state = 'r' AND c.properties ? 'location'
           AND (held.location = place OR starts_with(place, held.location || '/')
                OR starts_with(held.location, place || '/')))
$$;
