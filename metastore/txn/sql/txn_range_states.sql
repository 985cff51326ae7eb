-- What of each range of transactions, both ends included, is not open: the aborted ones, and those that are not there,
-- committed ones among them (transactions.md §1.3). Lost ones (see recover_from_crash) are as good as aborted.
CREATE OR REPLACE FUNCTION txn_range_states(firsts bigint[], lasts bigint[])
RETURNS TABLE (aborted bigint[], nosuch bigint[])
LANGUAGE plpgsql STABLE AS $$
BEGIN
    FOR i IN 1 .. cardinality(firsts) LOOP
        aborted := '{}';
        nosuch := '{}';
        IF (SELECT count(*) FROM txn t WHERE t.txn_id BETWEEN firsts[i] AND lasts[i] AND t.state = 'o' AND t.durability <> 'l')
           < lasts[i] - firsts[i] + 1 THEN
            SELECT coalesce(array_agg(id ORDER BY id) FILTER (WHERE t.state = 'a' OR t.state = 'o' AND t.durability = 'l'), '{}'),
                   coalesce(array_agg(id ORDER BY id) FILTER (WHERE t.state IS NULL OR t.state = 'c'), '{}')
              INTO aborted, nosuch
              FROM generate_series(firsts[i], lasts[i]) AS id LEFT JOIN txn t ON t.txn_id = id;
        END IF;
        RETURN NEXT;
    END LOOP;
END
$$;
