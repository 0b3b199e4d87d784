/** Builds the inputs of a command from its input_schema: flat objects of numbers, texts, choices and switches. */
import { isRecord } from '../world/json.js';
import { label, plain, unitOf } from '../world/text.js';

/** @import { Field, JsonValue } from '../types.d.ts' */

const fields_max = 32;
const choices_max = 256;
const known = new Set('$schema type properties required additionalProperties title description'.split(' '));
const known_of_field = new Set(
  [
    'type title description default examples enum format x-unit minLength maxLength',
    'minimum maximum exclusiveMinimum exclusiveMaximum multipleOf',
  ].flatMap((names) => names.split(' ')),
);

/**
 * Returns the inputs; undefined: the schema is beyond a form, and the payload is typed as JSON.
 * @param {Readonly<Record<string, unknown>>} schema
 * @returns {readonly Field[] | undefined}
 */
export function fieldsOf(schema) {
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

/**
 * @param {string} name
 * @param {unknown} schema
 * @param {boolean} isRequired
 * @returns {Field | undefined}
 */
function fieldOf(name, schema, isRequired) {
  if (!isRecord(schema) || Object.keys(schema).some((key) => !known_of_field.has(key))) return undefined;
  const kind = kindOf(schema);
  if (!kind) return undefined;
  const number = (/** @type {string} */ key) => (typeof schema[key] === 'number' ? schema[key] : undefined);
  const choices = kind === 'choice' && Array.isArray(schema['enum']) ? schema['enum'].map(String) : [];
  const { description, default: preset } = schema;
  const unit = typeof schema['x-unit'] === 'string' ? plain(schema['x-unit']) : unitOf(name).trim();
  const isPreset = ['string', 'number', 'boolean'].includes(typeof preset);
  return {
    name,
    kind,
    label: label(name) + (unit === '' ? '' : `, ${unit}`),
    hint: typeof description === 'string' ? plain(description) : '',
    isRequired,
    choices,
    min: number('minimum') ?? number('exclusiveMinimum'),
    max: number('maximum') ?? number('exclusiveMaximum'),
    chars_max: number('maxLength'),
    initial: isPreset ? String(preset) : '',
  };
}

/**
 * @param {Readonly<Record<string, unknown>>} schema
 * @returns {Field['kind'] | undefined}
 */
function kindOf({ type, enum: choices }) {
  if (choices !== undefined) {
    const isReadable =
      type === 'string' &&
      Array.isArray(choices) &&
      choices.length <= choices_max &&
      choices.every((each) => typeof each === 'string');
    return isReadable ? 'choice' : undefined;
  }
  if (type === 'number' || type === 'integer' || type === 'boolean') return type;
  return type === 'string' ? 'text' : undefined;
}

/**
 * Returns the payload from the typed texts, or the faults by field.
 * @param {readonly Field[]} fields
 * @param {(name: string) => string} typed
 * @returns {{ readonly payload: Readonly<Record<string, JsonValue>>, readonly faults: ReadonlyMap<string, string> }}
 */
export function readFields(fields, typed) {
  /** @type {Record<string, JsonValue>} */
  const payload = {};
  const faults = new Map();
  for (const field of fields) {
    const text = typed(field.name).trim();
    if (text === '') {
      if (field.isRequired) faults.set(field.name, field.kind === 'choice' ? 'choose one' : 'fill this in');
      continue;
    }
    const fault = faultOf(field, text);
    if (fault) faults.set(field.name, fault);
    else payload[field.name] = valueOf(field, text);
  }
  return { payload, faults };
}

/**
 * @param {Field} field
 * @param {string} text
 * @returns {JsonValue}
 */
function valueOf({ kind }, text) {
  if (kind === 'number' || kind === 'integer') return numberIn(text);
  return kind === 'boolean' ? text === 'true' : text;
}

/**
 * @param {Field} field
 * @param {string} text
 * @returns {string | undefined}
 */
function faultOf({ kind, min, max, chars_max }, text) {
  if (kind === 'text') {
    return chars_max !== undefined && text.length > chars_max ? `at most ${chars_max} characters` : undefined;
  }
  return kind === 'number' || kind === 'integer'
    ? faultOfNumber({ kind, min, max }, numberIn(text))
    : undefined;
}

/**
 * @param {Pick<Field, 'kind' | 'min' | 'max'>} field
 * @param {number} value
 * @returns {string | undefined}
 */
function faultOfNumber({ kind, min, max }, value) {
  if (!Number.isFinite(value)) return 'not a number';
  if (kind === 'integer' && !Number.isInteger(value)) return 'must be a whole number';
  if (min !== undefined && value < min) return `at least ${min}`;
  return max !== undefined && value > max ? `at most ${max}` : undefined;
}

/**
 * Reads a number; phones in many countries offer a comma only.
 * @param {string} text
 * @returns {number}
 */
function numberIn(text) {
  return /^[+-]?(?:\d+[.,]?\d*|[.,]\d+)(?:e[+-]?\d+)?$/iu.test(text)
    ? Number(text.replace(',', '.'))
    : Number.NaN;
}
