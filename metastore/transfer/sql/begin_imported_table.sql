-- Begins the write ids of an imported table where its source stands: those up to `high_water_mark` are given out, the
-- aborted ones stay aborted. `write_ids` and the arrays beside it name what aborted transactions may have left in the
-- table's files (0 and '' for what is not known or not there, see AbortedWrite); each keeps its transaction's id if that
-- was passed over for this source (take_txn_ids), since directories of compactions carry it, else it gets a new one.
--
-- A table that has write ids goes on where the source stands if `known` is the last of them here, as it is when the
-- source went on during the copy. The outcome is ok; begun, if the table has other write ids, or taken, if an aborted
-- compaction's id means something else here. Only ok changes anything. Safe to repeat.
CREATE OR REPLACE FUNCTION begin_imported_table(
    in_source text, in_db text, in_tbl text, high_water_mark bigint, known bigint, write_ids bigint[], txn_ids bigint[],
    partitions text[], operations text[]
) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    owned bigint[];
    unowned bigint[];
    last_owner bigint;
    last_passed bigint;
    highest_valid bigint;
    valid_owner bigint;
BEGIN
    owned := ARRAY(SELECT DISTINCT t FROM unnest(txn_ids) AS t JOIN imported_txn_range r
                     ON r.source = in_source AND t BETWEEN r.first_txn_id AND r.last_txn_id);
    IF EXISTS (SELECT 1 FROM unnest(write_ids, txn_ids) AS a (write_id, txn_id)
                WHERE a.write_id = 0 AND a.txn_id <> ALL (owned)) THEN
        RETURN 'taken';
    END IF;
    INSERT INTO write_id_counter (db, tbl, last_write_id) VALUES (in_db, in_tbl, high_water_mark)
    ON CONFLICT DO NOTHING;
    IF NOT FOUND THEN
        UPDATE write_id_counter SET last_write_id = high_water_mark, aborted_version = nextval('table_version')
         WHERE db = in_db AND tbl = in_tbl AND last_write_id = known AND last_write_id <= high_water_mark;
        IF NOT FOUND THEN
            RETURN 'begun';
        END IF;
    END IF;
    unowned := ARRAY(
        SELECT DISTINCT a.write_id FROM unnest(write_ids, txn_ids) AS a (write_id, txn_id)
         WHERE a.txn_id <> ALL (owned)
           AND NOT EXISTS (SELECT 1 FROM write_id w WHERE w.db = in_db AND w.tbl = in_tbl AND w.write_id = a.write_id)
         ORDER BY a.write_id);
    IF cardinality(unowned) > 0 THEN
        last_owner := seed_ended_txns(cardinality(unowned), 'import', in_source, 'aborted at the source of the import');
    END IF;
    PERFORM put_aborted_txns(owned, 'import', in_source, 'aborted at the source of the import');
    WITH asked AS MATERIALIZED (
        SELECT a.write_id, a.partition, a.operation,
               coalesce(last_owner - cardinality(unowned) + array_position(unowned, a.write_id), w.txn_id, a.txn_id)
                   AS txn_id
          FROM unnest(write_ids, txn_ids, partitions, operations) AS a (write_id, txn_id, partition, operation)
          LEFT JOIN write_id w ON w.db = in_db AND w.tbl = in_tbl AND w.write_id = a.write_id
    ), mapped AS (
        INSERT INTO write_id (db, tbl, write_id, txn_id)
        SELECT DISTINCT in_db, in_tbl, a.write_id, a.txn_id FROM asked a WHERE a.write_id > 0
        ON CONFLICT DO NOTHING
    ), unresolved AS (
        INSERT INTO unresolved_write_id (txn_id, db, tbl, write_id, is_aborted)
        SELECT DISTINCT a.txn_id, in_db, in_tbl, a.write_id, true FROM asked a WHERE a.write_id > 0
        ON CONFLICT DO NOTHING
    )
    INSERT INTO txn_component (txn_id, db, tbl, partition, operation, write_id)
    SELECT a.txn_id, in_db, in_tbl, nullif(a.partition, ''), a.operation, nullif(a.write_id, 0) FROM asked a
    ON CONFLICT DO NOTHING;
    -- As in repl_begin_table: with nothing but aborted write ids on record a snapshot would show nothing.
    IF cardinality(write_ids) > 0 THEN
        SELECT max(id) INTO highest_valid
          FROM generate_series(greatest(1, high_water_mark - cardinality(write_ids)), high_water_mark) AS id
         WHERE id <> ALL (write_ids);
        SELECT max(r.last_txn_id) INTO last_passed FROM imported_txn_range r WHERE r.source = in_source;
        SELECT max(id) INTO valid_owner
          FROM generate_series(greatest(1, last_passed - 1000), last_passed) AS id
          JOIN imported_txn_range r ON r.source = in_source AND id BETWEEN r.first_txn_id AND r.last_txn_id
         WHERE NOT EXISTS (SELECT 1 FROM txn t WHERE t.txn_id = id)
           AND NOT EXISTS (SELECT 1 FROM write_id w WHERE w.db = in_db AND w.tbl = in_tbl AND w.txn_id = id);
        INSERT INTO write_id (db, tbl, write_id, txn_id)
        SELECT in_db, in_tbl, highest_valid, coalesce(valid_owner, seed_ended_txns(1, 'import', in_source, NULL))
         WHERE highest_valid IS NOT NULL
           AND NOT EXISTS (SELECT 1 FROM write_id w
                            WHERE w.db = in_db AND w.tbl = in_tbl AND w.write_id = highest_valid);
    END IF;
    RETURN 'ok';
END
$$;
