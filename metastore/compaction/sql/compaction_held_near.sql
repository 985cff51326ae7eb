-- What is left of dropped tables and partitions and waits for the Cleaner, in ranges of places; these are as data_near
-- makes them.
CREATE OR REPLACE FUNCTION compaction_held_near(numbers integer[], lows text[], highs text[])
RETURNS TABLE (number integer, id bigint, db text, tbl text, location text)
LANGUAGE sql STABLE AS $$
    SELECT a.number, c.id, c.db, c.tbl, c.properties ->> 'location'
      FROM unnest(numbers, lows, highs) AS a (number, low, high)
      JOIN compaction c ON c.state = 'r' AND c.properties ? 'location'
       AND left(lower(c.properties ->> 'location'), 600) COLLATE "C" BETWEEN a.low AND a.high
$$;
