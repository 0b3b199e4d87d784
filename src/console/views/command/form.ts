/** Builds the inputs of a command from its input_schema: flat objects of numbers, texts, choices and switches. */
import { t } from '../../words/words.ts';
import { isRecord, listIn, own } from '../../json.ts';
import { label, plain, unitOf } from '../../world/text.ts';
import type { Field, JsonValue, Option } from '../../types.d.ts';

const fields_max = 32;
const choices_max = 256;
const known = new Set('$schema type properties required additionalProperties title description'.split(' '));
const known_of_field = new Set(
  [
    'type title description default examples enum oneOf anyOf const format x-unit x-kit-datum minLength maxLength',
    'minimum maximum exclusiveMinimum exclusiveMaximum multipleOf',
  ].flatMap((names) => names.split(' ')),
);

/** Returns the inputs; undefined: the schema is beyond a form, and the payload is typed as JSON. */
export function fieldsOf(schema: Readonly<Record<string, unknown>>): readonly Field[] | undefined {
  if (Object.keys(schema).length === 0) return [];
  const { type, properties = {}, required = [] } = schema;
  if (type !== 'object' || !isRecord(properties) || Object.keys(schema).some((key) => !known.has(key)))
    return undefined;
  const names = Object.keys(properties);
  if (names.length > fields_max) return undefined;
  const wanted = Array.isArray(required) ? required : [];
  const fields = names.map((name) => fieldOf(name, properties[name], wanted.includes(name)));
  return fields.every((field) => field !== undefined) ? fields : undefined;
}

function fieldOf(name: string, schema: unknown, isRequired: boolean): Field | undefined {
  if (!isRecord(schema) || Object.keys(schema).some((key) => !known_of_field.has(key))) return undefined;
  const kind = kindOf(schema);
  if (!kind) return undefined;
  const number = (key: string) => (typeof schema[key] === 'number' ? schema[key] : undefined);
  const choices = kind === 'choice' ? (optionsOf(schema) ?? []) : [];
  const { description, default: preset } = schema;
  const isPreset = ['string', 'number', 'boolean'].includes(typeof preset);
  return {
    name,
    kind,
    label: labelOf(name, schema),
    hint: typeof description === 'string' ? plain(description) : '',
    isRequired,
    choices,
    min: number('minimum') ?? number('exclusiveMinimum'),
    max: number('maximum') ?? number('exclusiveMaximum'),
    chars_max: number('maxLength'),
    initial: isPreset ? String(preset) : '',
  };
}

/** The title, else the name, with the unit. */
function labelOf(name: string, { title, 'x-unit': unit }: Readonly<Record<string, unknown>>) {
  const shown = typeof unit === 'string' ? plain(unit) : unitOf(name).trim();
  return (typeof title === 'string' ? plain(title) : nameOf(name)) + (shown === '' ? '' : `, ${shown}`);
}

/** What the page calls an input, else its name as a word. */
function nameOf(name: string) {
  const text = own(t.form.names, name) ?? label(name);
  return text.charAt(0).toUpperCase() + text.slice(1);
}

function kindOf(schema: Readonly<Record<string, unknown>>): Field['kind'] | undefined {
  const { type } = schema;
  if (['enum', 'oneOf', 'anyOf', 'const'].some((key) => schema[key] !== undefined))
    return optionsOf(schema) ? 'choice' : undefined;
  if (type === 'number' || type === 'integer' || type === 'boolean') return type;
  return type === 'string' ? 'text' : undefined;
}

/**
 * The values that a schema lists: `enum`, or `oneOf`/`anyOf` of constants, each with the title that people know it by.
 * @returns undefined: it does not list values, or not in a form known here
 */
function optionsOf({
  type,
  enum: values,
  oneOf,
  anyOf,
  const: only,
}: Readonly<Record<string, unknown>>): readonly Option[] | undefined {
  let listed: readonly { readonly value: unknown; readonly title?: unknown }[] = [];
  if (only !== undefined) listed = [{ value: only }];
  else if (Array.isArray(values)) listed = listIn(values).map((value) => ({ value }));
  else if (Array.isArray(oneOf ?? anyOf)) listed = listOf(oneOf ?? anyOf);
  if (listed.length === 0 || listed.length > choices_max) return undefined;
  const options = listed.map(({ value, title }) => optionOf(value, title, type));
  return options.every((option) => option !== undefined) ? options : undefined;
}

function listOf(alternatives: unknown): readonly { readonly value: unknown; readonly title?: unknown }[] {
  return Array.isArray(alternatives)
    ? alternatives.map((each) =>
        isRecord(each) ? { value: each['const'], title: each['title'] } : { value: undefined },
      )
    : [];
}

/** @param type of the schema, where it names one */
function optionOf(value: unknown, title: unknown, type: unknown): Option | undefined {
  const isNumber = typeof value === 'number' && type !== 'string';
  const isText = typeof value === 'string' && type !== 'number' && type !== 'integer';
  if (!isNumber && !isText) return undefined;
  const text = String(value);
  return { value: text, text: typeof title === 'string' ? plain(title) : plain(text), json: value };
}

/** Returns the payload from the typed texts, or the faults by field. */
export function readFields(
  fields: readonly Field[],
  typed: (name: string) => string,
): { readonly payload: Readonly<Record<string, JsonValue>>; readonly faults: ReadonlyMap<string, string> } {
  const payload: Record<string, JsonValue> = {};
  const faults = new Map();
  for (const field of fields) {
    const text = typed(field.name).trim();
    if (text === '') {
      if (field.isRequired)
        faults.set(field.name, field.kind === 'choice' ? t.form.chooseOne : t.form.fillIn);
      continue;
    }
    const fault = faultOf(field, text);
    if (fault) faults.set(field.name, fault);
    else payload[field.name] = valueOf(field, text);
  }
  return { payload, faults };
}

function valueOf({ kind, choices }: Field, text: string): JsonValue {
  if (kind === 'choice') return choices.find(({ value }) => value === text)?.json ?? text;
  if (kind === 'number' || kind === 'integer') return numberIn(text);
  return kind === 'boolean' ? text === 'true' : text;
}

function faultOf({ kind, min, max, chars_max }: Field, text: string): string | undefined {
  if (kind === 'text') {
    return chars_max !== undefined && text.length > chars_max ? t.form.charsMax(chars_max) : undefined;
  }
  return kind === 'number' || kind === 'integer'
    ? faultOfNumber({ kind, min, max }, numberIn(text))
    : undefined;
}

function faultOfNumber(
  { kind, min, max }: Pick<Field, 'kind' | 'min' | 'max'>,
  value: number,
): string | undefined {
  if (!Number.isFinite(value)) return t.form.notNumber;
  if (kind === 'integer' && !Number.isInteger(value)) return t.form.notWhole;
  if (min !== undefined && value < min) return t.form.min(min);
  return max !== undefined && value > max ? t.form.max(max) : undefined;
}

/** Reads a number; phones in many countries offer a comma only. */
function numberIn(text: string): number {
  return /^[+-]?(?:\d+[.,]?\d*|[.,]\d+)(?:e[+-]?\d+)?$/iu.test(text)
    ? Number(text.replace(',', '.'))
    : Number.NaN;
}
