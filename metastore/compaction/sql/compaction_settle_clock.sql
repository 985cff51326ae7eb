-- The clock was put back, and shows `now_ms`. Of the directories of databases that were dropped later than that, as it was
-- then, nobody can tell any more what came into them after the drop: they go only if no file is left there. What happened
-- later than now, or is to be tried again then, counts as of now: retentions, pauses and turns would last for as long as the
-- clock was put back. It is enough if this is said within minutes.
CREATE OR REPLACE FUNCTION compaction_settle_clock(now_ms bigint) RETURNS void
LANGUAGE sql AS $$
    UPDATE compaction
       SET properties = properties - 'homes' || jsonb_build_object(
               'homes_if_empty', concat_ws(E'\n', properties ->> 'homes', properties ->> 'homes_if_empty'))
     WHERE state = 'r' AND properties ? 'homes'
       AND enqueued_at > to_timestamp(now_ms / 1000.0) - interval '10 minutes';
    -- In ascending order, like everywhere: nobody can deadlock. What is null stays so.
    UPDATE compaction c
       SET enqueued_at = least(c.enqueued_at, k.instant),
           started_at = c.started_at - greatest(c.started_at - k.instant, '0'),
           committed_at = c.committed_at - greatest(c.committed_at - k.instant, '0'),
           ended_at = c.ended_at - greatest(c.ended_at - k.instant, '0'),
           clean_after = c.clean_after - greatest(c.clean_after - k.instant, '0')
      FROM (SELECT r.id, to_timestamp(now_ms / 1000.0) AS instant FROM compaction r
             WHERE greatest(r.enqueued_at, r.started_at, r.committed_at, r.ended_at, r.clean_after)
                   > to_timestamp(now_ms / 1000.0)
             ORDER BY r.id FOR NO KEY UPDATE) AS k
     WHERE c.id = k.id;
$$;
