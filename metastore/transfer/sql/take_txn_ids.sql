-- Passes over the transaction ids that a source of an import has given out, so that none of them gets a second meaning:
-- directories that the source's compactions wrote carry them (_vT), and are visible as long as T counts as committed.
-- Returns what stands in the way: transactions that are open or aborted here, whose ids the source has too, and mean
-- something else there. Nothing is done then. Safe to repeat.
CREATE OR REPLACE FUNCTION take_txn_ids(in_source text, high_water_mark bigint)
RETURNS TABLE (in_the_way bigint[])
LANGUAGE plpgsql AS $$
DECLARE
    last_here bigint;
BEGIN
    SELECT c.last_id INTO last_here FROM txn_counter c FOR NO KEY UPDATE;
    in_the_way := ARRAY(
        SELECT t.txn_id FROM txn t
         WHERE t.state IN ('o', 'a') AND t.txn_id <= high_water_mark
           AND NOT EXISTS (SELECT 1 FROM imported_txn_range r
                            WHERE r.source = in_source AND t.txn_id BETWEEN r.first_txn_id AND r.last_txn_id)
         ORDER BY t.txn_id);
    IF cardinality(in_the_way) = 0 AND last_here < high_water_mark THEN
        -- Nothing was opened: the count of open ones moves along.
        UPDATE txn_counter
           SET last_id = high_water_mark, counted_at = counted_at + (high_water_mark - last_here);
        INSERT INTO imported_txn_range (source, first_txn_id, last_txn_id)
        VALUES (in_source, last_here + 1, high_water_mark);
    END IF;
    RETURN NEXT;
END
$$;
