-- Lets transaction ids go on at `seed`, which must be above the high-water mark (transactions.md §2.4); true if they do.
-- Ids in between never were: every snapshot takes them for committed, and no file has them. The high-water mark is
-- returned as it was. Not safe to repeat: the second time finds its own work, and refuses.
CREATE OR REPLACE FUNCTION seed_txn_id(seed bigint) RETURNS TABLE (seeded boolean, high_water_mark bigint)
LANGUAGE plpgsql AS $$
BEGIN
    SELECT c.last_id INTO high_water_mark FROM txn_counter c FOR NO KEY UPDATE;
    seeded := seed > high_water_mark;
    IF seeded THEN
        -- Nothing was opened: the count of open ones moves along.
        UPDATE txn_counter SET last_id = seed - 1, counted_at = counted_at + (seed - 1 - last_id);
    END IF;
    RETURN NEXT;
END
$$;
