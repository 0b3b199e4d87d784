/** A task as sentences: what was asked, how it ended, when, by whom, and how long it took. */
import { duration, clock } from '../../units.ts';
import { amount, fieldText, plain } from '../../world/text.ts';
import { field, own } from '../../json.ts';
import { t } from '../../words/words.ts';
import { html } from '../parts/html.ts';
import { name, state } from '../parts/marks.ts';
import { titleOf, valueName } from './about.ts';
import type { TaskResource, View } from '../../types.d.ts';

/** A kit that has not accepted a task within this time has probably not received it. */
const unanswered_ms = 12_000;

/** @param asset named where the row stands apart from its asset */
export function taskRow(task: TaskResource, view: View, asset?: string) {
  const { status, created_at, updated_at } = task;
  const isOver = status === 'completed' || status === 'failed';
  const took_ms = Date.parse(updated_at) - Date.parse(created_at);
  const age_ms = view.time_ms - Date.parse(created_at);
  const cancel = () => void view.act.cancelTask(task.id);
  const who = requester(task);
  const title = titleOf({ name: task.command_name });
  return html`<div class=${`task ${status}`}>
    <p class="head"><b>${title}${asset === undefined ? '' : html`, ${name(asset)}`}</b> ${state(status)}</p>
    <p class="reason">${outcomeOf(task, age_ms)}</p>
    <p class="cap">
      <time datetime=${created_at}>${clock(Date.parse(created_at), { isExact: true })}</time
      >${`, ${isOver ? t.task.took(secondsText(took_ms)) : t.task.since(duration(age_ms))}${who === '' ? '' : `, ${t.task.by(who)}`}`}
    </p>
    ${!isOver && html`<button type="button" class="btn small" onClick=${cancel} aria-disabled=${String(!view.isInStep)}>${t.task.cancel}</button>`}
  </div>`;
}

/** The name of the key that asked, where the service gives it. */
function requester(task: TaskResource) {
  const who = field(task, 'requested_by_name');
  return typeof who === 'string' ? plain(who) : '';
}

/** The outcome of a task as one sentence. */
export function outcomeOf({ status, result, progress, payload }: TaskResource, age_ms: number) {
  if (status === 'failed') return html`<bdi>${plain(result['error'] ?? t.task.noReason)}</bdi>`;
  if (status === 'pending' && age_ms > unanswered_ms) return t.task.noAnswer(duration(age_ms));
  if (status === 'pending') return t.task.waiting;
  if (status === 'running' && progress)
    return html`${name(progress.message)}${typeof progress.pct === 'number' ? ` ${amount(progress.pct, ' %')}` : ''}`;
  if (status === 'running') return t.task.running;
  return html`<bdi>${factsOf(result, payload)}</bdi>`;
}

/** What a completed task returned, or else what was asked for: sentences first, then values without one. */
function factsOf(result: TaskResource['result'], payload: TaskResource['payload'] = {}) {
  const said = Object.entries(result).flatMap(([key, value]) => {
    const words = own(t.result, key);
    return words ? [words(fieldText(key, value), value)] : [];
  });
  const values = Object.entries(result)
    .filter(([key]) => !own(t.result, key))
    .map(([key, value]) => `${valueName(key)} ${fieldText(key, value)}.`);
  const asked = Object.entries(payload).map(([key, value]) => `${valueName(key)} ${fieldText(key, value)}.`);
  const facts = [...said, ...values].filter((text) => text !== '');
  return (facts.length > 0 ? facts : asked).join(' ') || t.task.done;
}

function secondsText(ms: number) {
  return ms < 60_000 ? `${(Math.max(0, ms) / 1_000).toFixed(1)} s` : duration(ms);
}
