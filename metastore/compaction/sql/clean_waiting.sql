-- Tables and partitions where something waits for the Cleaner that may not be cleaned now, and what is in the way of the
-- compaction that reaches least far (see clean_outlook); of a blocker also who it is, and when it was opened.
CREATE OR REPLACE FUNCTION clean_waiting(retention_ms bigint, at_most integer)
RETURNS TABLE (id bigint, db text, tbl text, partition text, obstacle text, until timestamptz, error_message text,
               blocker bigint, need text, user_name text, host_name text, agent_info text, opened_at timestamptz)
LANGUAGE sql STABLE AS $$
    SELECT w.id, w.db, w.tbl, w.partition, w.obstacle, w.until, c.error_message,
           t.txn_id, w.need, t.user_name, t.host_name, t.agent_info, t.started_at
      FROM (SELECT DISTINCT ON (o.db, o.tbl, o.partition) o.* FROM clean_outlook(retention_ms) o
             ORDER BY o.db, o.tbl, o.partition, o.obstacle IS NULL DESC, o.highest_write_id, o.id) AS w
      JOIN compaction c ON c.id = w.id
      LEFT JOIN txn t ON w.obstacle = 'reader' AND t.txn_id = w.blocker
     WHERE w.obstacle IS NOT NULL
     ORDER BY w.id LIMIT at_most;
$$;
