/** The configuration that setup writes: readable YAML with the found devices; incomplete ones are comments. Pure. */
import { parseDocument, stringify } from 'yaml';
import { z } from 'zod';
import type { Json, JsonObject } from '../../contract/json.ts';
import type { Suggestion } from '../../toolkit/driver/suggest.ts';

export interface Found extends Suggestion {
  readonly driver: string;
  /** Of the instance, where the driver has a section already. */
  readonly name?: string;
}

export interface Answers {
  /** Undefined: created at the first start, and not in the file. */
  readonly kit_id: string | undefined;
  readonly kit_name: string | undefined;
  /** `mqtts://host:port`, `wss://host:port/path`, or `none`. */
  readonly broker_url: string;
  readonly username: string | undefined;
  /** Undefined when systemd passes the secret as a credential, or when there is none. */
  readonly password_file: string | undefined;
  readonly ca_file: string | undefined;
  /** Client certificate of the kit, if the broker requires one. */
  readonly cert_file?: string | undefined;
  readonly key_file?: string | undefined;
  /** Undefined: the directory of the package. */
  readonly state_dir: string | undefined;
  readonly runtime_dir: string | undefined;
}

/** Drivers of the kit itself, which need no options. */
const always = ['gateway', 'links'] as const;

/** `before`: the text of a file that a user wrote, of which everything else is kept. */
export function configText(answers: Answers, found: readonly Found[], before?: string): string {
  const { kit_id, kit_name, state_dir, runtime_dir, broker_url: url, ...login } = answers;
  const kit = { kit_id, kit_name, state_dir, runtime_dir };
  const { username, password_file, ca_file, cert_file, key_file } = login;
  const keys = { url, username, password_file, ca_file, cert_file, key_file };
  if (before !== undefined) return changedText(before, { kit, keys }, found);
  const broker = withoutUnknown(keys);
  return [
    '# Configuration of kit-connector, written by "kit-connector setup"; edit it as needed.',
    '# "kit-connector check" validates this file, "kit-connector doctor" diagnoses the kit.',
    '',
    ...aboutKit(kit),
    '',
    ...(url === 'none' ? ['# "none": messages are buffered until a broker is configured.'] : []),
    yaml({ broker }),
    '',
    'drivers:',
    ...always.map((driver) => `  - driver: ${driver}`),
    ...merged(found.filter(({ complete }) => complete)).flatMap((each) => section(each, '')),
    ...incomplete(found).flatMap((each) => section(each, '# ')),
    '',
  ].join('\n');
}

interface Changes {
  readonly kit: Partial<Answers>;
  readonly keys: object;
}

/** A driver that the file has already keeps its devices: what was found of it may be among them. */
function changedText(before: string, { kit, keys }: Changes, found: readonly Found[]): string {
  const file = parseDocument(before);
  const change = (path: readonly string[], value: unknown): void => {
    if (value !== undefined) file.setIn(path, value);
    else if (file.hasIn(path)) file.deleteIn(path);
  };
  for (const [key, value] of Object.entries(kit)) change([key], value);
  for (const [key, value] of Object.entries(keys)) change(['broker', key], value);
  const configured = z.array(z.object({ driver: z.string() })).catch([]);
  const { drivers } = z.object({ drivers: configured }).catch({ drivers: [] }).parse(file.toJS());
  const names = new Set(drivers.map(({ driver }) => driver));
  const fresh = merged(found.filter(({ complete, driver }) => complete && !names.has(driver)));
  for (const { driver, options } of fresh) file.addIn(['drivers'], file.createNode({ driver, options }));
  return file.toString({ lineWidth: 0 });
}

function aboutKit(keys: Partial<Answers>): readonly string[] {
  const known = withoutUnknown(keys);
  return [
    keys.kit_id === undefined
      ? '# The kit id is created at the first start and stored beside the buffer, in the file kit-id.'
      : '# Unique to this kit: every copy of a disk image needs its own (omit it, or use uuidgen).',
    ...(Object.keys(known).length > 0 ? [yaml(known)] : []),
  ];
}

/** One section for each driver, with its own name beside a complete section of the same driver. */
function incomplete(found: readonly Found[]): readonly Found[] {
  const drivers = new Set<string>(always);
  for (const { driver, complete } of found) if (complete) drivers.add(driver);
  const sections = merged(found.filter(({ complete }) => !complete));
  return sections.map((each) => withName(each, drivers.has(each.driver) ? `${each.driver}-2` : undefined));
}

function withName(found: Found, name: string | undefined): Found {
  return name === undefined ? found : { ...found, name };
}

/** One section for each driver: its findings are joined into one list. */
function merged(found: readonly Found[]): readonly Found[] {
  const sections = new Map<string, Found>();
  for (const each of found) {
    const before = sections.get(each.driver);
    const joined = before && {
      ...before,
      what: `${before.what}\n${each.what}`,
      options: joinLists(before.options, each.options),
    };
    sections.set(each.driver, joined ?? each);
  }
  return [...sections.values()];
}

function joinLists(first: JsonObject, second: JsonObject): JsonObject {
  const joined = new Map(Object.entries(first));
  for (const [key, value] of Object.entries(second)) {
    joined.set(
      key,
      isList(joined.get(key)) && isList(value) ? [...listOf(joined.get(key)), ...value] : value,
    );
  }
  return Object.fromEntries(joined);
}

function isList(value: Json | undefined): value is readonly Json[] {
  return Array.isArray(value);
}

function listOf(value: Json | undefined): readonly Json[] {
  return isList(value) ? value : [];
}

function section({ driver, name, what, options }: Found, mark: '' | '# '): readonly string[] {
  const named = name === undefined ? { driver } : { driver, name };
  const body = yaml([{ ...named, ...(Object.keys(options).length > 0 ? { options } : {}) }]);
  const comments = what.split('\n').map((line) => `  # ${line.replaceAll(/\p{Cc}+/gu, ' ')}`);
  const advice = mark === '' ? [] : ['  # complete it and remove the comment marks:'];
  return [...comments, ...advice, ...body.split('\n').map((line) => `  ${mark}${line}`)];
}

export function withoutUnknown(value: object): object {
  return Object.fromEntries(Object.entries(value).filter(([, each]) => each !== undefined));
}

function yaml(value: unknown): string {
  return stringify(value, { lineWidth: 0 }).trimEnd();
}
