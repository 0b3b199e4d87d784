/** Reads parameters of a vehicle (MAVLink guide, "Parameter Protocol"): requests are repeated until they are answered. */
import { type CommandContext, type Command, defineCommand } from '../../../src/toolkit/driver/command.ts';
import { CommandRefused } from '../../../src/platform/errors.ts';
import { report_reserve_ms } from './exchange.ts';
import type { Messages } from '../wire/messages.ts';
import { texts } from './parameter-texts.ts';
import type { Autopilot } from '../reports/kind.ts';
import type { Addressee } from '../vehicles/addressee.ts';
import { z } from 'zod';
import type { JsonObject } from '../../../src/contract/json.ts';
import { type Bounded, notSent, reach } from './admission.ts';

/** More would not fit the report of a task. */
export const parameters_max = 1_900;
/** Of one parameter; with every fifth frame lost in each direction, one of 3,000 is not read. */
const requests_max = 8;
const answer_wait_ms = 500;
/** Requests on their way at the same time. */
const window = 8;
/** A vehicle that sends its list pauses no longer than this, also over a slow radio. */
const pause_max_ms = 2_500;
const progress_every = 50;
const writes_max = 6;
const write_wait_ms = 1_000;
/** Index of a request by name. */
const by_name = -1;

export interface ReadParameters {
  /** By name; null: not a number. */
  readonly values: ReadonlyMap<string, number | null>;
  /** Names that were not answered: the vehicle has no such parameter. */
  readonly unanswered: readonly string[];
}

interface Request {
  readonly param_id: string;
  readonly param_index: number;
  requests: number;
  sent_ms: number;
}

/** Resolves with the named parameters, or with all of them. Throws `CommandRefused` if the vehicle does not answer. */
export async function readParameters(
  to: Addressee,
  names: readonly string[] | undefined,
  context: CommandContext,
): Promise<ReadParameters> {
  const reading = new Reading(to, names, context);
  const time_ms = Math.max(0, context.remaining_ms() - report_reserve_ms);
  const end = await to.changes.until(() => reading.look(performance.now()), time_ms, context.signal);
  if (end === 'complete') return reading.result;
  const done = reading.result.values.size;
  if (context.signal.aborted) throw new CommandRefused(texts.stopped(to.name, done));
  throw new CommandRefused(end?.reason ?? texts.too_late(to.name, done));
}

type Stored = Messages['PARAM_VALUE'];

/** Returns those of the named parameters that the vehicle answers within the time; `enough` of them end the wait. */
export async function readSome(
  to: Addressee,
  names: readonly string[],
  { context, wait_ms, enough = names.length }: SomeWanted,
): Promise<ReadonlyMap<string, Stored>> {
  const values = new Map<string, Stored>();
  const until_ms = performance.now() + Math.min(wait_ms, context.remaining_ms() - report_reserve_ms);
  let latest = to.contact.latest.last('PARAM_VALUE');
  const look = (): true | undefined => {
    const value = to.contact.latest.last('PARAM_VALUE');
    if (value && value !== latest && names.includes(value.param_id)) values.set(value.param_id, value);
    latest = value;
    return values.size >= enough || undefined;
  };
  for (let left_ms = wait_ms; left_ms > 0 && values.size < enough && !context.signal.aborted;) {
    for (const param_id of names.filter((name) => !values.has(name)))
      to.contact.send('PARAM_REQUEST_READ', { ...to.contact.target, param_id, param_index: by_name });
    await to.changes.until(look, Math.min(answer_wait_ms, left_ms), context.signal);
    left_ms = until_ms - performance.now();
  }
  return values;
}

interface SomeWanted {
  readonly context: CommandContext;
  readonly wait_ms: number;
  readonly enough?: number;
}

/** Writes a parameter that was read, again where that is not answered, and returns it as the vehicle reports it then. */
export async function writeParameter(
  to: Addressee,
  { param_id, param_type }: Stored,
  value: number,
  context: CommandContext,
): Promise<number | null | undefined> {
  const isInBits = to.contact.autopilot === 'px4' && readers.has(param_type);
  for (let sent = 0; sent < writes_max && context.remaining_ms() > report_reserve_ms; sent += 1) {
    const before = to.contact.latest.last('PARAM_VALUE');
    const param_value = bitsOf(value, isInBits);
    to.contact.send('PARAM_SET', { ...to.contact.target, param_id, param_value, param_type });
    const answer = await to.changes.until(
      () => {
        const latest = to.contact.latest.last('PARAM_VALUE');
        return latest !== before && latest?.param_id === param_id ? latest : undefined;
      },
      Math.min(write_wait_ms, context.remaining_ms() - report_reserve_ms),
      context.signal,
    );
    if (answer) return valueOf(answer, to.contact.autopilot);
    if (context.signal.aborted) return undefined;
  }
  return undefined;
}

type End = 'complete' | { readonly reason: string };

class Reading {
  readonly #to: Addressee;
  readonly #context: CommandContext;
  readonly #hasRestarted: () => boolean;
  readonly #values = new Map<string, number | null>();
  /** Indices that were received, while all are read. */
  readonly #indices = new Set<number>();
  readonly #unanswered: string[] = [];
  #open: Request[] | undefined;
  #count: number | undefined;
  #lists = 0;
  #received_ms = Number.NEGATIVE_INFINITY;
  #latest: Messages['PARAM_VALUE'] | undefined;

  constructor(to: Addressee, names: readonly string[] | undefined, context: CommandContext) {
    this.#to = to;
    this.#context = context;
    this.#hasRestarted = to.watchStart();
    this.#latest = to.contact.latest.last('PARAM_VALUE');
    if (names) this.#open = [...new Set(names)].map((param_id) => requestOf(param_id, by_name));
  }

  get result(): ReadParameters {
    return { values: this.#values, unanswered: this.#unanswered };
  }

  /** Takes what was received, sends what is due, and returns how the reading ended. Called with each message. */
  look(now_ms: number): End | undefined {
    const { name, contact } = this.#to;
    if (this.#hasRestarted()) return { reason: texts.interrupted(name) };
    const value = contact.latest.last('PARAM_VALUE');
    if (value && value !== this.#latest) this.#take(value, now_ms);
    this.#latest = value;
    if (this.#count !== undefined && this.#count > parameters_max)
      return { reason: texts.too_many(name, this.#count, parameters_max) };
    if (this.#indices.size === this.#count) return 'complete';
    return this.#open ? this.#request(this.#open, now_ms) : this.#list(now_ms);
  }

  #take(value: Messages['PARAM_VALUE'], now_ms: number): void {
    const { param_id, param_index, param_count } = value;
    const isNamed = this.#open?.some((each) => each.param_index === by_name && each.param_id === param_id);
    const isListed = this.#isAll && param_index < param_count;
    if (isNamed !== true && !isListed) return;
    // A vehicle that sends ever new names for one index would fill the memory and the report.
    if (isListed && this.#indices.has(param_index) && !this.#values.has(param_id)) return;
    this.#values.set(param_id, valueOf(value, this.#to.contact.autopilot));
    this.#open = this.#open?.filter((each) => each.param_id !== param_id || each.param_index !== by_name);
    if (isListed) this.#note(value, now_ms);
  }

  #note({ param_index, param_count }: Messages['PARAM_VALUE'], now_ms: number): void {
    if (!this.#indices.has(param_index)) this.#received_ms = now_ms;
    this.#count = param_count;
    this.#indices.add(param_index);
    this.#open = this.#open?.filter((each) => each.param_index !== param_index);
    if (this.#indices.size % progress_every !== 0) return;
    const pct = Math.floor((100 * this.#indices.size) / param_count);
    this.#context.progress(texts.reading(this.#to.name, this.#indices.size, param_count), pct);
  }

  /** Whether all parameters are read, and not named ones. */
  get #isAll(): boolean {
    return this.#lists > 0;
  }

  /** Requests the list; once it pauses, the parameters that are missing. */
  #list(now_ms: number): End | undefined {
    if (now_ms - this.#received_ms < pause_max_ms) return undefined;
    const { contact, name } = this.#to;
    if (this.#count !== undefined) {
      const indices = Array.from({ length: this.#count }, (_, index) => index);
      this.#open = indices.filter((each) => !this.#indices.has(each)).map((each) => requestOf('', each));
      return this.#request(this.#open, now_ms);
    }
    if (this.#lists >= requests_max) return { reason: texts.unanswered(name, requests_max) };
    this.#lists += 1;
    this.#received_ms = now_ms;
    contact.send('PARAM_REQUEST_LIST', contact.target);
    return undefined;
  }

  /** Sends the first requests that are due; gives up the requests that were sent too often. */
  #request(open: readonly Request[], now_ms: number): End | undefined {
    const { contact, name } = this.#to;
    for (const each of open.slice(0, window)) {
      if (now_ms - each.sent_ms < answer_wait_ms) continue;
      if (each.requests >= requests_max) this.#giveUp(each);
      else {
        const { param_id, param_index } = each;
        contact.send('PARAM_REQUEST_READ', { ...contact.target, param_id, param_index });
        each.requests += 1;
        each.sent_ms = now_ms;
      }
    }
    if (this.#open?.length !== 0) return undefined;
    if (this.#count !== undefined && this.#indices.size < this.#count)
      return { reason: texts.incomplete(name, this.#indices.size, this.#count) };
    if (this.#values.size > 0) return 'complete';
    return { reason: texts.none_answered(name, this.#unanswered.join(', '), requests_max) };
  }

  #giveUp(request: Request): void {
    this.#open = this.#open?.filter((each) => each !== request);
    if (request.param_index === by_name) this.#unanswered.push(request.param_id);
  }
}

function requestOf(param_id: string, param_index: number): Request {
  return { param_id, param_index, requests: 0, sent_ms: Number.NEGATIVE_INFINITY };
}

// The value of a parameter, which autopilots store in a float in two ways. Pure.

const view = new DataView(new ArrayBuffer(4));
const float_digits = 7;

/** MAV_PARAM_TYPE of integers, as they stand in the bits of the field. */
const readers: ReadonlyMap<number, () => number> = new Map([
  [1, () => view.getUint8(0)],
  [2, () => view.getInt8(0)],
  [3, () => view.getUint16(0, true)],
  [4, () => view.getInt16(0, true)],
  [5, () => view.getUint32(0, true)],
  [6, () => view.getInt32(0, true)],
]);

/** Returns null for a value that is no number. ArduPilot converts integers to floats, PX4 stores their bits. */
export function valueOf(
  { param_value, param_type }: Pick<Messages['PARAM_VALUE'], 'param_type' | 'param_value'>,
  autopilot: Autopilot,
): number | null {
  view.setUint32(0, param_value, true);
  const integer = readers.get(param_type);
  if (integer && autopilot === 'px4') return integer();
  const value = view.getFloat32(0, true);
  if (!Number.isFinite(value)) return null;
  return integer ? value : Number(value.toPrecision(float_digits));
}

/** Returns the field for a value: the opposite, for the simulated vehicle. */
export function bitsOf(value: number, isIntegerInBits: boolean): number {
  if (isIntegerInBits) view.setInt32(0, value, true);
  else view.setFloat32(0, value, true);
  return view.getUint32(0, true);
}

// The command `get_params`: reads parameters of the autopilot for diagnosis. Nothing here writes one.

/** 1,400 parameters over a radio of 57,600 baud, with losses. */
const read_timeout_ms = 180_000;
const names_max = 100;
/** Length of the field. */
const name_chars_max = 16;

// Without a pattern in the published schema: the service reads no foreign regular expressions.
const name = z
  .string()
  .min(1)
  .max(name_chars_max)
  .refine((text) => /^[A-Za-z0-9_-]+$/u.test(text), 'must have only letters, digits, _ and -');

export function parameterCommands(vehicle: Bounded): readonly Command[] {
  const names = z
    .array(name)
    .min(1)
    .max(names_max)
    .optional()
    .describe('names of parameters; all when omitted')
    .meta({ title: 'Names' });
  const prefix = name
    .optional()
    .describe('only parameters whose names begin with this; all are read for it')
    .meta({ title: 'Prefix' });
  return [
    defineCommand({
      name: 'get_params',
      description: 'Read parameters of the autopilot, for diagnosis. Changes nothing on the vehicle.',
      risk_level: 'low',
      requires_approval: false,
      repeatable: true,
      timeout_ms: read_timeout_ms,
      input: z.strictObject({ names, prefix }),
      handle: async (input, context) => read(vehicle, input, context),
    }),
  ];
}

interface Wanted {
  readonly names?: readonly string[] | undefined;
  readonly prefix?: string | undefined;
}

async function read(
  vehicle: Bounded,
  { names, prefix }: Wanted,
  context: CommandContext,
): Promise<JsonObject> {
  if (names && prefix !== undefined) throw notSent(texts.names_and_prefix);
  const { to } = reach(vehicle, context);
  const { values, unanswered } = await readParameters(to, names, context);
  const chosen = [...values].filter(([key]) => prefix === undefined || key.startsWith(prefix));
  const sorted = chosen.toSorted(([a], [b]) => (a < b ? -1 : 1));
  return {
    count: sorted.length,
    parameters: Object.fromEntries(sorted),
    ...(unanswered.length > 0 ? { unanswered: [...unanswered] } : {}),
  };
}
