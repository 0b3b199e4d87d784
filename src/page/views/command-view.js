/** The commands of an asset: inputs from the schema, the button, and the outcome of the last order. */
import { assetState } from '../world/age.js';
import { fieldsOf, readFields } from './form.js';
import { html } from './html.js';
import { isRecord, parseJson } from '../world/json.js';
import { placeOfKit } from '../world/places.js';
import { label, plain } from '../world/text.js';
import { taskRow } from './tasks-view.js';

/** @import { CommandDefinition, Field, JsonValue, LiveAsset, OrderState, View } from '../types.d.ts' */

const json_field = '(json)';
const radios_max = 5;

/**
 * @param {LiveAsset} asset
 * @param {View} view
 */
export function commandsView(asset, view) {
  const commands = view.world.commands.get(asset.id) ?? [];
  if (commands.length === 0)
    return html`<h4>Commands</h4>
      <p>This asset has no commands.</p>`;
  return html`<h4>Commands</h4>
    <p class="lock">
      ${lockReason(view) ?? (assetState(asset, view) === 'offline' ? 'The asset is offline: a command would fail.' : 'Commands are available.')}
    </p>
    ${commands.map((command) => commandView(asset, command, view))}`;
}

/**
 * Returns why commands are locked now.
 * @param {View} view
 * @returns {string | undefined}
 */
export function lockReason({ isInStep, link, choices }) {
  if (choices.session && !choices.session.scopes.includes('commands'))
    return 'Locked: your key is read-only.';
  if (!isInStep || link.state !== 'live') return 'Locked: this page has no link to the service.';
  return undefined;
}

/**
 * @param {LiveAsset} asset
 * @param {CommandDefinition} command
 * @param {View} view
 */
function commandView(asset, command, view) {
  const { choices, act } = view;
  const key = `${asset.id} ${command.name}`;
  const fields = fieldsOf(command.input_schema);
  /** @param {string} name */
  const typed = (name) =>
    choices.typed.get(`${key} ${name}`) ?? fields?.find((each) => each.name === name)?.initial ?? '';
  /** @type {Type} */
  const type = (name, text) => {
    choices.typed.set(`${key} ${name}`, text);
    act.changed();
  };
  const read = fields ? readFields(fields, typed) : readJson(typed(json_field));
  const order = choices.orders.get(key);
  const isTried = order?.state === 'refused' && order.text === form_fault;
  /** @param {Event} event */
  const submit = (event) => {
    event.preventDefault();
    if (lockReason(view) !== undefined || order?.state === 'sending') return;
    if (read.faults.size > 0) choices.orders.set(key, { state: 'refused', text: form_fault });
    else act.order({ asset, command, payload: read.payload });
    act.changed();
  };
  /** @type {ReadonlyMap<string, string>} */
  const faults = isTried ? read.faults : new Map();
  return html`<form
    key=${command.name}
    class="command"
    onSubmit=${submit}
    novalidate
    aria-label=${label(command.name)}
  >
    <p class="about">
      <b>${label(command.name)}</b> <bdi>${plain(command.description)}</bdi>
      <span class="risk">${riskText(command)}</span>
    </p>
    ${fields ? fields.map((field) => input({ field, key, typed, type, fault: faults.get(field.name), view })) : jsonInput({ key, typed, type, fault: faults.get(json_field) })}
    ${fields && positionButton({ fields, type, view })}
    <button
      type="submit"
      class="send"
      aria-disabled=${String(lockReason(view) !== undefined || order?.state === 'sending')}
    >
      Send ${label(command.name)}${needsConfirmation(command) ? '…' : ''}
    </button>
    <div class="outcome" role="status">${outcome(asset, command, order, view)}</div>
  </form>`;
}

const form_fault = 'Not sent: the inputs need a correction.';

/** @typedef {(name: string, text: string) => void} Type */

/**
 * @param {CommandDefinition} command
 */
export function needsConfirmation({ risk_level, requires_approval }) {
  return risk_level !== 'low' || requires_approval;
}

/** @param {CommandDefinition} command */
function riskText({ risk_level, requires_approval }) {
  const signs = { low: '', medium: '▲ medium risk', high: '▲▲ HIGH RISK' };
  return [signs[risk_level], requires_approval ? 'approval required' : ''].filter(Boolean).join(', ');
}

/**
 * Shows the newest task of this command, or the state of the order before it became a task.
 * @param {LiveAsset} asset
 * @param {CommandDefinition} command
 * @param {OrderState | undefined} order
 * @param {View} view
 */
function outcome(asset, command, order, view) {
  if (order && order.state !== 'sent')
    return html`<p class=${`order ${order.state}`}>${plain(order.text)}</p>`;
  const tasks = [...view.world.tasks.values()].filter(
    (task) => task.asset_id === asset.id && task.command_name === command.name,
  );
  const [newest] = tasks.sort((a, b) => Date.parse(b.created_at) - Date.parse(a.created_at));
  if (newest)
    return html`<ul class="rows">
      ${taskRow(newest, view)}
    </ul>`;
  return order ? html`<p class="order">${plain(order.text)}</p>` : '';
}

/**
 * @param {string} text
 * @returns {{ readonly payload: Readonly<Record<string, JsonValue>>, readonly faults: ReadonlyMap<string, string> }}
 */
function readJson(text) {
  const value = parseJson(text.trim() === '' ? '{}' : text);
  if (isPayload(value)) return { payload: value, faults: new Map() };
  return { payload: {}, faults: new Map([[json_field, 'not a JSON object']]) };
}

/**
 * A record that the JSON parser returned holds JSON values only.
 * @param {unknown} value
 * @returns {value is Readonly<Record<string, JsonValue>>}
 */
function isPayload(value) {
  return isRecord(value);
}

/**
 * @typedef {object} Input
 * @property {Field} field
 * @property {string} key
 * @property {(name: string) => string} typed
 * @property {Type} type
 * @property {string | undefined} fault
 * @property {View} view
 */

/** @param {Input} about */
function input({ field, key, typed, type, fault }) {
  const id = `${key} ${field.name}`.replaceAll(' ', '-');
  /** @param {Event & { currentTarget: HTMLInputElement | HTMLSelectElement }} event */
  const onInput = ({ currentTarget }) => type(field.name, currentTarget.value);
  const text = html`${field.label}${field.isRequired ? '' : ' (optional)'}`;
  const note = html`<span class="note" id=${`${id}-note`}
    >${fault ? html`<b>✖ ${fault}</b>` : noteOf(field)}</span
  >`;
  const value = typed(field.name);
  const choices = choicesOf(field);
  if (choices && choices.length <= radios_max) {
    return html`<fieldset aria-describedby=${`${id}-note`}>
      <legend>${text}</legend>
      ${choices.map(
        (choice) =>
          html`<label class="radio">
            <input
              type="radio"
              name=${id}
              value=${choice.value}
              checked=${choice.value === value}
              onChange=${onInput}
            />
            <bdi>${choice.text}</bdi>
          </label>`,
      )}
      ${note}
    </fieldset>`;
  }
  if (choices) {
    return html`<label class="input"
      ><span>${text}</span>
      <select value=${value} onChange=${onInput} aria-describedby=${`${id}-note`}>
        <option value="">choose</option>
        ${choices.map((choice) => html`<option value=${choice.value} selected=${choice.value === value}>${choice.text}</option>`)}
      </select>
      ${note}</label
    >`;
  }
  const mode =
    field.kind === 'text' ? 'text' : field.min !== undefined && field.min >= 0 ? 'decimal' : 'text';
  return html`<label class="input"
    ><span>${text}</span>
    <input
      type="text"
      inputmode=${mode}
      autocomplete="off"
      value=${value}
      onInput=${onInput}
      aria-describedby=${`${id}-note`}
      aria-invalid=${String(fault !== undefined)}
    />
    ${note}</label
  >`;
}

/**
 * @param {Field} field
 * @returns {readonly { readonly value: string, readonly text: string }[] | undefined}
 */
function choicesOf({ kind, choices }) {
  if (kind === 'boolean')
    return [
      { value: 'true', text: 'yes' },
      { value: 'false', text: 'no' },
    ];
  return kind === 'choice' ? choices.map((value) => ({ value, text: plain(value) })) : undefined;
}

/** @param {Field} field */
function noteOf({ hint, min, max }) {
  const bounds = [min === undefined ? '' : `from ${min}`, max === undefined ? '' : `to ${max}`]
    .filter(Boolean)
    .join(' ');
  return [hint, bounds].filter(Boolean).join('; ');
}

/** @param {Pick<Input, 'key' | 'typed' | 'type' | 'fault'>} about */
function jsonInput({ key, typed, type, fault }) {
  const id = `${key}-json`.replaceAll(' ', '-');
  /** @param {Event & { currentTarget: HTMLTextAreaElement }} event */
  const onInput = ({ currentTarget }) => type(json_field, currentTarget.value);
  return html`<label class="input"
    ><span>Payload as JSON</span>
    <textarea
      rows="4"
      spellcheck=${false}
      value=${typed(json_field)}
      onInput=${onInput}
      aria-describedby=${`${id}-note`}
    ></textarea>
    <span class="note" id=${`${id}-note`}
      >${fault ? html`<b>✖ ${fault}</b>` : 'The kit checks it.'}</span
    ></label
  >`;
}

/** @param {{ readonly fields: readonly Field[], readonly type: Type, readonly view: View }} about */
function positionButton({ fields, type, view }) {
  const place = placeOfKit(view);
  if (!place || !['lat', 'lon'].every((name) => fields.some((field) => field.name === name))) return '';
  const fill = () => {
    type('lat', place.lat.toFixed(6));
    type('lon', place.lon.toFixed(6));
  };
  return html`<button type="button" onClick=${fill}>Fill in the kit's position</button>`;
}
