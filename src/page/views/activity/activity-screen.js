/** Alarms, tasks and changes in one log, newest first; filters, and export as CSV. */
import { plain } from '../../world/text.js';
import { clock, zoneName } from '../../world/units.js';
import { t } from '../../words/words.js';
import { taskRow } from '../command/task-row.js';
import { titleOf } from '../command/about.js';
import { lostBox } from '../overview/overview-view.js';
import { html } from '../parts/html.js';
import { icon, shape } from '../parts/icon.js';
import { name } from '../parts/marks.js';
import { saveCsv } from './csv.js';
import { groupHolds } from './holds.js';

/** @import { Entry } from '../../world/log.js' */
/** @import { TaskResource, View } from '../../types.d.ts' */

/** @typedef {{ readonly time_ms: number, readonly task: TaskResource, readonly times: number, readonly entry?: undefined } | { readonly time_ms: number, readonly entry: Entry, readonly task?: undefined }} Row */

const filters = /** @type {const} */ (['all', 'alarm', 'task', 'seen']);
const shown_max = 200;

/** @param {View} view */
export function activityScreen(view) {
  const rows = rowsOf(view);
  const save = () => saveCsv(csvRows(rows, view), t.activity.file);
  const saveButton = html`<button
    type="button"
    class="btn small"
    aria-disabled=${String(rows.length === 0)}
    onClick=${save}
  >
    ${icon('download', 's')}${t.activity.save}
  </button>`;
  return {
    heading: {
      title: t.nav.activity,
      isKit: true,
      tools: html`<span class="age">${t.zone(zoneName())}</span>`,
    },
    body: html`<div class="page">
      ${lostBox(view)}
      <h1 class="hero only-phone">${t.nav.activity}</h1>
      <div class="head wrap">
        <div class="chips" role="group" aria-label=${t.activity.filter}>
          ${filters.map((key) => filterChip(key, view))}
        </div>
        ${saveButton}
      </div>
      <section class="card" id="log" aria-label=${t.nav.activity}>
        ${
          rows.length === 0
            ? html`<p class="empty">${t.activity.none}</p>`
            : html`<ul class="rows">
                ${rows.slice(0, shown_max).map((row) => rowView(row, view))}
              </ul>`
        }
      </section>
      <p class="cap">${t.activity.kept}</p>
    </div>`,
  };
}

/**
 * @param {typeof filters[number]} key
 * @param {View} view
 */
function filterChip(key, { choices, act }) {
  const choose = () => {
    choices.log_filter = key;
    act.changed();
  };
  return html`<button
    type="button"
    key=${key}
    class="chip"
    aria-pressed=${String(choices.log_filter === key)}
    onClick=${choose}
  >
    ${t.activity.kind[key]}
  </button>`;
}

/**
 * @param {View} view
 * @returns {readonly Row[]}
 */
function rowsOf({ world, log, choices }) {
  const wanted = choices.log_filter;
  const tasks = wanted === 'all' || wanted === 'task' ? groupHolds([...world.tasks.values()]) : [];
  const entries = log.entries.filter(({ kind }) => wanted === 'all' || kind === wanted);
  /** @type {Row[]} */
  const rows = [
    ...tasks.map(({ task, times }) => ({ time_ms: Date.parse(task.created_at), task, times })),
    ...entries.map((entry) => ({ time_ms: entry.since_ms, entry })),
  ];
  return rows.sort((a, b) => b.time_ms - a.time_ms);
}

/**
 * @param {Row} row
 * @param {View} view
 */
function rowView(row, view) {
  if (row.task) {
    const asset = view.world.assets.get(row.task.asset_id)?.name ?? t.task.removedAsset;
    return html`<li key=${row.task.id} class="row">
      ${taskRow(row.task, view, asset)}${row.times > 1 ? html`<p class="cap">${t.activity.times(row.times)}</p>` : ''}
    </li>`;
  }
  const { key, level, title, since_ms, until_ms, href } = row.entry;
  const lasted =
    until_ms === null ? (level === 'info' ? '' : t.activity.lasts) : t.lasted(until_ms - since_ms);
  return html`<li key=${`${key} ${since_ms}`}>
    <a class="event" href=${href}
      ><time datetime=${new Date(since_ms).toISOString()}>${clock(since_ms, { isExact: true })}</time
      ><span class=${level === 'bad' ? 'state bad' : level === 'warn' ? 'state warn' : 'state'}
        >${shape(level === 'info' ? 'ring' : 'warn')}</span
      ><span>${name(title)}</span><span class="cap">${lasted}</span></a
    >
  </li>`;
}

/**
 * @param {readonly Row[]} rows
 * @param {View} view
 * @returns {readonly (readonly string[])[]}
 */
function csvRows(rows, view) {
  return [
    ['time', 'kind', 'subject', 'what', 'state', 'until', 'detail'],
    ...rows.map(({ time_ms, task, entry }) => {
      const time = new Date(time_ms).toISOString();
      if (entry)
        return [
          time,
          entry.kind,
          '',
          entry.title,
          entry.level,
          entry.until_ms === null ? '' : new Date(entry.until_ms).toISOString(),
          '',
        ];
      const text =
        task.status === 'failed'
          ? plain(task.result['error'] ?? '')
          : JSON.stringify(task.status === 'completed' ? task.result : task.payload);
      return [
        time,
        'task',
        view.world.assets.get(task.asset_id)?.name ?? task.asset_id,
        titleOf({ name: task.command_name }),
        task.status,
        task.updated_at,
        text,
      ];
    }),
  ];
}
