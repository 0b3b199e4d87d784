/** Reads the battery of the kit from upsd of Network UPS Tools. */
import { readSecretFile } from '../../src/toolkit/device/secret-file.ts';
import { DeviceRejected, DeviceUnreachable } from '../../src/platform/errors.ts';
import { readingOf, type NutSession, openNut, UpsdError } from './nut-session.ts';
import type { PowerOptions } from './options.ts';
import { type Reading, unknown_reading } from './reading.ts';
import { texts } from './texts.ts';

const names_shown_max = 8;
const name_chars_max = 32;

type NutOptions = NonNullable<PowerOptions['nut']>;

/** Errors that another attempt cannot resolve. */
const refusals: ReadonlySet<string> = new Set([
  'ACCESS-DENIED',
  'INVALID-PASSWORD',
  'INVALID-USERNAME',
  'PASSWORD-REQUIRED',
  'USERNAME-REQUIRED',
]);
/** Errors of a upsd that runs and has no data. */
const no_data: ReadonlyMap<string, string> = new Map([
  ['DATA-STALE', texts.data_stale],
  ['DRIVER-NOT-CONNECTED', texts.driver_not_connected],
]);

export interface NutSource {
  /** Reads the UPS. Rejects when upsd is lost (`DeviceUnreachable`) or refuses (`DeviceRejected`). */
  readonly read: () => Promise<Reading>;
  readonly close: () => void;
}

/** Connects, logs in where configured, and finds the UPS. */
export async function openUps(options: NutOptions, signal: AbortSignal): Promise<NutSource> {
  const session = await openNut(options, signal);
  const named = `upsd at ${options.host}:${options.port}`;
  try {
    // LOGIN is never sent: at a shutdown a UPS waits for every client that is logged in.
    await authenticate(session, options, named);
    const ups = await findUps(session, options, named);
    return { read: async () => readUps(session, ups, named), close: session.close };
  } catch (error) {
    session.close();
    throw error;
  }
}

async function authenticate(session: NutSession, options: NutOptions, named: string): Promise<void> {
  if (options.username === undefined || options.password_file === undefined) return;
  const { password_file } = options;
  const password = await readSecretFile('nut.password_file', password_file);
  const escaped = password.trim().replaceAll(/["\\]/gu, String.raw`\$&`);
  if (/[\r\n]/u.test(escaped)) throw new DeviceRejected(texts.password_lines(password_file));
  await translated(named, async () => session.order(`USERNAME ${options.username}`));
  await translated(named, async () => session.order(`PASSWORD "${escaped}"`));
}

async function findUps(session: NutSession, options: NutOptions, named: string): Promise<string> {
  const rows = await translated(named, async () => session.list('UPS'));
  const names = rows.map(([, name]) => name).filter((name) => name !== undefined);
  if (options.ups !== undefined && names.includes(options.ups)) return options.ups;
  const [only] = names;
  if (options.ups === undefined && only !== undefined && names.length === 1) return only;
  const known = names.length === 0 ? texts.ups_none : texts.ups_known(shown(names));
  const fault = options.ups === undefined ? texts.ups_unnamed : texts.ups_unknown(options.ups);
  // No rejection: upsd lists the UPS once its own configuration has it.
  throw new DeviceUnreachable(`${named}: ${fault}; ${known}; set options.nut.ups`);
}

/** Of a list that upsd sends: the sentence that ends with the remedy is cut when it is long. */
function shown(names: readonly string[]): string {
  const some = names.slice(0, names_shown_max).map((name) => name.slice(0, name_chars_max));
  const more = names.length - some.length;
  return [...some, ...(more > 0 ? [texts.more(more)] : [])].join(', ');
}

async function readUps(session: NutSession, ups: string, named: string): Promise<Reading> {
  try {
    const rows = await session.list(`VAR ${ups}`);
    return readingOf(new Map(rows.map(([, , name, value]) => [name ?? '', value ?? ''])));
  } catch (error) {
    const reason = error instanceof UpsdError ? no_data.get(error.code) : undefined;
    if (reason !== undefined) return { ...unknown_reading, reason };
    throw translate(error, named);
  }
}

async function translated<T>(named: string, work: () => Promise<T>): Promise<T> {
  return work().catch((error: unknown) => {
    throw translate(error, named);
  });
}

/** The error class by which the supervisor decides whether to try again. */
function translate(error: unknown, named: string): unknown {
  if (!(error instanceof UpsdError)) return error;
  const sentence = `${named}: ${error.code.slice(0, name_chars_max)}`;
  return refusals.has(error.code)
    ? new DeviceRejected(`${sentence}; check options.nut.username and the password`, { cause: error })
    : new DeviceUnreachable(sentence, { cause: error });
}
