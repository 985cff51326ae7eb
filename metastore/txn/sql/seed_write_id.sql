-- Lets the write ids of a table begin after `seed`; false if the table has begun already (transactions.md §2.4).
CREATE OR REPLACE FUNCTION seed_write_id(in_db text, in_tbl text, seed bigint) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO write_id_counter (db, tbl, last_write_id) VALUES (in_db, in_tbl, seed) ON CONFLICT DO NOTHING;
    RETURN FOUND;
END
$$;
