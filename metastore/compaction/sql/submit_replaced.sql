-- Hands what a transaction has replaced in a table (a null partition) or in partitions to the Cleaner, for when it has
-- committed; see submit_for_cleanup, whose outcome it is. With a place of `places` the whole directory goes, if nothing
-- has taken its place by then.
CREATE OR REPLACE FUNCTION submit_replaced(
    in_db text, in_tbl text, partitions text[], places text[], in_highest_write_id bigint, in_txn_id bigint
) RETURNS text
LANGUAGE sql AS $$
    SELECT min(s.outcome)
      FROM unnest(partitions, places) AS r (partition, place),
           LATERAL submit_for_cleanup(
               'a', in_db, in_tbl, r.partition, jsonb_strip_nulls(jsonb_build_object(
                   'location', r.place, 'ids', ids_at(in_db, in_tbl, r.place)))::text, NULL,
               NULL, NULL, in_highest_write_id, in_txn_id) AS s
$$;
