-- As apply_steps_v1, with what an effect has besides since: its slot, edited arguments, whether its outcome is known to
-- the caller, when its record expired. What grants a lease may demand that no other effect of its tool is in doubt in
-- its run with other arguments, that a hold is held still, and that persons have said nothing else since. The types of
-- attempts and evidence are those of before.

create type effect_v2 as (
  key bytea, version bigint, tenant integer, run_id uuid, run text, step bigint, tool text, tool_version integer,
  rule smallint, caller_step text, business_key text, occurrence integer, generation integer, identity_digest bytea,
  arguments_digest bytea, arguments bytea, worker text, began_at bigint,
  state smallint, fence bigint, attempt uuid, granted_at bigint, lease_expires_at bigint, report smallint,
  reported_at bigint, settled boolean, tries integer, retry_at bigint, epoch integer, epoch_since bigint,
  closed boolean, ended_at bigint, outcome bytea, resolution text,
  slot bytea, edited bytea, delivered boolean, expired_at bigint,
  earlier attempt_v1[]
);

-- verb: 1 insert, 2 finish, 3 replace, 4 look.
create type step_v2 as (
  place integer, verb smallint, key bytea, token uuid, fence bigint, lease bigint, outcome bytea, seen bigint,
  open_run uuid, effect effect_v2, evidence evidence_v1[], alone boolean, hold uuid,
  edits integer, approval uuid
);

-- The effect as it stands with its earlier attempts, in one statement and so of one moment.
create function read_effect_v2(wanted bytea) returns effect_v2
language sql as $$
  select f.key, f.version, f.tenant, f.run_id, f.run, f.step, f.tool, f.tool_version, f.rule, f.caller_step,
    f.business_key, f.occurrence, f.generation, f.identity_digest, f.arguments_digest, f.arguments, f.worker,
    f.began_at, f.state, f.fence, f.attempt, f.granted_at, f.lease_expires_at, f.report, f.reported_at, f.settled,
    f.tries, f.retry_at, f.epoch, f.epoch_since, f.closed, f.ended_at, f.outcome, f.resolution,
    f.slot, f.edited, f.delivered, f.expired_at,
    array(select row(a.token, a.fence, a.granted_at, a.deadline, a.report, a.reported_at, a.settled)::attempt_v1
            from attempts a where a.key = f.key order by a.fence, a.granted_at desc, a.token)
  from effects f where f.key = wanted
$$;

-- answer: 1 written, 2 found, 3 run closed, 4 sibling in doubt, 5 hold gone, 6 overruled by a person. An insert or
-- replace that was written returns only what the store set. A finish returns what the caller does not have of its
-- effect, in columns of its own: a row type within the row costs three times as much to write and to read. Only one with earlier attempts returns `stands`, without the outcome.
create function apply_steps_v2(locked_runs uuid[], creating integer[], locked_holds uuid[], steps step_v2[])
returns table (place integer, answer smallint, stamp bigint, set_version bigint, set_step bigint, set_began_at bigint,
               f_version bigint, f_tenant integer, f_run_id uuid, f_run text, f_step bigint, f_tool text,
               f_tool_version integer, f_rule smallint, f_caller_step text, f_business_key text, f_occurrence integer,
               f_generation integer, f_identity_digest bytea, f_arguments_digest bytea, f_arguments bytea,
               f_worker text, f_began_at bigint, f_granted_at bigint, f_deadline bigint, f_tries integer,
               f_epoch integer, f_epoch_since bigint, f_resolution text, f_slot bytea, f_edited bytea,
               stands effect_v2)
language plpgsql as $$
#variable_conflict use_column
declare
  s step_v2;
  e effect_v2;
  w evidence_v1;
  i integer;
  run_state smallint;
  run_effects bigint;
  is_open boolean[] := '{}';
  counted bigint[] := '{}';
  was bigint[];
  has_doubt boolean := false;
  sibling bytea;
  runs_open boolean;
  earlier_count integer;
  has_people boolean;
  is_overruled boolean;
begin
  stamp := (extract(epoch from now()) * 1000000)::bigint;

  -- An open run is locked by counting at once what may be created in it; the end corrects the few that were not.
  for i in 1 .. cardinality(locked_runs) loop
    run_state := 1;
    run_effects := null;
    if creating[i] > 0 then
      update runs r set effects = r.effects + creating[i] where r.id = locked_runs[i] and r.state = 1
      returning r.effects - creating[i] into run_effects;
    end if;
    if run_effects is null then
      creating[i] := 0;
      run_state := null;
      select r.state, r.effects into run_state, run_effects from runs r where r.id = locked_runs[i] for no key update;
    end if;
    is_open[i] := coalesce(run_state = 1, false);
    counted[i] := run_effects;
  end loop;
  was := counted;

  -- In the order in which whoever places a hold locks others: no two wait for each other.
  if cardinality(locked_holds) > 0 then
    perform from holds h where h.id = any(locked_holds) and h.state = 1 order by h.id for share;
  end if;

  -- Doubt anywhere is rare: one look says that no step has to look for its own.
  select coalesce(bool_or(o.alone), false), coalesce(bool_or(o.edits is not null or o.approval is not null), false)
    into has_doubt, has_people from unnest(steps) o;
  if has_doubt then
    has_doubt := exists (select from effects f where f.state = 4)
      or exists (select from effects f where f.state = 2 and f.lease_expires_at <= stamp);
  end if;

  -- Whoever decides holds the lock of the key as well, so that one of the two sees what the other has written.
  if has_people then
    perform pg_advisory_xact_lock(k.id) from (
      select distinct hashtextextended(encode(o.key, 'hex'), 0) as id from unnest(steps) o
       where o.edits is not null or o.approval is not null order by 1) k;
  end if;

  foreach s in array steps loop
    place := s.place;
    stands := null;
    set_version := null;
    set_step := null;
    set_began_at := null;
    answer := 2;
    if s.verb <> 2 and f_version is not null then
      select null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null,
             null, null, null, null, null, null, null
        into f_version, f_tenant, f_run_id, f_run, f_step, f_tool, f_tool_version, f_rule, f_caller_step,
             f_business_key, f_occurrence, f_generation, f_identity_digest, f_arguments_digest, f_arguments, f_worker,
             f_began_at, f_granted_at, f_deadline, f_tries, f_epoch, f_epoch_since, f_resolution, f_slot, f_edited;
    end if;
    if s.verb in (1, 3) then
      e := s.effect;
    end if;
    -- "is not distinct from" keeps the planner from the index of runs: a run is longer than the list of what is in doubt.
    sibling := null;
    if s.verb in (1, 3) and s.alone and has_doubt then
      select o.key into sibling from (
        (select f.key from effects f
          where f.state = 4 and f.key between substring(e.key for 6)
            and substring(e.key for 6) || decode(repeat('ff', 26), 'hex')
            and f.run_id is not distinct from e.run_id and f.tool = e.tool and f.rule = 1
            and f.identity_digest <> e.identity_digest and not f.closed limit 1)
        union all
        (select f.key from effects f
          where f.state = 2 and f.lease_expires_at <= stamp
            and f.run_id is not distinct from e.run_id and f.tool = e.tool and f.rule = 1
            and f.identity_digest <> e.identity_digest limit 1)) o limit 1;
    end if;

    is_overruled := false;
    if s.edits is not null then
      is_overruled := (select count(*) from approvals p where p.edited_key = s.key and p.state = 2) > s.edits;
    end if;
    if s.approval is not null and not is_overruled then
      is_overruled := not exists (select from approvals p where p.id = s.approval and p.state = 2);
    end if;

    if s.verb = 1 or (s.verb = 3 and s.seen = 0) then
      i := array_position(locked_runs, e.run_id);
      runs_open := e.run_id is null or is_open[i] or (s.verb = 3 and s.open_run is null and counted[i] is not null);
      if runs_open and s.hold is not null then
        perform from holds h where h.id = s.hold and h.state = 1 for share;
        if not found then
          answer := 5;
        end if;
      end if;
      if answer = 5 then
        null;
      elsif runs_open and sibling is not null and not exists (select from effects f where f.key = e.key) then
        answer := 4;
        stands := read_effect_v2(sibling);
      elsif runs_open and is_overruled then
        answer := 6;
      elsif runs_open then
        set_step := counted[i] + 1;
        if s.verb = 1 then
          insert into effects (
            key, version, tenant, run_id, run, step, tool, tool_version, rule, caller_step, business_key, occurrence,
            generation, identity_digest, arguments_digest, arguments, worker, began_at, state, fence, attempt,
            granted_at, lease_expires_at, report, settled, tries, epoch, epoch_since, closed, slot, earlier)
          values (
            e.key, 1, e.tenant, e.run_id, e.run, set_step, e.tool, e.tool_version, e.rule, e.caller_step,
            e.business_key, e.occurrence, e.generation, e.identity_digest, e.arguments_digest, e.arguments, e.worker,
            stamp, 2, 1, s.token, stamp, stamp + s.lease, 0, false, 1, 0, stamp, false, e.slot, 0)
          on conflict do nothing;
        else
          insert into effects (
            key, version, tenant, run_id, run, step, tool, tool_version, rule, caller_step, business_key, occurrence,
            generation, identity_digest, arguments_digest, arguments, worker, began_at, state, fence, attempt,
            granted_at, lease_expires_at, report, reported_at, settled, tries, retry_at, epoch, epoch_since, closed,
            ended_at, outcome, resolution, slot, edited, delivered, expired_at, earlier)
          values (
            e.key, 1, e.tenant, e.run_id, e.run, set_step, e.tool, e.tool_version, e.rule, e.caller_step,
            e.business_key, e.occurrence, e.generation, e.identity_digest, e.arguments_digest, e.arguments, e.worker,
            stamp, e.state, e.fence, e.attempt, e.granted_at, e.lease_expires_at, e.report, e.reported_at, e.settled,
            e.tries, e.retry_at, e.epoch, e.epoch_since, e.closed, e.ended_at, e.outcome, e.resolution,
            e.slot, e.edited, e.delivered, e.expired_at, cardinality(e.earlier))
          on conflict do nothing;
        end if;
        if found then
          answer := 1;
          set_version := 1;
          set_began_at := stamp;
          if i is not null then
            counted[i] := set_step;
          end if;
        end if;
      else
        answer := 3;
      end if;

    elsif s.verb = 2 then
      update effects f
         set state = 3, report = 1, reported_at = stamp, ended_at = stamp, outcome = s.outcome, closed = false,
             retry_at = null, version = f.version + 1
       where f.key = s.key and f.attempt = s.token and f.fence = s.fence and f.state in (2, 4) and f.report = 0
         and not f.settled
      returning f.version, f.tenant, f.run_id, f.run, f.step, f.tool, f.tool_version, f.rule, f.caller_step,
        f.business_key, f.occurrence, f.generation, f.identity_digest, f.arguments_digest, f.arguments, f.worker,
        f.began_at, f.granted_at, f.lease_expires_at, f.tries, f.epoch, f.epoch_since, f.resolution,
        f.slot, f.edited, f.earlier
      into f_version, f_tenant, f_run_id, f_run, f_step, f_tool, f_tool_version, f_rule, f_caller_step,
        f_business_key, f_occurrence, f_generation, f_identity_digest, f_arguments_digest, f_arguments, f_worker,
        f_began_at, f_granted_at, f_deadline, f_tries, f_epoch, f_epoch_since, f_resolution,
        f_slot, f_edited, earlier_count;
      if found then
        answer := 1;
        if earlier_count > 0 then
          stands := read_effect_v2(s.key);
          stands.outcome := null;
        end if;
      end if;

    elsif s.verb = 3 then
      if s.open_run is not null and not coalesce(is_open[array_position(locked_runs, s.open_run)], false) then
        answer := 3;
      elsif s.hold is not null and not exists (select from holds h where h.id = s.hold and h.state = 1 for share) then
        answer := 5;
      elsif sibling is not null and exists (select from effects f where f.key = e.key and f.version = s.seen) then
        answer := 4;
        stands := read_effect_v2(sibling);
      elsif is_overruled then
        answer := 6;
      else
        update effects f
           set version = f.version + 1, tool_version = e.tool_version, identity_digest = e.identity_digest,
               arguments_digest = e.arguments_digest,
               arguments = e.arguments, worker = e.worker, state = e.state, fence = e.fence, attempt = e.attempt,
               granted_at = e.granted_at, lease_expires_at = e.lease_expires_at, report = e.report,
               reported_at = e.reported_at, settled = e.settled, tries = e.tries, retry_at = e.retry_at,
               epoch = e.epoch, epoch_since = e.epoch_since, closed = e.closed, ended_at = e.ended_at,
               outcome = e.outcome, resolution = e.resolution, edited = e.edited, delivered = e.delivered,
               expired_at = e.expired_at, earlier = cardinality(e.earlier)
         where f.key = e.key and f.version = s.seen
        returning f.version, f.step, f.began_at into set_version, set_step, set_began_at;
        if found then
          answer := 1;
        end if;
      end if;
    end if;

    if answer = 1 and s.verb = 3 then
      delete from attempts a where a.key = e.key and not exists (select from unnest(e.earlier) o where o.token = a.token);
      for i in 1 .. cardinality(e.earlier) loop
        insert into attempts (key, token, fence, granted_at, deadline, report, reported_at, settled)
        values (e.key, e.earlier[i].token, e.earlier[i].fence, e.earlier[i].granted_at, e.earlier[i].deadline,
                e.earlier[i].report, e.earlier[i].reported_at, e.earlier[i].settled)
        on conflict (key, token) do update
           set fence = excluded.fence, granted_at = excluded.granted_at, deadline = excluded.deadline,
               report = excluded.report, reported_at = excluded.reported_at, settled = excluded.settled;
      end loop;
      foreach w in array s.evidence loop
        insert into evidence (key, number, at, token, kind, body)
        select e.key, 1 + n.last, w.at, w.token, w.kind, w.body
          from (select coalesce(max(v.number), 0) as last from evidence v where v.key = e.key) n
         where n.last < 100;
      end loop;
    end if;

    if answer not in (1, 4) then
      select f.key, f.version, f.tenant, f.run_id, f.run, f.step, f.tool, f.tool_version, f.rule, f.caller_step,
        f.business_key, f.occurrence, f.generation, f.identity_digest, f.arguments_digest, f.arguments, f.worker,
        f.began_at, f.state, f.fence, f.attempt, f.granted_at, f.lease_expires_at, f.report, f.reported_at, f.settled,
        f.tries, f.retry_at, f.epoch, f.epoch_since, f.closed, f.ended_at, f.outcome, f.resolution,
        f.slot, f.edited, f.delivered, f.expired_at,
        case when f.earlier > 0 then '{}'::attempt_v1[] end
      into stands from effects f where f.key = s.key;
      if stands.earlier is not null then
        stands := read_effect_v2(s.key);
      end if;
      -- A closed run still shows what is there, unless a closed run is all that stood in the way.
      if answer = 3 and (s.verb = 1 or stands.version <> s.seen) and stands.key is not null then
        answer := 2;
      end if;
      if answer in (5, 6) and stands.key is not null and (s.verb = 1 or stands.version <> s.seen) then
        answer := 2;
      end if;
    end if;
    return next;
  end loop;

  for i in 1 .. cardinality(locked_runs) loop
    if counted[i] <> was[i] + creating[i] then
      update runs r set effects = counted[i] where r.id = locked_runs[i];
    end if;
  end loop;
end $$;
