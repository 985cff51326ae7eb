-- Renews a lease for its holder, who knows its `known_epoch`, or gives it to whoever asks when it was released or has
-- expired, under the next epoch. Returns the epoch under which the caller holds it now, null if it does not, and the
-- holder. One that ends at `left_ms` is free, too: it was renewed before the clock was put back, and never since then.
--
-- A renewal does not wait for services at work, which keep the row's key from changing (check_lease); a take-over waits
-- for them, so that none of an earlier epoch is at work afterwards. A late renewal is fine if nobody was faster. Safe to
-- repeat: who took the lease and lost the answer is given the same one.
CREATE OR REPLACE FUNCTION hold_lease(
    lease_name text, asking text, known_epoch bigint, length_ms bigint, left_ms bigint DEFAULT NULL
)
RETURNS TABLE (held_epoch bigint, held_by text)
LANGUAGE plpgsql AS $$
DECLARE
    duration interval := make_interval(secs => length_ms / 1000.0);
BEGIN
    UPDATE lease l SET expires_at = clock_timestamp() + duration
     WHERE l.name = lease_name AND l.holder = asking AND (l.epoch = known_epoch OR l.expires_at > clock_timestamp())
    RETURNING l.epoch, l.holder INTO held_epoch, held_by;
    IF NOT FOUND THEN
        INSERT INTO lease AS l (name, holder, epoch, expires_at)
        VALUES (lease_name, asking, 1, clock_timestamp() + duration)
        ON CONFLICT (name) DO NOTHING
        RETURNING l.epoch, l.holder INTO held_epoch, held_by;
    END IF;
    IF NOT FOUND THEN
        PERFORM 1 FROM lease l
         WHERE l.name = lease_name
           AND (l.holder = '' OR l.expires_at <= clock_timestamp()
                OR (extract(epoch FROM l.expires_at) * 1000)::bigint = left_ms) FOR UPDATE;
        IF FOUND THEN
            UPDATE lease l SET holder = asking, epoch = l.epoch + 1, expires_at = clock_timestamp() + duration
             WHERE l.name = lease_name
            RETURNING l.epoch, l.holder INTO held_epoch, held_by;
        ELSE
            SELECT NULL, l.holder INTO held_epoch, held_by FROM lease l WHERE l.name = lease_name;
        END IF;
    END IF;
    RETURN NEXT;
END
$$;
