/** Asks upsd of Network UPS Tools for the battery of the kit. */
import { readFile } from 'node:fs/promises';
import { DeviceRejected, DeviceUnreachable, messageOf } from '../../src/errors.ts';
import { readingOf } from './nut-lines.ts';
import { type NutSession, openNut, UpsdError } from './nut-session.ts';
import type { PowerOptions } from './options.ts';
import { type Reading, unknown_reading } from './reading.ts';

type NutOptions = NonNullable<PowerOptions['nut']>;

/** Refusals that no second attempt heals. */
const refusals: ReadonlySet<string> = new Set([
  'ACCESS-DENIED',
  'INVALID-PASSWORD',
  'INVALID-USERNAME',
  'PASSWORD-REQUIRED',
  'USERNAME-REQUIRED',
]);
/** upsd is there and has nothing to tell. */
const silences: Readonly<Record<string, string>> = {
  'DATA-STALE': 'upsd has had no fresh data from the UPS for a while; check its cable and its driver',
  'DRIVER-NOT-CONNECTED': 'the driver of the UPS does not run; check upsdrvctl',
};

export interface NutSource {
  /** What the UPS says now. Rejects when upsd is lost (`DeviceUnreachable`) or refuses (`DeviceRejected`). */
  readonly read: () => Promise<Reading>;
  readonly close: () => void;
}

/** Connects, gives user name and password where configured, and finds the UPS. */
export async function openUps(options: NutOptions, signal: AbortSignal): Promise<NutSource> {
  const session = await openNut(options, signal);
  const named = `upsd at ${options.host}:${options.port}`;
  try {
    // LOGIN is never sent: a UPS waits at a shutdown for everyone who is logged in.
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
  const password = await readFile(password_file, 'utf8').catch((error: unknown) => {
    throw new DeviceRejected(`nut.password_file: ${messageOf(error)}`, { cause: error });
  });
  const escaped = password.trim().replaceAll(/["\\]/gu, String.raw`\$&`);
  if (/[\r\n]/u.test(escaped))
    throw new DeviceRejected(`nut.password_file: ${password_file} has several lines`);
  await translated(named, async () => session.ask(`USERNAME ${options.username}`));
  await translated(named, async () => session.ask(`PASSWORD "${escaped}"`));
}

async function findUps(session: NutSession, options: NutOptions, named: string): Promise<string> {
  const rows = await translated(named, async () => session.list('UPS'));
  const names = rows.map(([, name]) => name).filter((name) => name !== undefined);
  if (options.ups !== undefined && names.includes(options.ups)) return options.ups;
  const [only] = names;
  if (options.ups === undefined && only !== undefined && names.length === 1) return only;
  const known = names.length === 0 ? 'it has none' : `it has ${names.join(', ')}`;
  const wanted = options.ups === undefined ? 'which UPS is meant?' : `no UPS is called ${options.ups};`;
  throw new DeviceRejected(`${named}: ${wanted} ${known}; set options.nut.ups`);
}

async function readUps(session: NutSession, ups: string, named: string): Promise<Reading> {
  try {
    const rows = await session.list(`VAR ${ups}`);
    return readingOf(new Map(rows.map(([, , name, value]) => [name ?? '', value ?? ''])));
  } catch (error) {
    const reason = error instanceof UpsdError ? silences[error.code] : undefined;
    if (reason !== undefined) return { ...unknown_reading, reason };
    throw translate(error, named);
  }
}

async function translated<T>(named: string, work: () => Promise<T>): Promise<T> {
  return work().catch((error: unknown) => {
    throw translate(error, named);
  });
}

/** The error that says to the supervisor whether another attempt makes sense. */
function translate(error: unknown, named: string): unknown {
  if (!(error instanceof UpsdError)) return error;
  const sentence = `${named}: ${error.code}`;
  return refusals.has(error.code)
    ? new DeviceRejected(`${sentence}; check options.nut.username and the password`, { cause: error })
    : new DeviceUnreachable(sentence, { cause: error });
}
