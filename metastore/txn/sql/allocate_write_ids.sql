-- Gives transactions their write ids of tables (transactions.md §2.1), for several requests at once: `requests` numbers
-- the request that each table and transaction belongs to. A transaction that has a write id of the table keeps it; new
-- ones are contiguous in a request, the smallest for the smallest transaction.
-- One row per request and transaction with the outcome ok; or for a request with a transaction that may not write a
-- single row with txn_unknown, txn_aborted, txn_committed or txn_read_only for the first such, and nothing is
-- allocated for it.
-- Safe to repeat.
-- `opened_here` says that this database transaction has opened all of them, and that they are to write and have no write id:
-- they are not looked at.
--
-- Write ids of young transactions are not flushed, see recover_from_crash: those of a table are flushed beforehand, 32 at
-- a time, so none is given out twice.
CREATE OR REPLACE FUNCTION allocate_write_ids(
    requests integer[], dbs text[], tbls text[], txn_ids bigint[], opened_here boolean DEFAULT false
) RETURNS TABLE (request integer, outcome text, txn_id bigint, write_id bigint)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    live bigint[];
    repeated boolean;
    all_young boolean;
    durability CONSTANT text := current_setting('synchronous_commit');
    unflushed text;
    reserve CONSTANT bigint := 32;
    refused integer[] := '{}';
BEGIN
    -- Share locks to the end: no abort or commit slips in between the check and the allocation.
    IF opened_here THEN
        live := txn_ids;
        repeated := false;
        all_young := true;
    ELSE
        SELECT coalesce(array_agg(s.txn_id), '{}'), bool_or(s.may_have), bool_and(s.durability = 'y')
          INTO live, repeated, all_young
          FROM (SELECT t.txn_id, t.state, t.type, t.durability,
                       EXISTS (SELECT 1 FROM unresolved_write_id u
                                WHERE u.txn_id = t.txn_id AND u.db = ANY (dbs) AND u.tbl = ANY (tbls)) AS may_have
                  FROM txn t WHERE t.txn_id = ANY (txn_ids) ORDER BY t.txn_id FOR SHARE) AS s
         WHERE s.state = 'o' AND s.type <> 2 AND s.durability <> 'l';
    END IF;
    IF all_young THEN
        unflushed := set_config('synchronous_commit', 'off', true);
    END IF;
    -- Most often each transaction is asked for once and has no write id yet: a plan of half the size.
    IF cardinality(live) = cardinality(txn_ids) AND NOT repeated THEN
        RETURN QUERY
            WITH counted AS (
                INSERT INTO write_id_counter AS k (db, tbl, last_write_id, reserved_write_id)
                SELECT a.db, a.tbl, count(*), count(*) + reserve FROM unnest(dbs, tbls) AS a (db, tbl) GROUP BY a.db, a.tbl
                 ORDER BY a.db, a.tbl
                ON CONFLICT (db, tbl) DO UPDATE
                   SET last_write_id = k.last_write_id + excluded.last_write_id,
                       reserved_write_id = CASE WHEN k.last_write_id + excluded.last_write_id > k.reserved_write_id
                                                THEN k.last_write_id + excluded.reserved_write_id
                                                ELSE k.reserved_write_id END
                RETURNING k.db, k.tbl, k.last_write_id, k.reserved_write_id
            ), given AS MATERIALIZED (
                SELECT a.request, a.db, a.tbl, a.txn_id,
                       c.last_write_id + 1
                       - row_number() OVER (PARTITION BY a.db, a.tbl ORDER BY a.request DESC, a.txn_id DESC) AS write_id
                  FROM unnest(requests, dbs, tbls, txn_ids) AS a (request, db, tbl, txn_id)
                  JOIN counted c ON c.db = a.db AND c.tbl = a.tbl
                 -- What has been reserved just now is flushed.
                 WHERE c.reserved_write_id < c.last_write_id + reserve
                    OR set_config('synchronous_commit', durability, true) IS NOT NULL
            ), mapped AS (
                INSERT INTO write_id (db, tbl, write_id, txn_id) SELECT g.db, g.tbl, g.write_id, g.txn_id FROM given g
            ), unresolved AS (
                INSERT INTO unresolved_write_id (txn_id, db, tbl, write_id)
                SELECT g.txn_id, g.db, g.tbl, g.write_id FROM given g
            )
            SELECT g.request, 'ok', g.txn_id, g.write_id FROM given g;
        RETURN;
    END IF;
    unflushed := set_config('synchronous_commit', durability, true);
    IF cardinality(live) < (SELECT count(DISTINCT id) FROM unnest(txn_ids) AS id) THEN
        RETURN QUERY
            SELECT DISTINCT ON (a.request) a.request,
                   CASE t.state WHEN 'o' THEN CASE t.type WHEN 2 THEN 'txn_read_only' ELSE 'txn_aborted' END
                                WHEN 'a' THEN 'txn_aborted'
                                WHEN 'c' THEN 'txn_committed' ELSE 'txn_unknown' END, a.txn_id, NULL::bigint
              FROM unnest(requests, txn_ids) AS a (request, txn_id) LEFT JOIN txn t ON t.txn_id = a.txn_id
             WHERE a.txn_id <> ALL (live)
             ORDER BY a.request, a.txn_id;
        refused := ARRAY(SELECT a.request FROM unnest(requests, txn_ids) AS a (request, txn_id)
                          WHERE a.txn_id <> ALL (live));
    END IF;
    RETURN QUERY
        WITH asked AS MATERIALIZED (
            SELECT a.request, a.db, a.tbl, a.txn_id, u.write_id
              FROM unnest(requests, dbs, tbls, txn_ids) AS a (request, db, tbl, txn_id)
              LEFT JOIN unresolved_write_id u ON u.txn_id = a.txn_id AND u.db = a.db AND u.tbl = a.tbl
             WHERE a.request <> ALL (refused)
        ), missing AS MATERIALIZED (
            SELECT s.db, s.tbl, s.txn_id,
                   row_number() OVER (PARTITION BY s.db, s.tbl ORDER BY s.request, s.txn_id) AS place
              FROM (SELECT a.db, a.tbl, a.txn_id, min(a.request) AS request FROM asked a
                     WHERE a.write_id IS NULL GROUP BY a.db, a.tbl, a.txn_id) AS s
        ), counted AS (
            INSERT INTO write_id_counter AS k (db, tbl, last_write_id)
            SELECT m.db, m.tbl, max(m.place) FROM missing m GROUP BY m.db, m.tbl ORDER BY m.db, m.tbl
            ON CONFLICT (db, tbl) DO UPDATE SET last_write_id = k.last_write_id + excluded.last_write_id
            RETURNING k.db, k.tbl, k.last_write_id
        ), given AS MATERIALIZED (
            SELECT m.db, m.tbl, m.txn_id, c.last_write_id - max(m.place) OVER (PARTITION BY m.db, m.tbl) + m.place
                   AS write_id
              FROM missing m JOIN counted c ON c.db = m.db AND c.tbl = m.tbl
        ), mapped AS (
            INSERT INTO write_id (db, tbl, write_id, txn_id) SELECT g.db, g.tbl, g.write_id, g.txn_id FROM given g
        ), unresolved AS (
            INSERT INTO unresolved_write_id (txn_id, db, tbl, write_id)
            SELECT g.txn_id, g.db, g.tbl, g.write_id FROM given g
        )
        SELECT a.request, 'ok', a.txn_id, coalesce(a.write_id, g.write_id)
          FROM asked a LEFT JOIN given g ON g.txn_id = a.txn_id AND g.db = a.db AND g.tbl = a.tbl;
END
$$;
