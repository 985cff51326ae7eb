-- Those of some places at or below which something of the catalogue has its files, or at, above or below which what was
-- dropped waits for the Cleaner, for its removal, or in the trash.
CREATE OR REPLACE FUNCTION places_in_use(places text[]) RETURNS SETOF text
LANGUAGE sql STABLE AS $$
    SELECT p.place FROM unnest(places) AS p (place)
     -- In this order, from the few to the many.
     WHERE CASE
        WHEN EXISTS (SELECT 1 FROM tbl t
                      WHERE t.location = p.place OR starts_with(t.location, p.place || '/')) THEN true
        WHEN EXISTS (SELECT 1 FROM database d
                      WHERE p.place IN (d.location, d.managed_location)
                         OR starts_with(d.location, p.place || '/') OR starts_with(d.managed_location, p.place || '/'))
            THEN true
        WHEN EXISTS (SELECT 1 FROM catalog c
                      WHERE c.location = p.place OR starts_with(c.location, p.place || '/')) THEN true
        WHEN EXISTS (SELECT 1 FROM directory_removal r, LATERAL (VALUES (r.location), (r.trash)) AS w (place)
                      WHERE w.place = p.place OR starts_with(w.place, p.place || '/')
                         OR starts_with(p.place, w.place || '/')) THEN true
        WHEN EXISTS (SELECT 1 FROM dropped_directory r, LATERAL (VALUES (r.location), (r.trash)) AS w (place)
                      WHERE w.place = p.place OR starts_with(w.place, p.place || '/')
                         OR starts_with(p.place, w.place || '/')) THEN true
        WHEN compaction_holds_place(p.place) THEN true
        ELSE EXISTS (SELECT 1 FROM partition x
                      WHERE x.location = p.place OR starts_with(x.location, p.place || '/')) END
$$;
