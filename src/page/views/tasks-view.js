/** Tasks: one row each from dispatch to result, with the failure reason unchanged. */
import { duration } from '../world/age.js';
import { html } from './html.js';
import { name, section, state } from './marks.js';
import { amount, fieldText, label, plain } from '../world/text.js';

/** @import { TaskResource, View } from '../types.d.ts' */

/** A kit that has not accepted a task within this time has probably not received it. */
const unanswered_ms = 12_000;
const shown_max = 20;

/** @param {View} view */
export function tasksView(view) {
  const tasks = [...view.world.tasks.values()]
    .sort((a, b) => Date.parse(b.created_at) - Date.parse(a.created_at))
    .slice(0, shown_max);
  const content =
    tasks.length === 0
      ? html`<p>No task yet</p>`
      : html`<ul class="rows">
          ${tasks.map((task) => taskRow(task, view, view.world.assets.get(task.asset_id)?.name ?? 'a removed asset'))}
        </ul>`;
  return section('tasks', 'Tasks', content);
}

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
  return html`<li key=${task.id} class=${`row task ${status}`}>
    <p class="head">
      <b>${label(task.command_name)}${asset === undefined ? '' : html`, ${name(asset)}`}</b> ${state(status)}
    </p>
    <p class="sub">${outcomeOf(task, age_ms)}</p>
    <p class="numbers">
      <time datetime=${created_at}>${clockTime(created_at)}</time>
      <span>${isOver ? `took ${secondsText(took_ms)}` : `since ${duration(age_ms)}`}</span>
      ${!isOver && html`<button type="button" class="small" onClick=${cancel} aria-disabled=${String(!view.isInStep)}>Cancel</button>`}
    </p>
  </li>`;
}

/**
 * @param {TaskResource} task
 * @param {number} age_ms
 */
function outcomeOf({ status, result, progress, payload }, age_ms) {
  if (status === 'failed')
    return html`<bdi class="reason">${plain(result['error'] ?? 'no reason given')}</bdi>`;
  if (status === 'pending' && age_ms > unanswered_ms) return `No answer from the kit for ${duration(age_ms)}`;
  if (status === 'pending') return 'Waiting for the kit';
  if (status === 'running' && progress)
    return html`${name(progress.message)}${progress.pct === null ? '' : ` ${amount(progress.pct, ' %')}`}`;
  if (status === 'running') return 'Running on the kit';
  return html`<bdi>${factsOf(result, payload)}</bdi>`;
}

/**
 * What a completed task returned, or else what was asked for.
 * @param {TaskResource['result']} result
 * @param {TaskResource['payload']} payload
 */
function factsOf(result, payload = {}) {
  const facts = Object.entries(result).map(([key, value]) => `${label(key)}: ${fieldText(key, value)}`);
  const asked = Object.entries(payload).map(([key, value]) => `${label(key)} ${fieldText(key, value)}`);
  return facts.join(', ') || asked.join(', ') || 'Done';
}

/** @param {number} ms */
function secondsText(ms) {
  return ms < 60_000 ? `${(Math.max(0, ms) / 1_000).toFixed(1)} s` : duration(ms);
}

/**
 * Formats hours, minutes and seconds in UTC, as in the logs.
 * @param {string} time
 */
function clockTime(time) {
  return `${time.slice(11, 19)} UTC`;
}
