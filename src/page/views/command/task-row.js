/** A task as sentences: what was asked, how it ended, when, by whom, and how long it took. */
import { duration } from '../../world/age.js';
import { amount, fieldText, plain } from '../../world/text.js';
import { clock } from '../../world/units.js';
import { field } from '../../world/json.js';
import { t } from '../../words/words.js';
import { html } from '../parts/html.js';
import { name, state } from '../parts/marks.js';
import { titleOf, valueName } from './about.js';

/** @import { TaskResource, View } from '../../types.d.ts' */

/** A kit that has not accepted a task within this time has probably not received it. */
const unanswered_ms = 12_000;

/**
 * @param {TaskResource} task
 * @param {View} view
 * @param {string} [asset] named where the row stands apart from its asset
 */
export function taskRow(task, view, asset) {
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

/**
 * The name of the key that asked, where the service gives it.
 * @param {TaskResource} task
 */
function requester(task) {
  const who = field(task, 'requested_by_name');
  return typeof who === 'string' ? plain(who) : '';
}

/**
 * The outcome of a task as one sentence.
 * @param {TaskResource} task
 * @param {number} age_ms
 */
export function outcomeOf({ status, result, progress, payload }, age_ms) {
  if (status === 'failed') return html`<bdi>${plain(result['error'] ?? t.task.noReason)}</bdi>`;
  if (status === 'pending' && age_ms > unanswered_ms) return t.task.noAnswer(duration(age_ms));
  if (status === 'pending') return t.task.waiting;
  if (status === 'running' && progress)
    return html`${name(progress.message)}${typeof progress.pct === 'number' ? ` ${amount(progress.pct, ' %')}` : ''}`;
  if (status === 'running') return t.task.running;
  return html`<bdi>${factsOf(result, payload)}</bdi>`;
}

/**
 * What a completed task returned, or else what was asked for.
 * @param {TaskResource['result']} result
 * @param {TaskResource['payload']} payload
 */
function factsOf(result, payload = {}) {
  const facts = Object.entries(result).map(([key, value]) => `${valueName(key)}: ${fieldText(key, value)}`);
  const asked = Object.entries(payload).map(([key, value]) => `${valueName(key)} ${fieldText(key, value)}`);
  return facts.join(', ') || asked.join(', ') || t.task.done;
}

/** @param {number} ms */
function secondsText(ms) {
  return ms < 60_000 ? `${(Math.max(0, ms) / 1_000).toFixed(1)} s` : duration(ms);
}
