/** The commands of an asset as rows, and the sheet of one of them: inputs from the schema, the button, the outcome. */
import { number } from '../../units.ts';
import { plain } from '../../world/text.ts';
import { t } from '../../words/words.ts';
import { html } from '../parts/html.ts';
import { icon } from '../parts/icon.ts';
import { card, name } from '../parts/marks.ts';
import { Sheet } from '../shell/sheet.ts';
import { lockReason, lockText, riskMark, titleOf } from './about.ts';
import { fieldsOf, readFields } from './form.ts';
import { json_field, needsConfirmation, readJson } from '../../world/payload.ts';
import { taskRow } from './task-row.ts';
import type { CommandDefinition, LiveAsset, View, Field, Option } from '../../types.d.ts';
import { placeOfKit } from '../../world/places.ts';

export function commandsCard(asset: LiveAsset, view: View) {
  const commands = (view.world.commands.get(asset.id) ?? []).filter((command) => !hasOwnControl(command));
  if (commands.length === 0)
    return asset.protocol === 'partner'
      ? ''
      : card('commands', t.commands.title, html`<p class="empty">${t.commands.none}</p>`);
  const rows = (some: readonly CommandDefinition[]) =>
    html`<ul class="rows">
      ${some.map((command) => commandRow(asset, command, view))}
    </ul>`;
  const groups = Map.groupBy(commands, groupOf);
  const isShort = commands.length <= ungrouped_max || groups.size === 1;
  return card(
    'commands',
    t.commands.title,
    html`${lockText(asset, view)}
    ${
      isShort
        ? rows(commands)
        : html`<div class="command-groups">
            ${group_order.map((group) => {
              const some = groups.get(group) ?? [];
              return (
                some.length > 0 &&
                html`<details key=${group} open=${group === 'fly'}>
                  <summary class="sec">
                    ${t.commands.group[group]} <span class="n">${number(some.length)}</span>
                  </summary>
                  ${rows(some)}
                </details>`
              );
            })}
          </div>`
    }`,
  );
}

/** So many commands are seen at once. */
const ungrouped_max = 8;
const group_order = ['fly', 'mission', 'more'] as const;
const fly_names: ReadonlySet<string> = new Set(
  'arm disarm takeoff land hold return_home set_mode goto_waypoint orbit set_altitude set_speed'.split(' '),
);

function groupOf({ name: text }: CommandDefinition): (typeof group_order)[number] {
  if (fly_names.has(text)) return 'fly';
  return text.includes('mission') ? 'mission' : 'more';
}

/** The pad of a camera's page moves it, and its presets stand there by name. */
function hasOwnControl({ name: text, input_schema }: CommandDefinition) {
  return text === 'ptz_move' || (text === 'ptz_preset' && fieldsOf(input_schema)?.[0]?.kind === 'choice');
}

function commandRow(asset: LiveAsset, command: CommandDefinition, view: View) {
  const open = () => view.act.openSheet(`command ${command.name}`);
  return html`<li key=${command.name} class="command-row">
    <button type="button" aria-haspopup="dialog" onClick=${open}>
      <span><b>${titleOf(command)}</b>${riskMark(command)}</span>${icon('chevron-right', 's')}
    </button>
    <div class="outcome" role="status">${outcome(asset, command, view)}</div>
  </li>`;
}

/** The open command sheet of the asset that is shown; empty when there is none. */
export function commandSheet(asset: LiveAsset, view: View) {
  const { choices, act, world } = view;
  if (!choices.sheet?.startsWith('command ')) return '';
  const command = world.commands.get(asset.id)?.find(({ name: text }) => `command ${text}` === choices.sheet);
  if (!command) return '';
  return html`<${Sheet}
    key=${command.name}
    title=${titleOf(command)}
    aside=${riskMark(command)}
    content=${commandForm(asset, command, view)}
    onClose=${act.closeSheet}
  />`;
}

export function commandForm(asset: LiveAsset, command: CommandDefinition, view: View) {
  const { choices, act } = view;
  const key = `${asset.id} ${command.name}`;
  const fields = fieldsOf(command.input_schema);
  const typed = (wanted: string) =>
    choices.typed.get(`${key} ${wanted}`) ?? fields?.find((each) => each.name === wanted)?.initial ?? '';
  const type: Type = (field, text) => {
    choices.typed.set(`${key} ${field}`, text);
    act.changed();
  };
  const read = fields ? readFields(fields, typed) : readJson(typed(json_field));
  const order = choices.orders.get(key);
  const isBusy = lockReason(view, asset) !== undefined || order?.state === 'sending';
  const submit = (event: Event) => {
    event.preventDefault();
    if (isBusy) return;
    if (read.faults.size > 0) choices.orders.set(key, { state: 'refused', text: t.form.fault });
    else act.order({ asset, command, payload: read.payload });
    act.changed();
  };
  const faults: ReadonlyMap<string, string> =
    order?.state === 'refused' && order.text === t.form.fault ? read.faults : new Map();
  return html`<form
    key=${command.name}
    class="command"
    onSubmit=${submit}
    novalidate
    aria-label=${titleOf(command)}
  >
    <p class="cap"><bdi>${plain(command.description)}</bdi></p>
    ${lockText(asset, view)}
    ${
      fields
        ? fields.map((field) => input({ field, key, typed, type, fault: faults.get(field.name) }))
        : jsonInput({ key, typed, type, fault: faults.get(json_field) })
    }
    ${fields && positionButton({ fields, type, view })}
    <button type="submit" class="btn main" aria-disabled=${String(isBusy)}>
      ${titleOf(command)}${needsConfirmation(command) ? '…' : ''}
    </button>
    <div class="outcome" role="status">${outcome(asset, command, view)}</div>
  </form>`;
}

/** The newest task of this command, or the state of the order before it became a task. */
export function outcome(asset: LiveAsset, command: CommandDefinition, view: View) {
  const order = view.choices.orders.get(`${asset.id} ${command.name}`);
  if (order && order.state !== 'sent')
    return html`<p class=${`order ${order.state}`}>${name(order.text)}</p>`;
  const tasks = [...view.world.tasks.values()].filter(
    (task) => task.asset_id === asset.id && task.command_name === command.name,
  );
  const [newest] = tasks.sort((a, b) => Date.parse(b.created_at) - Date.parse(a.created_at));
  if (newest) return taskRow(newest, view);
  return order ? html`<p class="order">${plain(order.text)}</p>` : '';
}

const radios_max = 8;

type Type = (name: string, text: string) => void;

interface Input {
  field: Field;
  key: string;
  typed: (name: string) => string;
  type: Type;
  fault: string | undefined;
}

/** Few values are radio buttons, more a list; what has none is text. */
function input(about: Input) {
  const { field, key, typed, type, fault } = about;
  const id = `${key} ${field.name}`.replaceAll(' ', '-');
  const note = html`<span class="note" id=${`${id}-note`}
    >${fault ? html`<b class="fault">${fault}</b>` : noteOf(field)}</span
  >`;
  const value = typed(field.name);
  const text = html`${field.label}${field.isRequired ? '' : ` (${t.form.optional})`}`;
  const options = optionsOf(field);
  if (!options) {
    const box = textBox(about, id, value);
    const step = (by: 1 | -1) => stepButton(about, value, by);
    return html`<div class="input">
      <label for=${id}>${text}</label>
      ${isStepped(field) ? html`<span class="stepper">${step(-1)}${box}${step(1)}</span>` : box} ${note}
    </div>`;
  }
  if (options.length > radios_max) {
    const choose = ({ currentTarget }: Event & { currentTarget: HTMLSelectElement }) =>
      type(field.name, currentTarget.value);
    return html`<label class="input"
      ><span>${text}</span>
      <select value=${value} onChange=${choose} aria-describedby=${`${id}-note`}>
        <option value="">${t.form.choose}</option>
        ${options.map((option) => html`<option value=${option.value} selected=${option.value === value}>${option.text}</option>`)}
      </select>
      ${note}</label
    >`;
  }
  return html`<fieldset aria-describedby=${`${id}-note`}>
    <legend>${text}</legend>
    <div class="radios">
      ${options.map(
        (option) =>
          html`<label class="radio">
            <input
              type="radio"
              name=${id}
              value=${option.value}
              checked=${option.value === value}
              onChange=${() => type(field.name, option.value)}
            />
            <bdi>${option.text}</bdi>
          </label>`,
      )}
    </div>
    ${note}
  </fieldset>`;
}

function textBox({ field, type, fault }: Input, id: string, value: string) {
  const onInput = ({ currentTarget }: Event & { currentTarget: HTMLInputElement }) =>
    type(field.name, currentTarget.value);
  const mode = field.kind !== 'text' && field.min !== undefined && field.min >= 0 ? 'decimal' : 'text';
  return html`<input
    id=${id}
    type="text"
    inputmode=${mode}
    autocomplete="off"
    value=${value}
    onInput=${onInput}
    aria-describedby=${`${id}-note`}
    aria-invalid=${String(fault !== undefined)}
  />`;
}

/** Numbers with a lower limit are counted up and down; coordinates are not. */
function isStepped({ kind, name, min }: Field) {
  return (kind === 'number' || kind === 'integer') && min !== undefined && name !== 'lat' && name !== 'lon';
}

function stepButton({ field, type }: Input, value: string, by: 1 | -1) {
  const { min = Number.NEGATIVE_INFINITY, max = Number.POSITIVE_INFINITY } = field;
  const step = () => {
    const now = Number(value.replace(',', '.'));
    const next = value.trim() === '' || !Number.isFinite(now) ? Math.max(0, min) : now + by;
    type(field.name, String(Math.min(max, Math.max(min, next))));
  };
  const text = by > 0 ? t.form.more(field.label) : t.form.less(field.label);
  return html`<button type="button" class="icon-btn" aria-label=${text} onClick=${step}>
    ${icon(by > 0 ? 'plus' : 'minus')}
  </button>`;
}

function optionsOf({ kind, choices }: Field): readonly Pick<Option, 'value' | 'text'>[] | undefined {
  if (kind === 'boolean')
    return [
      { value: 'true', text: t.yes },
      { value: 'false', text: t.no },
    ];
  return kind === 'choice' ? choices : undefined;
}

function noteOf({ hint, min, max }: Field) {
  const bounds = [min === undefined ? '' : t.form.from(min), max === undefined ? '' : t.form.to(max)]
    .filter(Boolean)
    .join(' ');
  return [hint, bounds].filter(Boolean).join('; ');
}

function jsonInput({ key, typed, type, fault }: Pick<Input, 'key' | 'typed' | 'type' | 'fault'>) {
  const id = `${key}-json`.replaceAll(' ', '-');
  const onInput = ({ currentTarget }: Event & { currentTarget: HTMLTextAreaElement }) =>
    type(json_field, currentTarget.value);
  return html`<label class="input"
    ><span>${t.form.json}</span>
    <textarea
      rows="4"
      spellcheck=${false}
      value=${typed(json_field)}
      onInput=${onInput}
      aria-describedby=${`${id}-note`}
    ></textarea>
    <span class="note" id=${`${id}-note`}
      >${fault ? html`<b class="fault">${fault}</b>` : t.form.jsonNote}</span
    ></label
  >`;
}

function positionButton({
  fields,
  type,
  view,
}: {
  readonly fields: readonly Field[];
  readonly type: Type;
  readonly view: View;
}) {
  const place = placeOfKit(view);
  if (!place || !['lat', 'lon'].every((name) => fields.some((field) => field.name === name))) return '';
  const fill = () => {
    type('lat', place.lat.toFixed(6));
    type('lon', place.lon.toFixed(6));
  };
  return html`<button type="button" class="btn plain" onClick=${fill}>${t.form.kitPosition}</button>`;
}
