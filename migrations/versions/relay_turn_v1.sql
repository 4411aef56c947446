-- What the effect of a message says right before it is sent: 1, it stands; 2, nobody knows yet, for its saga is being
-- taken back, or had passed it over before it was done; 3, it was taken back. A later epoch is a person's own effect.
create function relay_verdict_v1(effect bytea) returns smallint language sql stable as $$
  select case when effect is null then 1::smallint else coalesce((
    select case
        when s.state = 2 then 3::smallint
        when s.state = 5 or (s.state = 1 and g.state in (3, 5)) then 2::smallint
        else 1::smallint end
      from saga_steps s join sagas g on g.id = s.saga where s.key = effect), 1::smallint) end
$$;

-- One turn of a relay: what was sent under its lease is settled, then what is due is claimed under it.
--
-- Destinations are locked first, in the order of their ids, where a claim changes them (a rate, a breaker that is not
-- closed); then messages, in that of theirs. A claim waits for no lock. The lock of a lane's first message is that of
-- the lane: only the oldest message that stands in it can be claimed, and others only by whoever claims that one. Where
-- one behind it is under way already, for it has come back to a lane that went on without it, it waits for that one: the
-- 50 right behind it are looked at, or as many as may be claimed with it.
--
-- Answers rows of a kind: 0, the id of a settlement that is no longer under the lease; 1, a claimed message; 2, the last
-- lane of a destination that a walk has looked at, with how many were (as `id`) and how long it took (as `staged_at`); 3, a
-- lane that has nothing at `k_mark` or behind it any more; 4, a lane whose first message a slow walk saw, and that was left.
-- Lanes are compared by their bytes, whatever order of words the database has: the columns say so.
-- Within a lane rows are asked for by ranges in the order of `outbox_lanes`: no other index can seem to serve.
-- Lanes are walked along (a loose index scan), or, without `walk`, looked at where `k_lane` says that they were.
create function relay_turn_v1(
  p_lease uuid, p_length bigint, p_lanes_first boolean,
  s_id bigint[], s_state smallint[], s_delay bigint[], s_note text[], s_receipt text[], s_result smallint[],
  s_counts boolean[], s_blocks boolean[],
  a_destination integer[], a_slots integer[], a_followers integer[], a_repeatable boolean[], a_mark bigint[],
  a_mark_id bigint[], a_lane text[], a_walk boolean[], k_destination integer[], k_lane text[], k_mark bigint[])
returns table (
  kind smallint, id bigint, message uuid, epoch integer, tenant integer, destination integer, name text, lane text,
  type text, recipient text, content_type text, headers bytea, body bytea, run text, staged_at bigint,
  attempts integer, is_first boolean, verdict smallint, due_at bigint)
language plpgsql as $$
#variable_conflict use_column
declare
  v_now bigint;
  v_end bigint;
  v_settled bigint[];
  v_back bigint[];
  v_ask record;
  v_tokens double precision;
  v_left integer;
  v_budget integer;
  v_behind integer;
  v_took integer;
  v_used integer;
  v_low text collate "C";
  v_high text collate "C";
  v_heads bigint[];
  v_seen integer;
  v_visits integer;
  v_last text collate "C";
  v_began timestamptz;
  v_spent bigint;
  v_walk boolean;
  v_gone text[];
begin
  perform from destinations d
    where d.id = any(a_destination) and (d.rate is not null or d.breaker <> 1 or d.allowance is not null)
    order by d.id for no key update;
  v_now := (extract(epoch from clock_timestamp()) * 1000000)::bigint;
  v_end := v_now + p_length;

  if cardinality(s_id) > 0 then
    if s_state && array[1, 4, 5]::smallint[] then
      perform from outbox o where o.id = any(s_id) and o.lease = p_lease order by o.id for no key update;
    end if;
    with gone as (
      delete from outbox o using unnest(s_id, s_state, s_note, s_receipt, s_counts) s(id, over, said, receipt, counts)
        where s.over >= 7 and o.id = s.id and o.lease = p_lease
        returning o.*, s.over, s.said, s.receipt, s.counts),
    kept as (
      insert into outbox_history (
        settled_at, id, message, epoch, tenant, effect, run_id, run, destination_id, destination, lane, type,
        recipient, content_type, headers, body, staged_at, state, attempts, note, receipt)
      select v_now, g.id, g.message, g.epoch, g.tenant, g.effect, g.run_id, g.run, g.destination_id, g.destination,
        g.lane, g.type, g.recipient, g.content_type, g.headers, g.body, g.staged_at, g.over,
        g.attempts + g.counts::integer, g.said, g.receipt
      from gone g returning id)
    select array_agg(k.id) into v_settled from kept k;
    if s_state && array[1, 4, 5]::smallint[] then
      with back as (
        update outbox o set
            state = s.state,
            due_at = case when s.state = 1 then v_now + s.delay else o.due_at end,
            in_lane = o.lane is not null and (s.state = 1 or s.blocks),
            note = coalesce(s.note, o.note),
            attempts = o.attempts + (s.result is not null)::integer,
            lease = null, lease_until = null, repeatable = null
          from unnest(s_id, s_state, s_delay, s_note, s_result, s_blocks) s(id, state, delay, note, result, blocks)
          where s.state < 7 and o.id = s.id and o.lease = p_lease
          returning o.id, o.message, o.epoch, s.result, s.note),
      tried as (
        insert into outbox_tries (message, epoch, number, at, result, detail)
        select b.message, b.epoch,
          1 + coalesce((select max(t.number) from outbox_tries t where t.message = b.message and t.epoch = b.epoch), 0),
          v_now, b.result, coalesce(b.note, '')
        from back b where b.result is not null)
      select array_agg(b.id) into v_back from back b;
    end if;
    if coalesce(cardinality(v_settled), 0) + coalesce(cardinality(v_back), 0) < cardinality(s_id) then
      return query
      select 0::smallint, s.id, null::uuid, null::integer, null::integer, null::integer, null::text, null::text,
        null::text, null::text, null::text, null::bytea, null::bytea, null::text, null::bigint, null::integer,
        null::boolean, null::smallint, null::bigint
      from unnest(s_id) s(id)
      where s.id <> all(coalesce(v_settled, '{}')) and s.id <> all(coalesce(v_back, '{}'));
    end if;
  end if;

  for v_ask in
    select d.*, q.slots, q.followers, q.repeatable, q.mark, q.mark_id, q.lane, q.walk
    from unnest(a_destination, a_slots, a_followers, a_repeatable, a_mark, a_mark_id, a_lane, a_walk)
      q(destination, slots, followers, repeatable, mark, mark_id, lane, walk)
      join destinations d on d.id = q.destination
    where d.state = 1 and coalesce(d.held_until, 0) <= v_now and (d.breaker = 1 or coalesce(d.open_until, 0) <= v_now)
    order by d.id
  loop
    v_left := v_ask.slots;
    v_behind := v_ask.followers;
    v_budget := 5000;
    if v_ask.rate is not null then
      v_tokens := least(
        greatest(1, v_ask.rate),
        v_ask.tokens + v_ask.rate * greatest(0, v_now - v_ask.refilled_at) / 1000000);
      v_budget := least(v_budget, floor(v_tokens)::integer);
    end if;
    if v_ask.allowance is not null then
      select least(v_left, v_ask.allowance - count(*)) into v_left
        from outbox o where o.state in (2, 3) and o.state = 3 and o.destination_id = v_ask.id;
    end if;
    if v_ask.breaker <> 1 then
      v_left := 1;
      v_behind := 0;
    end if;
    v_left := least(v_left, v_budget);
    v_used := 0;

    for v_turn in 1 .. 3 loop
      exit when v_left <= 0 or (v_turn = 3 and (v_walk or v_used > 0));
      v_walk := v_ask.walk or v_turn = 3;  -- where nothing is known to be due, all lanes are looked at
      if v_turn < 3 and p_lanes_first = (v_turn = 2) then
        return query
          with picked as materialized (
            select o.id, case when o.epoch = 1 then o.effect end as effect from outbox o
              where o.destination_id = v_ask.id and o.state = 1 and o.lane is null
                and (o.due_at, o.id) >= (v_ask.mark, v_ask.mark_id) and o.due_at <= v_now
              order by o.due_at, o.id limit v_left for update skip locked),
          judged as materialized (
            select p.id, relay_verdict_v1(p.effect) as verdict from picked p),
          taken as (
            update outbox o set state = case j.verdict when 1 then 3 else 2 end, lease = p_lease, lease_until = v_end,
                repeatable = v_ask.repeatable
              from judged j where o.id = j.id
              returning o.*, j.verdict)
          select 1::smallint, t.id, t.message, t.epoch, t.tenant, t.destination_id, t.destination, t.lane, t.type,
            t.recipient, t.content_type, t.headers, t.body, t.run, t.staged_at, t.attempts, true, t.verdict, t.due_at
          from taken t;
        get diagnostics v_took = row_count;
        v_left := v_left - v_took;
        v_used := v_used + v_took;
      else
        v_seen := 0;
        v_spent := 0;
        v_last := null;
        v_low := v_ask.lane;
        v_high := U&'\+10FFFF';
        loop
          v_began := clock_timestamp();
          if not v_walk then
            select (array_agg(h.id) filter (where h.ready))[1 : v_left], array_agg(k.lane) filter (where h.id is null)
              into v_heads, v_gone
              from unnest(k_destination, k_lane, k_mark) k(destination, lane, mark)
                left join lateral (
                  select o.id, o.state = 1 and o.due_at <= v_now as ready
                    from outbox o
                    where o.destination_id = v_ask.id and o.in_lane
                      and (o.lane, o.id) >= (k.lane, k.mark) and o.lane <= k.lane
                    order by o.lane, o.id limit 1) h on true
              where k.destination = v_ask.id;
            return query
              select 3::smallint, null::bigint, null::uuid, null::integer, null::integer, v_ask.id, null::text, g.lane,
                null::text, null::text, null::text, null::bytea, null::bytea, null::text, null::bigint, null::integer,
                null::boolean, null::smallint, null::bigint
              from unnest(v_gone) g(lane);
          else
          with recursive walk as (
            (select o.lane, o.id, o.state = 1 and o.due_at <= v_now as ready, 1 as n,
                (o.state = 1 and o.due_at <= v_now)::integer as found
              from outbox o
              where o.destination_id = v_ask.id and o.in_lane and o.lane > v_low and o.lane <= v_high
              order by o.lane, o.id limit 1)
            union all
            select h.lane, h.id, h.ready, w.n + 1, w.found + h.ready::integer
              from walk w cross join lateral (
                select o.lane, o.id, o.state = 1 and o.due_at <= v_now as ready
                  from outbox o
                  where o.destination_id = v_ask.id and o.in_lane and o.lane > w.lane and o.lane <= v_high
                  order by o.lane, o.id limit 1) h
              where w.found < v_left and w.n < 2000)
          select array_agg(w.id) filter (where w.ready), max(w.n), max(w.lane)
            into v_heads, v_visits, v_last from walk w;
          v_spent := v_spent + extract(microseconds from clock_timestamp() - v_began)::bigint;
          end if;
          v_seen := v_seen + coalesce(v_visits, 0);
          if v_heads is not null then
            return query
              with heads as materialized (
                select o.id, o.lane, case when o.epoch = 1 then o.effect end as effect from outbox o
                  where o.id = any(v_heads) and o.state = 1 and o.in_lane and o.due_at <= v_now
                  order by o.id for update skip locked),
              behind as materialized (
                select h.lane, f.id, f.number, f.all_ready, f.is_busy
                  from heads h cross join lateral (
                    select g.id, row_number() over (order by g.id) as number,
                        bool_and(g.ready) over (order by g.id) as all_ready, bool_or(g.is_busy) over () as is_busy
                      from (
                        select o.id, o.state = 1 and o.due_at <= v_now as ready, o.state in (2, 3) as is_busy
                          from outbox o
                          where o.destination_id = v_ask.id and o.in_lane
                            and (o.lane, o.id) > (h.lane, h.id) and o.lane <= h.lane
                          order by o.lane, o.id limit greatest(v_behind, 50)) g) f),
              locked as materialized (
                select b.lane, b.number, o.id, case when o.epoch = 1 then o.effect end as effect
                  from (
                    select * from behind where all_ready and not is_busy and number <= v_behind order by number, id
                      limit greatest(0, v_budget - v_used - (select count(*) from heads))) b
                    join outbox o on o.id = b.id and o.state = 1
                  for update of o skip locked),
              chosen as (
                select h.id, h.effect, true as is_first from heads h
                  where h.lane <> all(coalesce((select array_agg(b.lane) from behind b where b.is_busy and b.number = 1), '{}'))
                union all
                select c.id, c.effect, false
                  from (
                    select l.*, row_number() over (partition by l.lane order by l.number) as got from locked l) c
                  where c.got = c.number),
              judged as materialized (
                select c.id, c.is_first, relay_verdict_v1(c.effect) as verdict from chosen c),
              taken as (
                update outbox o set state = case when j.is_first and j.verdict = 1 then 3 else 2 end, lease = p_lease,
                    lease_until = v_end, repeatable = v_ask.repeatable
                  from judged j where o.id = j.id
                  returning o.*, j.is_first, j.verdict)
              select 1::smallint, t.id, t.message, t.epoch, t.tenant, t.destination_id, t.destination, t.lane, t.type,
                t.recipient, t.content_type, t.headers, t.body, t.run, t.staged_at, t.attempts, t.is_first, t.verdict,
                t.due_at
              from taken t;
            get diagnostics v_took = row_count;
            v_used := v_used + v_took;
            v_left := least(v_left - cardinality(v_heads), v_budget - v_used);
            if v_walk and v_spent > 1000 then
              return query
                select 4::smallint, o.id, null::uuid, null::integer, null::integer, v_ask.id, null::text, o.lane,
                  null::text, null::text, null::text, null::bytea, null::bytea, null::text, null::bigint, null::integer,
                  null::boolean, null::smallint, null::bigint
                from outbox o where o.id = any(v_heads) and o.state = 1;
            end if;
          end if;
          exit when not v_walk;
          exit when v_last is not null and (v_left <= 0 or v_seen >= 2000);  -- stopped within the lanes
          v_last := null;
          exit when v_low = '' or v_high = v_ask.lane or v_left <= 0;  -- seen to the end, from the beginning or around
          v_low := '';
          v_high := v_ask.lane;
        end loop;
        if v_walk then
          return query
            select 2::smallint, v_seen::bigint, null::uuid, null::integer, null::integer, v_ask.id, null::text, v_last,
              null::text, null::text, null::text, null::bytea, null::bytea, null::text, v_spent, null::integer,
              null::boolean, null::smallint, null::bigint;
        end if;
      end if;
    end loop;

    if v_used > 0 and v_ask.rate is not null then
      update destinations d set tokens = v_tokens - v_used, refilled_at = greatest(d.refilled_at, v_now)
        where d.id = v_ask.id;
    end if;
    if v_used > 0 and v_ask.breaker <> 1 and exists (
      select from outbox o
        where o.state in (2, 3) and o.state = 3 and o.destination_id = v_ask.id and o.lease = p_lease)
    then
      update destinations d set breaker = 3, open_until = v_end where d.id = v_ask.id;
    end if;
  end loop;
end $$;
