-- Begins and commits that ask for nothing besides, many at once: what apply_steps_v2 does for each alone, with one
-- statement for all begins and one for all commits. A step whose assumption does not hold is left out of what is
-- returned and has changed nothing; apply_steps_v2 then says why. The arrays of begins and those of commits are each in
-- the order of their keys, and no key comes twice: so this and apply_steps_v2 lock in one order and wait for each other,
-- never in a circle. A commit returns its effect, without the outcome, only where it is not of the version that the
-- caller knows.
--
-- Rows are locked first, for an update alone would lock in the order of its plan. They are looked up key by key, by
-- subqueries that no planner turns into joins: a join that was planned while a table was small would read all of it, and
-- go on to when it is large.
--
-- Another transaction that makes one of the effects meanwhile ends this in a unique_violation, with nothing done.
create function apply_plain_v1(
  locked_runs uuid[],
  b_key bytea[], b_tenant integer[], b_run_id uuid[], b_run text[], b_tool text[], b_tool_version integer[],
  b_rule smallint[], b_caller_step text[], b_business_key text[], b_occurrence integer[], b_generation integer[],
  b_identity_digest bytea[], b_arguments_digest bytea[], b_arguments bytea[], b_worker text[], b_slot bytea[],
  b_token uuid[], b_lease bigint[], b_alone boolean[],
  c_key bytea[], c_token uuid[], c_fence bigint[], c_outcome bytea[], c_known bigint[])
returns table (key bytea, stamp bigint, set_step bigint, stands effect_v2)
language plpgsql as $$
#variable_conflict use_column
declare
  moment bigint := (extract(epoch from now()) * 1000000)::bigint;
  barred bytea[] := '{}';
begin
  if cardinality(b_key) > 0 then
    perform from unnest(locked_runs) as o(id),
      lateral (select from runs r where r.id = o.id for no key update) held;

    -- Doubt anywhere is rare: only where there is some does a begin have to look for its own.
    if true = any(b_alone) and (exists (select from effects f where f.state = 4)
        or exists (select from effects f where f.state = 2 and f.lease_expires_at <= moment)) then
      barred := array(
        select o.key from unnest(b_key, b_run_id, b_tool, b_identity_digest, b_alone)
               as o(key, run_id, tool, identity_digest, alone)
         where o.alone and (
           exists (select from effects f
                    where f.state = 4 and f.key between substring(o.key for 6)
                      and substring(o.key for 6) || decode(repeat('ff', 26), 'hex')
                      and f.run_id is not distinct from o.run_id and f.tool = o.tool and f.rule = 1
                      and f.identity_digest <> o.identity_digest and not f.closed)
           or exists (select from effects f
                       where f.state = 2 and f.lease_expires_at <= moment
                         and f.run_id is not distinct from o.run_id and f.tool = o.tool and f.rule = 1
                         and f.identity_digest <> o.identity_digest)));
    end if;

    return query
    with fresh as materialized (
      select o.*, row_number() over (partition by o.run_id order by o.key) as nth
        from unnest(b_key, b_tenant, b_run_id, b_run, b_tool, b_tool_version, b_rule, b_caller_step, b_business_key,
                    b_occurrence, b_generation, b_identity_digest, b_arguments_digest, b_arguments, b_worker, b_slot,
                    b_token, b_lease)
          as o(key, tenant, run_id, run, tool, tool_version, rule, caller_step, business_key, occurrence, generation,
               identity_digest, arguments_digest, arguments, worker, slot, token, lease)
       where o.key <> all(barred) and (select f.version from effects f where f.key = o.key) is null),
    counted as (
      update runs r set effects = r.effects + c.made
        from (select o.run_id, count(*) as made, (select r.ctid from runs r where r.id = o.run_id) as place
                from fresh o where o.run_id is not null group by o.run_id) c
       where r.ctid = c.place and r.state = 1
      returning r.id, r.effects - c.made as was)
    insert into effects as f (
      key, version, tenant, run_id, run, step, tool, tool_version, rule, caller_step, business_key, occurrence,
      generation, identity_digest, arguments_digest, arguments, worker, began_at, state, fence, attempt,
      granted_at, lease_expires_at, report, settled, tries, epoch, epoch_since, closed, slot, earlier)
    select o.key, 1, o.tenant, o.run_id, o.run, c.was + o.nth, o.tool, o.tool_version, o.rule, o.caller_step,
           o.business_key, o.occurrence, o.generation, o.identity_digest, o.arguments_digest, o.arguments, o.worker,
           moment, 2, 1, o.token, moment, moment + o.lease, 0, false, 1, 0, moment, false, o.slot, 0
      from fresh o left join counted c on c.id = o.run_id
     where o.run_id is null or c.id is not null
     order by o.key
    returning f.key, moment, f.step, null::effect_v2;
  end if;

  if cardinality(c_key) > 0 then
    perform from unnest(c_key) as o(key),
      lateral (select from effects f where f.key = o.key and f.state in (2, 4) and f.report = 0 and not f.settled
                  for no key update) held;
    return query
    update effects f
       set state = 3, report = 1, reported_at = moment, ended_at = moment, outcome = o.outcome, closed = false,
           retry_at = null, version = f.version + 1
      from (select u.*, (select f.ctid from effects f where f.key = u.key) as place
              from unnest(c_key, c_token, c_fence, c_outcome, c_known) as u(key, token, fence, outcome, known)) o
     where f.ctid = o.place and f.attempt = o.token and f.fence = o.fence and f.state in (2, 4) and f.report = 0
       and not f.settled
    returning f.key, moment, null::bigint,
      case when o.known is distinct from f.version - 1 then row(
        f.key, f.version, f.tenant, f.run_id, f.run, f.step, f.tool, f.tool_version, f.rule, f.caller_step,
        f.business_key, f.occurrence, f.generation, f.identity_digest, f.arguments_digest, f.arguments, f.worker,
        f.began_at, f.state, f.fence, f.attempt, f.granted_at, f.lease_expires_at, f.report, f.reported_at, f.settled,
        f.tries, f.retry_at, f.epoch, f.epoch_since, f.closed, f.ended_at, null, f.resolution,
        f.slot, f.edited, f.delivered, f.expired_at,
        array(select row(a.token, a.fence, a.granted_at, a.deadline, a.report, a.reported_at, a.settled)::attempt_v1
                from attempts a where f.earlier > 0 and a.key = f.key order by a.fence, a.granted_at desc, a.token)
      )::effect_v2 end;
  end if;
end $$;
