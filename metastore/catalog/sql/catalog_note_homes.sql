-- Notes that directories of a database dropped at dropped_at may go, since something that was still read in them has gone:
-- those in `whole` with all that lies in them, those in `if_empty` when no file is left there. Both have one place a line.
-- One that a database has again is nobody's to remove. Whether anything else is in the way is asked before it is removed.
-- Called inside the transaction that ends what was there.
CREATE OR REPLACE FUNCTION catalog_note_homes(whole text, if_empty text, of_database text, dropped_at timestamptz)
RETURNS void
LANGUAGE sql AS $$
    INSERT INTO directory_removal (location, only_if_empty, owner, home_since, next_at)
    SELECT p.place, p.only_if_empty, of_database, dropped_at, clock_timestamp()
      FROM (SELECT string_to_table(whole, E'\n') AS place, false AS only_if_empty
            UNION ALL
            SELECT string_to_table(if_empty, E'\n'), true) AS p
     WHERE p.place <> ''
       AND NOT EXISTS (SELECT 1 FROM database d WHERE d.location = p.place OR d.managed_location = p.place);
$$;
