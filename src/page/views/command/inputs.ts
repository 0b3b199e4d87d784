/** The inputs of a command form. */
import { placeOfKit } from '../../world/places.ts';
import { t } from '../../words/words.ts';
import { html } from '../parts/html.ts';
import { icon } from '../parts/icon.ts';
import { json_field } from './payload.ts';
import type { Field, Option, View } from '../../types.d.ts';

const radios_max = 8;

export type Type = (name: string, text: string) => void;

interface Input {
  field: Field;
  key: string;
  typed: (name: string) => string;
  type: Type;
  fault: string | undefined;
}

export function input(about: Input) {
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

interface Drawn {
  about: Input;
  id: string;
  text: unknown;
  note: unknown;
  value: string;
}

function radios({
  about,
  id,
  text,
  note,
  value,
  options,
}: Drawn & { readonly options: readonly Pick<Option, 'value' | 'text'>[] }) {
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

function select({
  about,
  id,
  text,
  note,
  value,
  options,
}: Drawn & { readonly options: readonly Pick<Option, 'value' | 'text'>[] }) {
  const choose = ({ currentTarget }: Event & { currentTarget: HTMLSelectElement }) =>
    about.type(about.field.name, currentTarget.value);
  return html`<label class="input"
    ><span>${text}</span>
    <select value=${value} onChange=${choose} aria-describedby=${`${id}-note`}>
      <option value="">${t.form.choose}</option>
      ${options.map((option) => html`<option value=${option.value} selected=${option.value === value}>${option.text}</option>`)}
    </select>
    ${note}</label
  >`;
}

function textInput({ about, id, text, note, value }: Drawn) {
  const { field, type, fault } = about;
  const onInput = ({ currentTarget }: Event & { currentTarget: HTMLInputElement }) =>
    type(field.name, currentTarget.value);
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

export function jsonInput({ key, typed, type, fault }: Pick<Input, 'key' | 'typed' | 'type' | 'fault'>) {
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

export function positionButton({
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
