-- Notes with compactions that wait for the Cleaner why they do; only what has changed is written.
CREATE OR REPLACE FUNCTION note_clean_obstacles(ids bigint[], reasons text[]) RETURNS void
LANGUAGE sql AS $$
    UPDATE compaction c SET reason = n.reason
      FROM unnest(ids, reasons) AS n (id, reason)
     WHERE c.id = n.id AND c.state = 'r' AND c.reason IS DISTINCT FROM n.reason;
$$;
