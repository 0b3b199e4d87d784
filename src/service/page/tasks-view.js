/** Tasks: one row from dispatch to result, with the reason of a failure word for word. */
import { duration } from './age.js';
import { html } from './html.js';
import { name, section, state } from './marks.js';
import { amount, fieldText, label, plain } from './text.js';

/** @import { TaskResource, View } from './types.d.ts' */

/** A kit that has not taken a task for so long has probably not heard of it. */
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
          ${tasks.map((task) => taskRow(task, view, view.world.assets.get(task.asset_id)?.name ?? 'an asset that is gone'))}
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
    <p class="sub">${saidOf(task, age_ms)}</p>
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
function saidOf({ status, result, progress, payload }, age_ms) {
  if (status === 'failed')
    return html`<bdi class="reason">${plain(result['error'] ?? 'no reason was given')}</bdi>`;
  if (status === 'pending' && age_ms > unanswered_ms) return `No answer from the kit for ${duration(age_ms)}`;
  if (status === 'pending') return 'On its way to the kit';
  if (status === 'running' && progress)
    return html`${name(progress.message)}${progress.pct === null ? '' : ` ${amount(progress.pct, ' %')}`}`;
  if (status === 'running') return 'The kit is at it';
  const facts = Object.entries(result).map(([key, value]) => `${label(key)}: ${fieldText(key, value)}`);
  return html`<bdi
    >${
      facts.join(', ') ||
      Object.entries(payload)
        .map(([key, value]) => `${label(key)} ${fieldText(key, value)}`)
        .join(', ') ||
      'Done'
    }</bdi
  >`;
}

/** @param {number} ms */
function secondsText(ms) {
  return ms < 60_000 ? `${(Math.max(0, ms) / 1_000).toFixed(1)} s` : duration(ms);
}

/**
 * Hours, minutes and seconds of UTC, as logs and integrators see them.
 * @param {string} time
 */
function clockTime(time) {
  return `${time.slice(11, 19)} UTC`;
}
