/** The alarms of all kits that are not over: acknowledged, muted and noted on here. */
import { clock, duration, number } from '../../units.ts';
import { pictureOf } from '../../world/files.ts';
import { addressOf } from '../../world/route.ts';
import { assetName } from '../../world/names.ts';
import { detectionText } from '../../world/history/log.ts';
import { ask, reasonOf } from '../../world/api.ts';
import { t } from '../../words/words.ts';
import { lostBox, name, chip } from '../parts/marks.ts';
import { html } from '../parts/html.ts';
import { shape } from '../parts/icon.ts';
import { thumbnail } from '../files/files-view.ts';
import { conditionText } from '../judge.ts';
import type { Alarm, JsonValue, View } from '../../types.d.ts';

const states = ['open', 'acknowledged', 'muted'] as const;
/** The gravest first. */
const severities: readonly string[] = ['critical', 'warning', 'info'];
const mute_hours = [1, 8, 24, 168];
const hour_ms = 3_600_000;
const note_chars_max = 1_000;
/** A longer list would be no inbox. */
const shown_max = 200;

export function alarmsScreen(view: View) {
  const { choices } = view;
  const { alarm_filter: wanted } = choices;
  const shown = choices.alarms
    .filter(({ state }) => state === wanted)
    .toSorted(
      (a, b) =>
        severities.indexOf(a.severity) - severities.indexOf(b.severity) || b.last.localeCompare(a.last),
    );
  return {
    heading: { title: t.nav.alarms },
    body: html`<div class="page">
      ${lostBox(view)}
      <div class="chips one-line" role="group" aria-label=${t.alarms.filter}>
        ${states.map((state) => filterChip(state, view))}
      </div>
      <p class="fault" role="status">${choices.alarm_fault}</p>
      <section class="card" id="alarms" aria-label=${t.nav.alarms}>
        ${
          shown.length === 0
            ? html`<p class="empty">${t.alarms.none[wanted]}</p>`
            : html`<ul class="rows">
                ${shown.slice(0, shown_max).map((alarm) => alarmRow(alarm, view))}
              </ul>`
        }
        ${shown.length > shown_max && html`<p class="empty">${t.attention.more(shown.length - shown_max)}</p>`}
      </section>
    </div>`,
  };
}

function filterChip(state: (typeof states)[number], { choices, act }: View) {
  const choose = () => act.choose({ alarm_filter: state });
  const count = choices.alarms.filter((alarm) => alarm.state === state).length;
  const content = html`${t.alarms.state[state]} <span class="n">${number(count)}</span>`;
  return chip(state, content, { isOn: choices.alarm_filter === state, choose });
}

/** What is wrong, as a sentence; names in it are not sanitised yet. */
function alarmText({ what, subject, value, kit_id, assets, back = [], message }: Alarm, view: View): string {
  const [first = ''] = assets;
  const asset = assetName(view, kit_id, first);
  if (what === 'offline') return t.attention.kitOffline;
  if (what === 'asset')
    return assets.length === 1 && asset !== ''
      ? t.attention.assetOffline(asset)
      : t.kits.assetsOffline(assets.length - back.length);
  if (assets.length === 0) return conditionText({ key: what, subject, value });
  const text = detectionText(what, message);
  return asset === '' ? text : `${asset}: ${text}`;
}

/** Since when it lasts, how often it began, and what people did about it. */
function factsOf({ since, last, count, acknowledged, muted_until }: Alarm, now_ms: number) {
  const since_ms = Date.parse(since);
  return [
    t.alarms.since({ time_ms: since_ms, age_ms: now_ms - since_ms }),
    ...(count > 1 ? [t.alarms.times({ n: count, last: clock(Date.parse(last)) })] : []),
    ...(acknowledged
      ? [t.alarms.by({ who: acknowledged.by, time: clock(Date.parse(acknowledged.at)) })]
      : []),
    ...(muted_until ? [t.alarms.mutedUntil(clock(Date.parse(muted_until)))] : []),
  ].join(', ');
}

const levels: Readonly<Record<string, 'bad' | 'warn'>> = { critical: 'bad', warning: 'warn' };

function alarmRow(alarm: Alarm, view: View) {
  const { id, kit_id, severity, note, assets, files } = alarm;
  const { choices, time_ms } = view;
  const kit = choices.kits.find((each) => each.id === kit_id);
  const [first] = assets;
  const href = first === undefined ? addressOf('overview', kit_id) : addressOf('asset', kit_id, first);
  const level = levels[severity];
  const picture = pictureOf(view, kit_id, files);
  return html`<li key=${id} class="alarm">
    ${picture && thumbnail(picture, view)}
    <a href=${href}
      ><span class=${`state ${level ?? ''}`}
        >${shape(level ? 'warn' : 'ring')}<span class="unseen">${t.alarms.severity[severity]}</span></span
      ><span
        ><b>${name(kit?.name ?? kit_id)}</b> ${name(alarmText(alarm, view))}<span class="cap"
          >${name(factsOf(alarm, time_ms))}</span
        >${note && html`<span class="cap noted">${name(note)}</span>`}</span
      ></a
    >
    ${choices.session?.scopes.includes('alarms') === true && actions(alarm, view)}
  </li>`;
}

function actions(alarm: Alarm, view: View) {
  const { id, state, note = '' } = alarm;
  const { choices, act, time_ms } = view;
  const typed = choices.typed.get(`${id} note`);
  const mute = ({ currentTarget }: Event & { currentTarget: HTMLSelectElement }) => {
    const hours = Number(currentTarget.value);
    currentTarget.value = '';
    void change(
      alarm,
      { muted_until: hours > 0 ? new Date(time_ms + hours * hour_ms).toISOString() : null },
      view,
    );
  };
  const openNote = () => {
    if (typed === undefined) choices.typed.set(`${id} note`, note);
    else choices.typed.delete(`${id} note`);
    act.changed();
  };
  return html`<div class="alarm-actions">
      <button
        type="button"
        class="btn small"
        onClick=${() => void change(alarm, { acknowledged: state !== 'acknowledged' }, view)}
      >
        ${state === 'acknowledged' ? t.alarms.reopen : t.alarms.acknowledge}
      </button>
      <select class="btn small" aria-label=${t.alarms.mute} value="" onChange=${mute}>
        <option value="">${t.alarms.mute}</option>
        ${mute_hours.map((hours) => html`<option key=${hours} value=${hours}>${t.alarms.muteFor(duration(hours * hour_ms))}</option>`)}
        ${state === 'muted' && html`<option value="0">${t.alarms.unmute}</option>`}
      </select>
      <button
        type="button"
        class="btn small"
        aria-expanded=${String(typed !== undefined)}
        onClick=${openNote}
      >
        ${t.alarms.note}
      </button>
    </div>
    ${typed !== undefined && noteForm(alarm, typed, view)}`;
}

function noteForm(alarm: Alarm, typed: string, view: View) {
  const { choices } = view;
  const key = `${alarm.id} note`;
  const save = (event: Event) => {
    event.preventDefault();
    const text = choices.typed.get(key)?.trim() ?? '';
    choices.typed.delete(key);
    void change(alarm, { note: text === '' ? null : text }, view);
  };
  const type = ({ currentTarget }: Event & { currentTarget: HTMLInputElement }) =>
    void choices.typed.set(key, currentTarget.value);
  return html`<form class="note-form" onSubmit=${save}>
    <input
      type="text"
      aria-label=${t.alarms.note}
      maxlength=${note_chars_max}
      value=${typed}
      onInput=${type}
    />
    <button type="submit" class="btn small main">${t.alarms.save}</button>
  </form>`;
}

/** The socket brings what became of it. */
async function change({ kit_id, id }: Alarm, body: Readonly<Record<string, JsonValue>>, { act }: View) {
  try {
    await ask('PATCH', `/api/kits/${kit_id}/alarms/${id}`, { body });
    act.choose({ alarm_fault: '' });
  } catch (error) {
    act.choose({ alarm_fault: t.order.refused(reasonOf(error, t.order.noAnswer)) });
  }
}
