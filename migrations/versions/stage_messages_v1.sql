-- What an effect stages, in the transaction that records it as succeeded. Attached once: whoever brings proof later
-- finds that the effect has staged. `ended_at` is when the lease of the attempt that brings it had ended.

create type staged_v1 as (
  message uuid, destination_id integer, destination text, lane text, type text, recipient text, content_type text,
  headers bytea, body bytea, delay bigint, not_after bigint, parked text, mail_id text, thread text, thread_name text
);

create type staging_v1 as (
  place integer, effect bytea, tenant integer, token uuid, run_id uuid, run text, ended_at bigint, admitted boolean,
  messages staged_v1[]
);

-- Returns how many rows were staged: none where the effect has staged before.
create function stage_messages_v1(s staging_v1, stamp bigint, lease_end bigint, of_run uuid, of_run_name text)
returns integer
language plpgsql as $$
declare
  run_id uuid := coalesce(s.run_id, of_run);
  run_name text := coalesce(s.run, of_run_name);
  ended bigint := coalesce(s.ended_at, lease_end);
  is_fork boolean := false;
begin
  insert into stagings (effect, tenant, token, messages, at)
  values (s.effect, s.tenant, s.token, coalesce((
      select string_agg(uuid_send(m.message), ''::bytea order by m.ordinality)
        from unnest(s.messages) with ordinality m), ''), stamp)
  on conflict do nothing;
  if not found then
    return 0;
  end if;
  if not s.admitted then
    is_fork := exists (select from runs r where r.id = run_id and r.parent_id is not null);
  end if;
  insert into outbox (
    message, epoch, tenant, effect, run_id, run, destination_id, destination, lane, type, recipient, content_type,
    headers, body, staged_at, state, attempts, note, in_lane, due_at)
  select m.message, 1, s.tenant, s.effect, run_id, run_name, m.destination_id, m.destination, m.lane, m.type,
    m.recipient, m.content_type, m.headers, m.body, stamp,
    case when m.parked is not null or is_fork or stamp > ended + m.not_after then 6 else 1 end,
    0,
    case when m.parked is not null then m.parked
         when is_fork then 'it was staged in a fork: redrive it if the world should have it'
         when stamp > ended + m.not_after then 'the proof of its effect came too late: redrive it if it is wanted still'
    end,
    m.lane is not null and not coalesce(m.parked is not null or is_fork or stamp > ended + m.not_after, false),
    stamp + m.delay
  from unnest(s.messages) with ordinality m order by m.ordinality;
  insert into mails (mail_id, tenant, message, epoch, thread, thread_name, run_id, run, destination, recipient, staged_at)
  select m.mail_id, s.tenant, m.message, 1, m.thread, m.thread_name, run_id, run_name, m.destination, m.recipient, stamp
  from unnest(s.messages) m where m.mail_id is not null;
  return cardinality(s.messages);
end $$;
