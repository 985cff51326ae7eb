-- The clock was put back, and shows `now_ms`: of the directories of databases that were dropped later than that, as it was
-- then, nobody can tell any more what came into them after the drop. They go only if no file is left there. It is enough if
-- this is said within minutes.
CREATE OR REPLACE FUNCTION compaction_settle_clock(now_ms bigint) RETURNS void
LANGUAGE sql AS $$
    UPDATE compaction
       SET properties = properties - 'homes' || jsonb_build_object(
               'homes_if_empty', concat_ws(E'\n', properties ->> 'homes', properties ->> 'homes_if_empty'))
     WHERE state = 'r' AND properties ? 'homes'
       AND enqueued_at > to_timestamp(now_ms / 1000.0) - interval '10 minutes';
$$;
