/** The inputs of a command form. */
import { placeOfKit } from '../../world/places.js';
import { t } from '../../words/words.js';
import { html } from '../parts/html.js';
import { icon } from '../parts/icon.js';
import { json_field } from './payload.js';

/** @import { Field, Option, View } from '../../types.d.ts' */

const radios_max = 8;

/** @typedef {(name: string, text: string) => void} Type */

/**
 * @typedef {object} Input
 * @property {Field} field
 * @property {string} key
 * @property {(name: string) => string} typed
 * @property {Type} type
 * @property {string | undefined} fault
 */

/** @param {Input} about */
export function input(about) {
  const { field, key, typed, fault } = about;
  const id = `${key} ${field.name}`.replaceAll(' ', '-');
  const note = html`<span class="note" id=${`${id}-note`}
    >${fault ? html`<b class="fault">${fault}</b>` : noteOf(field)}</span
  >`;
  const value = typed(field.name);
  const options = optionsOf(field);
  const text = html`${field.label}${field.isRequired ? '' : ` (${t.form.optional})`}`;
  if (options && options.length <= radios_max) return radios({ about, id, text, note, value, options });
  return options
    ? select({ about, id, text, note, value, options })
    : textInput({ about, id, text, note, value });
}

/**
 * @typedef {object} Drawn
 * @property {Input} about
 * @property {string} id
 * @property {unknown} text
 * @property {unknown} note
 * @property {string} value
 */

/** @param {Drawn & { readonly options: readonly Pick<Option, 'value' | 'text'>[] }} drawn */
function radios({ about, id, text, note, value, options }) {
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
              onChange=${() => about.type(about.field.name, option.value)}
            />
            <bdi>${option.text}</bdi>
          </label>`,
      )}
    </div>
    ${note}
  </fieldset>`;
}

/** @param {Drawn & { readonly options: readonly Pick<Option, 'value' | 'text'>[] }} drawn */
function select({ about, id, text, note, value, options }) {
  /** @param {Event & { currentTarget: HTMLSelectElement }} event */
  const choose = ({ currentTarget }) => about.type(about.field.name, currentTarget.value);
  return html`<label class="input"
    ><span>${text}</span>
    <select value=${value} onChange=${choose} aria-describedby=${`${id}-note`}>
      <option value="">${t.form.choose}</option>
      ${options.map((option) => html`<option value=${option.value} selected=${option.value === value}>${option.text}</option>`)}
    </select>
    ${note}</label
  >`;
}

/** @param {Drawn} drawn */
function textInput({ about, id, text, note, value }) {
  const { field, type, fault } = about;
  /** @param {Event & { currentTarget: HTMLInputElement }} event */
  const onInput = ({ currentTarget }) => type(field.name, currentTarget.value);
  const mode = field.kind !== 'text' && field.min !== undefined && field.min >= 0 ? 'decimal' : 'text';
  const box = html`<input
    id=${id}
    type="text"
    inputmode=${mode}
    autocomplete="off"
    value=${value}
    onInput=${onInput}
    aria-describedby=${`${id}-note`}
    aria-invalid=${String(fault !== undefined)}
  />`;
  return html`<div class="input">
    <label for=${id}>${text}</label>
    ${isStepped(field) ? html`<span class="stepper">${stepButton(about, value, -1)}${box}${stepButton(about, value, 1)}</span>` : box}
    ${note}
  </div>`;
}

/**
 * Numbers with a lower limit are counted up and down; coordinates are not.
 * @param {Field} field
 */
function isStepped({ kind, name, min }) {
  return (kind === 'number' || kind === 'integer') && min !== undefined && name !== 'lat' && name !== 'lon';
}

/**
 * @param {Input} about
 * @param {string} value
 * @param {1 | -1} by
 */
function stepButton({ field, type }, value, by) {
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

/**
 * @param {Field} field
 * @returns {readonly Pick<Option, 'value' | 'text'>[] | undefined}
 */
function optionsOf({ kind, choices }) {
  if (kind === 'boolean')
    return [
      { value: 'true', text: t.yes },
      { value: 'false', text: t.no },
    ];
  return kind === 'choice' ? choices : undefined;
}

/** @param {Field} field */
function noteOf({ hint, min, max }) {
  const bounds = [min === undefined ? '' : t.form.from(min), max === undefined ? '' : t.form.to(max)]
    .filter(Boolean)
    .join(' ');
  return [hint, bounds].filter(Boolean).join('; ');
}

/** @param {Pick<Input, 'key' | 'typed' | 'type' | 'fault'>} about */
export function jsonInput({ key, typed, type, fault }) {
  const id = `${key}-json`.replaceAll(' ', '-');
  /** @param {Event & { currentTarget: HTMLTextAreaElement }} event */
  const onInput = ({ currentTarget }) => type(json_field, currentTarget.value);
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

/** @param {{ readonly fields: readonly Field[], readonly type: Type, readonly view: View }} about */
export function positionButton({ fields, type, view }) {
  const place = placeOfKit(view);
  if (!place || !['lat', 'lon'].every((name) => fields.some((field) => field.name === name))) return '';
  const fill = () => {
    type('lat', place.lat.toFixed(6));
    type('lon', place.lon.toFixed(6));
  };
  return html`<button type="button" class="btn plain" onClick=${fill}>${t.form.kitPosition}</button>`;
}
