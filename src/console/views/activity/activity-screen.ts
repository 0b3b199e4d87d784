/** Alarms, tasks and changes of a kit, or of all of them, in one log, newest first; filters, and export as CSV. */
import { tasksOf } from '../../world/history/events.ts';
import type { Event, Entry, KitFile, TaskResource, View } from '../../types.d.ts';
import { addressOf } from '../../world/route.ts';
import { plain } from '../../world/text.ts';
import { clock, zoneName } from '../../units.ts';
import { t } from '../../words/words.ts';
import { taskRow } from '../command/task-row.ts';
import { titleOf } from '../command/about.ts';
import { lostBox, name, chip } from '../parts/marks.ts';
import { html } from '../parts/html.ts';
import { icon, shape } from '../parts/icon.ts';
import { rangeChips } from '../history/range.ts';
import {
  allEvents,
  eventText,
  isFleet,
  filters,
  isShown,
  levelOf,
  loadOlder,
  pastOf,
  type Past,
} from './past.ts';
import { thumbnail } from '../files/files-view.ts';
import { eventKey, listOf, picturesByEvent } from '../../world/files.ts';

interface Note {
  readonly key: string;
  readonly kind: string;
  readonly level: 'bad' | 'warn' | 'info';
  /** Empty: the one that is shown. */
  readonly kit: string;
  readonly title: string;
  readonly since_ms: number;
  readonly until_ms: number | null;
  readonly isOpen: boolean;
  readonly href: string;
  readonly picture?: KitFile | undefined;
}
type Row =
  | {
      readonly time_ms: number;
      readonly task: TaskResource;
      readonly times: number;
      readonly note?: undefined;
    }
  | { readonly time_ms: number; readonly note: Note; readonly task?: undefined };

const shown_max = 200;

export function activityScreen(view: View) {
  const isOfAll = isFleet(view);
  const past = view.history.state(view) === 'on' ? pastOf(view) : undefined;
  const rows = rowsOf(view, past?.events);
  return {
    heading: {
      title: isOfAll ? t.nav.log : t.nav.activity,
      isKit: !isOfAll,
      tools: html`<span class="age">${t.zone(zoneName())}</span>`,
    },
    body: html`<div class="page">
      ${lostBox(view)} ${!isOfAll && html`<h1 class="hero only-phone">${t.nav.activity}</h1>`}
      <div class="head wrap">
        <div class="chips one-line" role="group" aria-label=${t.activity.filter}>
          ${filters.map((key) => filterChip(key, view))}
        </div>
        <div class="log-tools">
          ${past && !isOfAll && assetFilter(view)} ${saveButton(view, { rows, hasPast: past !== undefined })}
        </div>
      </div>
      ${rowsView(past ? rows : rows.slice(0, shown_max), past, view)}
      ${
        past || isOfAll
          ? ''
          : html`<p class="cap">${t.activity.kept}</p>
              ${rangeChips(view)}`
      }
    </div>`,
  };
}

function rowsView(shown: readonly Row[], past: Past | undefined, view: View) {
  return html`<section class="card" id="log" aria-label=${t.nav.activity}>
    ${
      shown.length === 0
        ? html`<p class="empty">${past?.isLoading ? t.history.loading : t.activity.none}</p>`
        : html`<ul class="rows">
            ${shown.map((row, i) => html`${dayOf(row, shown[i - 1])}${rowView(row, view)}`)}
          </ul>`
    }
    ${past && olderPart(view, past)}
  </section>`;
}

function olderPart(view: View, past: Past) {
  const more = () => void loadOlder(view, past);
  return html`${past.fault !== '' && html`<p class="fault pad" role="status">${t.history.fault(plain(past.fault))}</p>`}
  ${
    past.next !== null &&
    html`<button type="button" class="btn plain more" aria-disabled=${String(past.isLoading)} onClick=${more}>
      ${past.isLoading ? t.history.loading : t.history.older}
    </button>`
  }`;
}

function assetFilter({ choices, world, act }: View) {
  const choose = ({ currentTarget }: Event & { currentTarget: HTMLSelectElement }) =>
    act.choose({ log_asset: currentTarget.value });
  return html`<select
    class="asset-filter"
    aria-label=${t.history.asset}
    value=${choices.log_asset}
    onChange=${choose}
  >
    <option value="">${t.history.anyAsset}</option>
    ${[...world.assets.values()].map(({ id, name: text }) => html`<option key=${id} value=${id}>${plain(text)}</option>`)}
  </select>`;
}

/** Saves what is shown; with history, all that the filter finds there. */
function saveButton(
  view: View,
  { rows, hasPast }: { readonly rows: readonly Row[]; readonly hasPast: boolean },
) {
  const { act } = view;
  const save = async () => {
    try {
      const all = hasPast ? rowsOf(view, await allEvents(view)) : rows;
      saveCsv(csvRows(all, view), t.activity.file);
      act.note(t.activity.saved(all.length));
    } catch (error) {
      act.note(t.history.fault(error instanceof Error ? error.message : t.trouble.noAnswer));
    }
  };
  return html`<button
    type="button"
    class="btn small"
    aria-disabled=${String(rows.length === 0)}
    onClick=${() => (rows.length === 0 ? undefined : void save())}
  >
    ${icon('download', 's')}${t.activity.save}
  </button>`;
}

function filterChip(key: (typeof filters)[number], { choices, act }: View) {
  return chip(key, t.activity.kind[key], {
    isOn: choices.log_filter === key,
    choose: () => act.choose({ log_filter: key }),
  });
}

/** Conditions that the history holds as events. */
const kept_keys = /^(?:kit$|link |asset )/u;

/** @param past newest first; undefined: there is no history, so what this page saw */
function rowsOf(view: View, past: readonly Event[] | undefined): readonly Row[] {
  const { world, log, choices } = view;
  const { log_filter: wanted, log_asset } = choices;
  const isOfAsset = (id: string) => !past || log_asset === '' || id === log_asset || isFleet(view);
  const hasTasks = wanted === 'all' || wanted === 'task';
  const known = new Map(past ? tasksOf(past).map((task) => [task.id, task]) : []);
  if (!isFleet(view)) for (const task of world.tasks.values()) known.set(task.id, task);
  const tasks = hasTasks ? groupHolds([...known.values()].filter(({ asset_id }) => isOfAsset(asset_id))) : [];
  const entries = log.entries.filter(
    ({ kind, key }) =>
      !isFleet(view) &&
      (wanted === 'all' || kind === wanted || (wanted === 'link' && key.startsWith('link '))) &&
      (!past || (kind === 'alarm' && !kept_keys.test(key) && log_asset === '')),
  );
  const events = (past ?? []).filter(isShown);
  if (past && !isFleet(view)) listOf(view, '');
  const pictures = picturesByEvent(world);
  const rows: Row[] = [
    ...tasks.map(({ task, times }) => ({ time_ms: Date.parse(task.created_at), task, times })),
    ...entries.map((entry) => ({ time_ms: entry.since_ms, note: noteOfEntry(entry) })),
    ...events.map((event) => {
      const picture = pictures.get(eventKey(event.asset_id, event.type, event.data['timestamp']));
      return { time_ms: event.time_ms, note: { ...noteOfEvent(event, view), picture } };
    }),
  ];
  return rows.sort((a, b) => b.time_ms - a.time_ms);
}

function noteOfEntry(entry: Entry): Note {
  return { ...entry, kit: '', isOpen: entry.level !== 'info' && entry.until_ms === null };
}

function noteOfEvent(event: Event, view: View): Note {
  const { type, asset_id, time_ms, id } = event;
  const kit_id = event.kit_id || view.choices.kit_id;
  const kit =
    view.route.screen === 'log' ? view.choices.kits.find(({ id: each }) => each === event.kit_id) : undefined;
  const href =
    type === 'link_status' || asset_id === ''
      ? addressOf('links', kit_id)
      : addressOf('asset', kit_id, asset_id);
  return {
    key: id,
    kind: type,
    level: levelOf(event),
    kit: kit?.name ?? '',
    title: eventText(event, view),
    since_ms: time_ms,
    until_ms: null,
    isOpen: false,
    href,
  };
}

/** The day, above its first row. */
function dayOf({ time_ms }: Row, before: Row | undefined) {
  const day = clock(time_ms, { isDay: true });
  if (before && clock(before.time_ms, { isDay: true }) === day) return '';
  return html`<li key=${day} class="day">${day}</li>`;
}

function rowView(row: Row, view: View) {
  if (row.task) {
    const asset = view.world.assets.get(row.task.asset_id)?.name ?? t.task.removedAsset;
    return html`<li key=${row.task.id} class="row">
      ${taskRow(row.task, view, asset)}${row.times > 1 ? html`<p class="cap">${t.activity.times(row.times)}</p>` : ''}
    </li>`;
  }
  return noteRow(row.note, view);
}

function noteRow(note: Note, view: View) {
  const { key, kit, level, title, since_ms, until_ms, isOpen, href, picture } = note;
  const lasted = until_ms === null ? (isOpen ? t.activity.lasts : '') : t.lasted(until_ms - since_ms);
  return html`<li key=${`${key} ${since_ms}`} class=${picture ? 'with-picture' : undefined}>
    ${picture && thumbnail(picture, view)}<a class="event" href=${href}
      ><time datetime=${new Date(since_ms).toISOString()}
        >${clock(since_ms, { isExact: true, isTime: true })}</time
      ><span class=${level === 'bad' ? 'state bad' : level === 'warn' ? 'state warn' : 'state'}
        >${shape(level === 'info' ? 'ring' : 'warn')}</span
      ><span>${kit && html`<b>${name(kit)}</b> `}${name(title)}</span><span class="cap">${lasted}</span></a
    >
  </li>`;
}

function csvRows(rows: readonly Row[], view: View): readonly (readonly string[])[] {
  return [
    ['time', 'kind', 'subject', 'what', 'state', 'until', 'detail'],
    ...rows.map(({ time_ms, task, note }) => {
      const time = new Date(time_ms).toISOString();
      if (note) {
        const until = note.until_ms === null ? '' : new Date(note.until_ms).toISOString();
        return [time, note.kind, note.kit, note.title, note.level, until, ''];
      }
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

/** Moves farther apart belong to different holds. */
const apart_ms = 6_000;

/** Joins the tasks of one hold of the PTZ pad to one row: a hold is many moves and a stop. Newest first; the newest task of each hold. */
function groupHolds(
  tasks: readonly TaskResource[],
): readonly { readonly task: TaskResource; readonly times: number }[] {
  const ordered = tasks.toSorted((a, b) => Date.parse(b.created_at) - Date.parse(a.created_at));
  const groups: { task: TaskResource; times: number; last_ms: number }[] = [];
  for (const task of ordered) {
    const time_ms = Date.parse(task.created_at);
    const hold =
      task.command_name === 'ptz_move'
        ? groups.find(
            (group) =>
              group.task.command_name === 'ptz_move' &&
              group.task.asset_id === task.asset_id &&
              group.last_ms - time_ms < apart_ms,
          )
        : undefined;
    if (hold) {
      hold.times += 1;
      hold.last_ms = time_ms;
    } else groups.push({ task, times: 1, last_ms: time_ms });
  }
  return groups;
}

/**
 * Quotes each field; a sign that a spreadsheet would run as a formula is kept from doing so, at the beginning and behind what
 * separates cells and rows in the spreadsheets of many languages, where quotation marks behind commas do not hold.
 */
export function csvText(rows: readonly (readonly string[])[], separator = ','): string {
  const quote = (text: string) => {
    const parts = text.replaceAll(/([;\t\r\n]["' ]*)(?=[=+\-@＝＋－＠])/gu, "$1'");
    const mark = /^ *[=+\-@\t\r\n＝＋－＠]/u.test(parts) ? "'" : '';
    return `"${mark}${parts.replaceAll('"', '""')}"`;
  };
  return rows.map((row) => `${row.map(quote).join(separator)}\r\n`).join('');
}

/** As a spreadsheet of the person's language opens it: with a byte order mark, and semicolons where commas are decimal signs. */
function saveCsv(rows: readonly (readonly string[])[], file: string) {
  const text = csvText(rows, (0.5).toLocaleString().includes(',') ? ';' : ',');
  const url = URL.createObjectURL(new Blob(['\uFEFF', text], { type: 'text/csv;charset=utf-8' }));
  const link = document.createElement('a');
  link.href = url;
  link.download = file;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
