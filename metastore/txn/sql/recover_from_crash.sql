-- What has to be done once after a crash of the database, before anything else: called by every new connection, and
-- there are only new ones then. Returns whether there was a crash.
--
-- Openings, write ids and locks of young transactions are not flushed (see open_txns). A commit is, and with it all that
-- was done before it. So a crash may have forgotten what came after the last commit, though clients were told of it:
--   * Young transactions may lack a write id or a lock: they are lost, that is, they cannot commit. So are those whose
--     ids were reserved, whether they had been given out or not. All hold the Cleaner back until their clients end them
--     or they time out, since these may read, or write files, until they are told.
--   * Write ids that were reserved belong to some of the lost ones from now on: what is written under them is never seen,
--     and goes like the files of any aborted transaction.
--   * What was read of aborted transactions by versions of before is not relied on (see get_open_txns).
--   * Ids of locks go on far beyond what the log may have lacked.
CREATE OR REPLACE FUNCTION recover_from_crash() RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    instant CONSTANT timestamptz := clock_timestamp();
    first_id bigint;
    final_id bigint;
BEGIN
    IF EXISTS (SELECT 1 FROM uncrashed) THEN
        RETURN false;
    END IF;
    LOCK TABLE uncrashed IN EXCLUSIVE MODE;
    IF EXISTS (SELECT 1 FROM uncrashed) THEN
        RETURN false;
    END IF;
    UPDATE txn SET durability = 'l' WHERE state = 'o' AND durability = 'y';
    SELECT c.last_id + 1, greatest(c.reserved_id, c.last_id + 1) INTO first_id, final_id FROM txn_counter c FOR UPDATE;
    PERFORM 1 FROM write_id_counter k ORDER BY k.db, k.tbl FOR NO KEY UPDATE;
    -- A transaction has one write id of a table.
    SELECT greatest(final_id, first_id + max(k.reserved_write_id - k.last_write_id) - 1) INTO final_id
      FROM write_id_counter k;
    UPDATE txn_counter c
       SET last_id = final_id, reserved_id = final_id, counted_at = final_id,
           counted_open = c.counted_open + final_id - c.counted_at;
    INSERT INTO txn (txn_id, state, type, user_name, host_name, agent_info, started_at, heartbeat_at, opened_snapshot,
                     durability)
    SELECT id, 'o', 0, '', '', 'may have been forgotten in a crash of the database', instant, instant,
           pg_current_snapshot(), 'l'
      FROM generate_series(first_id, final_id) AS id;
    WITH forgotten AS (
        UPDATE write_id_counter k SET last_write_id = k.reserved_write_id
          FROM write_id_counter before
         WHERE before.db = k.db AND before.tbl = k.tbl AND before.reserved_write_id > before.last_write_id
        RETURNING k.db, k.tbl, before.last_write_id AS last, k.reserved_write_id AS reserved
    ), given AS MATERIALIZED (
        SELECT f.db, f.tbl, w.write_id, first_id + w.write_id - f.last - 1 AS txn_id FROM forgotten f
         CROSS JOIN LATERAL generate_series(f.last + 1, f.reserved) AS w (write_id)
    ), mapped AS (
        INSERT INTO write_id (db, tbl, write_id, txn_id) SELECT g.db, g.tbl, g.write_id, g.txn_id FROM given g
    )
    INSERT INTO unresolved_write_id (txn_id, db, tbl, write_id) SELECT g.txn_id, g.db, g.tbl, g.write_id FROM given g;
    UPDATE aborted_era SET era = gen_random_uuid();
    PERFORM setval('lock_id', (SELECT s.last_value FROM lock_id s) + 1000000);
    INSERT INTO uncrashed VALUES (instant);
    RETURN true;
END
$$;
