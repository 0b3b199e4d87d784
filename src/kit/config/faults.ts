/** Turns what zod finds wrong into sentences that a technician can act on. */
import { closest, distance } from 'fastest-levenshtein';
import { z } from 'zod';
import type { FaultList, KeyPath } from './source.ts';
import { texts } from './texts.ts';

// Finds the schema that checks a part of a value, so that a fault can name what would be right there.

/** A schema and the value that it checks: the value selects one of several shapes. */
interface Checking {
  readonly schema: z.core.$ZodType;
  readonly value: unknown;
}

/** The schema of what stands at `path`, as far as it is made of objects, lists, records and unions distinguished by a key. */
function schemaAt(checking: Checking, path: KeyPath): z.core.$ZodType | undefined {
  let schema: z.core.$ZodType | undefined = checking.schema;
  let value = checking.value;
  for (const step of path) {
    schema = schema && stepInto(shapeOf({ schema, value }), String(step));
    value = valueAt(value, [step]);
  }
  return schema;
}

/** What stands at `path`; undefined: nothing does. */
export function valueAt(value: unknown, path: KeyPath): unknown {
  return path.reduce<unknown>(
    (inner, step) => (typeof inner === 'object' && inner !== null ? Reflect.get(inner, step) : undefined),
    value,
  );
}

/** Keys that the value may have. */
function keysOf(checking: Checking): readonly string[] {
  const inner = shapeOf(checking);
  return inner instanceof z.ZodObject ? Object.keys(inner.shape) : [];
}

function stepInto(schema: z.core.$ZodType, step: string): z.core.$ZodType | undefined {
  if (schema instanceof z.ZodObject) {
    const shape: Readonly<Record<string, z.core.$ZodType>> = schema.shape;
    return shape[step];
  }
  if (schema instanceof z.ZodArray) return schema.element;
  if (schema instanceof z.ZodRecord) return schema.valueType;
  return undefined;
}

/** Without what only adds a default, and the one shape that the value chose. */
function shapeOf({ schema, value }: Checking): z.core.$ZodType {
  if (
    schema instanceof z.ZodDefault ||
    schema instanceof z.ZodPrefault ||
    schema instanceof z.ZodOptional ||
    schema instanceof z.ZodNullable
  ) {
    return shapeOf({ schema: schema.unwrap(), value });
  }
  if (schema instanceof z.ZodPipe) return shapeOf({ schema: schema.in, value });
  if (schema instanceof z.ZodDiscriminatedUnion) return chosenOf(schema, value) ?? schema;
  if (schema instanceof z.ZodUnion)
    return schema.options.find((option) => option instanceof z.ZodObject) ?? schema;
  return schema;
}

function chosenOf(union: z.ZodDiscriminatedUnion, value: unknown): z.core.$ZodType | undefined {
  const key = union.def.discriminator;
  return union.options.find((option) => {
    const word = option instanceof z.ZodObject ? stepInto(option, key) : undefined;
    return word && z.safeParse(word, valueAt(value, [key])).success;
  });
}

type Issue = z.core.$ZodIssue;

/** Where the checked value stands, what it is and what it should have been. */
interface Checked {
  readonly schema: z.core.$ZodType;
  readonly value: unknown;
  /** Of the value in the file. */
  readonly at: KeyPath;
}

/** Adds a fault for each issue; several when several keys are unknown. */
export function addIssues(faults: FaultList, checked: Checked, issues: readonly Issue[]): void {
  for (const issue of issues) addIssue(faults, checked, issue);
}

function addIssue(faults: FaultList, checked: Checked, issue: Issue): void {
  const path = [...checked.at, ...issue.path];
  const schema = schemaAt(checked, issue.path);
  const value = valueAt(checked.value, issue.path);
  if (issue.code === 'unrecognized_keys') {
    const known = schema ? keysOf({ schema, value }) : [];
    const group = schema && { schema, value };
    for (const key of issue.keys) faults.add([...path, key], () => unknownKey(key, known, group));
    return;
  }
  const meant = issue.code === 'invalid_union' ? meantShape(issue.errors) : undefined;
  if (meant && schema instanceof z.ZodUnion) {
    addIssues(faults, { schema: schema.options[meant.at] ?? schema, value, at: path }, meant.issues);
    return;
  }
  faults.add(path, () => (value === undefined ? missing(issue, schema) : sentence(issue, value, schema)));
}

/** Of several shapes that a value may have, the closest one: its type is right, and only details are wrong. */
function meantShape(shapes: readonly (readonly Issue[])[]) {
  const at = shapes.findIndex(
    (issues) => !issues.some(({ code, path }) => code === 'invalid_type' && path.length === 0),
  );
  const issues = shapes[at];
  return issues && { at, issues };
}

const secretName = /pass(word|wd|phrase)?$|secret|token|api_?key/i;

function unknownKey(key: string, known: readonly string[], group: Checking | undefined): string {
  if (secretName.test(key)) {
    const remedy = known.includes(`${key}_file`)
      ? `give its path as "${key}_file"`
      : 'name that file instead';
    return `secrets may not stand in this file; write it to a separate file (chmod 600) and ${remedy}`;
  }
  const guess = didYouMean(key, known);
  if (guess) return `unknown key; did you mean "${guess}"?`;
  const inner = group && innerKey(key, known, group);
  if (inner) return `unknown key; did you mean "${inner[1]}" in the group "${inner[0]}"?`;
  return known.length > 0
    ? `unknown key; remove it (known here: ${known.join(', ')})`
    : 'unknown key; remove it';
}

/** The group and its key that `key` names in one word: `loglevel` or `log_level` is `level` in `log`. */
function innerKey(key: string, known: readonly string[], { schema, value }: Checking) {
  const letters = (word: string): string => word.replaceAll(/[^a-z0-9]/giu, '').toLowerCase();
  for (const outer of known) {
    const inside = schemaAt({ schema, value }, [outer]);
    const keys = inside ? keysOf({ schema: inside, value: valueAt(value, [outer]) }) : [];
    const found = keys.find((each) => letters(outer + each) === letters(key));
    if (found !== undefined) return [outer, found] as const;
  }
  return undefined;
}

/** Characters of a truncated word that identify it. */
const prefix_chars_min = 3;

/** Adds a fault for a name that is none of `known`: most often a typing error. */
export function refuseUnknown(
  name: string,
  { at, known, sentence, otherwise }: NameRule,
  faults: FaultList,
): void {
  if (known.includes(name)) return;
  faults.add(at, () => {
    const guess = didYouMean(name, known);
    return sentence(guess ? texts.did_you_mean(guess) : otherwise);
  });
}

interface NameRule {
  readonly at: KeyPath;
  readonly known: readonly string[];
  /** What is wrong, with the remedy. */
  readonly sentence: (remedy: string) => string;
  /** The remedy where nothing similar is known. */
  readonly otherwise: string;
}

/** The known word that was probably meant. */
export function didYouMean(word: string, known: readonly string[]): string | undefined {
  if (known.length === 0) return undefined;
  const guess = closest(word, known);
  // A word that was cut short is further away than any slip: lat for latitude.
  const longer = known.filter((each) => word.length >= prefix_chars_min && each.startsWith(word));
  if (longer.length === 1) return longer[0];
  const slips_max = word.length <= 3 ? 1 : Math.max(2, Math.floor(word.length / 3));
  return distance(word, guess) <= slips_max ? guess : undefined;
}

function missing(issue: Issue, schema: z.core.$ZodType | undefined): string {
  const description = schema && z.globalRegistry.get(schema)?.description;
  const words = schema instanceof z.ZodEnum ? schema.options.map(String) : choicesOf(issue);
  const hint = description ?? words?.join(', ');
  return hint ? `is missing; add it (${hint})` : 'is missing; add it';
}

/** The values of the key that distinguishes several shapes. */
function choicesOf(issue: Issue): readonly string[] | undefined {
  return issue.code === 'invalid_union' && 'options' in issue ? issue.options?.map(String) : undefined;
}

/** What is wrong and its remedy. */
function sentence(issue: Issue, value: unknown, schema: z.core.$ZodType | undefined): string {
  if (issue.code === 'invalid_type') return wrongType(issue, value, schema);
  if (issue.code === 'invalid_value') return wrongWord(issue.values.map(String), value);
  if (issue.code === 'invalid_union') return wrongShape(issue, value);
  if (issue.code === 'too_small') return tooSmall(issue, value);
  if (issue.code === 'too_big') {
    return isCounted(issue.origin)
      ? `is too long; ${issue.maximum} is the most`
      : `is ${show(value)}, which is too large; write ${issue.maximum} or less`;
  }
  if (issue.code === 'invalid_format') return wrongFormat(issue, value);
  return issue.message;
}

function tooSmall(issue: z.core.$ZodIssueTooSmall, value: unknown): string {
  if (isCounted(issue.origin)) return 'is empty; give it a value or remove the key';
  const least = issue.inclusive ? `${issue.minimum} or more` : `more than ${issue.minimum}`;
  return `is ${show(value)}, which is too small; write ${least}`;
}

function isCounted(origin: string): boolean {
  return origin === 'string' || origin === 'array' || origin === 'set' || origin === 'map';
}

const typeNames: Readonly<Record<string, string>> = {
  string: 'a text',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  array: 'a list (lines that begin with "- ")',
  object: 'a group of keys',
  record: 'a group of keys',
};

function wrongType(
  issue: z.core.$ZodIssueInvalidType,
  value: unknown,
  schema: z.core.$ZodType | undefined,
): string {
  const format = 'format' in issue ? String(issue.format) : '';
  const wanted =
    (format.includes('int') ? 'a whole number' : typeNames[issue.expected]) ?? `of type ${issue.expected}`;
  if (value === null) return `has no value; write ${wanted} or remove the key`;
  const keys = issue.expected === 'object' && schema ? keysOf({ schema, value: {} }) : [];
  const hint = keys.length > 0 ? ` (${some(keys)})` : quotesHint(issue.expected, value);
  return `is ${show(value)}; write ${wanted}${hint}`;
}

/** Keys that a sentence names. */
const keys_named_max = 6;

function some(keys: readonly string[]): string {
  const named = keys.slice(0, keys_named_max).join(', ');
  return keys.length > keys_named_max ? `${named}, ...` : named;
}

/** None of several shapes fits. */
function wrongShape(issue: z.core.$ZodIssueInvalidUnion, value: unknown): string {
  const words = choicesOf(issue);
  if (words) return wrongWord(words, value);
  const wanted = issue.errors
    .flat()
    .flatMap((inner) => (inner.code === 'invalid_type' ? [inner.expected] : []));
  return `is ${show(value)}; write ${wanted.map((type) => typeNames[type] ?? `of type ${type}`).join(' or ')}`;
}

/** YAML makes a text of what stands in quotes, and a number or a truth of some things that do not. */
function quotesHint(expected: string, value: unknown): string {
  if (expected === 'string' && typeof value !== 'object') return ' in quotes';
  const isNumber = typeof value === 'string' && value.trim() !== '' && Number.isFinite(Number(value));
  return expected === 'number' && isNumber ? ' without quotes' : '';
}

function wrongWord(words: readonly string[], value: unknown): string {
  if (typeof value === 'string' && words.includes(value))
    return `is ${show(value)}; write ${value} without quotes`;
  const guess = typeof value === 'string' ? didYouMean(value, words) : undefined;
  const choices = [...new Set(words)].join(', ');
  return `is ${show(value)}; ${guess ? `did you mean "${guess}"? (${choices})` : `write one of ${choices}`}`;
}

function wrongFormat(issue: z.core.$ZodIssueInvalidStringFormat, value: unknown): string {
  if (issue.format === 'regex') return `is ${show(value)}, which ${issue.message}`;
  if (issue.format === 'uuid') {
    return `is ${show(value)}, which is not a UUID; write it like 3f0c1f6e-52a4-4c0e-9d6b-1f2a7c9e4b10`;
  }
  if (issue.format === 'starts_with' && 'prefix' in issue) {
    return `is ${show(value)}; write a text that begins with ${show(issue.prefix)}`;
  }
  if (issue.format === 'url') {
    const remedy = issue.message.startsWith('write ')
      ? issue.message
      : 'write an address such as https://kits.example.com';
    return `is ${show(value)}; ${remedy}`;
  }
  return `is ${show(value)}, which is not a valid ${issue.format}; correct it`;
}

/** A value as it stands in a sentence; long ones are cut, and logins of addresses left out. */
function show(value: unknown): string {
  if (value === null || value === undefined) return 'empty';
  if (Array.isArray(value)) return 'a list';
  if (typeof value === 'object') return 'a group of keys';
  const shown = typeof value === 'string' ? withoutLogin(value) : value;
  const text = typeof shown === 'number' ? shown.toString() : JSON.stringify(shown);
  return text.length > 60 ? `${text.slice(0, 57)}..."` : text;
}

/** The address without user name and password: people paste whole addresses of streams. */
function withoutLogin(text: string): string {
  return text.replace(/^([a-z][\w+.-]*:\/\/)[^/]*@/iu, '$1***@');
}
