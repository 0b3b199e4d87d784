/** A connection to upsd: one request at a time, each with a deadline. */
import { connect, type Socket } from 'node:net';
import { connectionFault } from '../../src/toolkit/device/connection-fault.ts';
import { DeviceUnreachable } from '../../src/platform/errors.ts';
import { deadline } from '../../src/platform/time.ts';
import { texts } from './texts.ts';
import { plausiblePercent, numberOf, type Reading, unknown_reading } from './reading.ts';

const answer_timeout_ms = 5_000;
/** A UPS with all its outlets has some 300 variables of 80 characters. */
const answer_chars_max = 262_144;
const rows_max = 4_096;

/** upsd answered `ERR code`. */
export class UpsdError extends Error {
  override readonly name = 'UpsdError';
  readonly code: string;

  constructor(code: string) {
    super(`upsd: ERR ${code}`);
    this.code = code;
  }
}

/** The connection has ended. */
export class ConnectionLost extends DeviceUnreachable {}

export interface NutSession {
  /** Sends a line; resolves when it is accepted. Rejects with `UpsdError` or `DeviceUnreachable`. */
  readonly order: (line: string) => Promise<void>;
  /** Sends `LIST what`; resolves with the words of each line between BEGIN and END. */
  readonly list: (what: string) => Promise<readonly (readonly string[])[]>;
  readonly close: () => void;
}

interface Address {
  readonly host: string;
  readonly port: number;
}

/** Connects. The session ends with `signal`; rejects with `DeviceUnreachable` when the connection is refused. */
export async function openNut({ host, port }: Address, signal: AbortSignal): Promise<NutSession> {
  const socket = connect({ host, port });
  const peer = `upsd at ${host}:${port}`;
  const lines = new Lines(socket, peer);
  const stop = (): void => void socket.destroy();
  signal.addEventListener('abort', stop, { once: true });
  socket.once('close', () => signal.removeEventListener('abort', stop));
  if (signal.aborted) stop();
  await lines.take(async (next) => next.connected());
  return {
    order: async (line) =>
      lines.take(async (next) => {
        socket.write(`${line}\n`);
        expectUpsd(await next.words(), 'OK', peer);
      }),
    list: async (what) =>
      lines.take(async (next) => {
        socket.write(`LIST ${what}\n`);
        const rows: (readonly string[])[] = [];
        expectUpsd(await next.words(), 'BEGIN', peer);
        for (;;) {
          const row = await next.words();
          if (row[0] === 'END') return rows;
          rows.push(row);
          if (rows.length > rows_max) throw new DeviceUnreachable(texts.endless_list(what));
        }
      }),
    close: stop,
  };
}

function expectUpsd([first]: readonly string[], word: 'BEGIN' | 'OK', peer: string): void {
  if (first !== word) throw new DeviceUnreachable(`${peer}: ${texts.not_upsd}`);
}

interface Next {
  connected(): Promise<void>;
  words(): Promise<readonly string[]>;
}

/** Splits the received text into lines and returns them to the exchange that is open. */
class Lines {
  readonly #socket: Socket;
  readonly #peer: string;
  readonly #gone: Promise<never>;
  #text = '';
  #wake: () => void = () => undefined;

  constructor(socket: Socket, peer: string) {
    this.#socket = socket;
    this.#peer = peer;
    let reason: string = texts.connection_closed;
    socket.setEncoding('utf8');
    socket.on('data', (chunk: string) => {
      this.#text += chunk;
      if (this.#text.length > answer_chars_max) socket.destroy(new Error(texts.endless_answer));
      this.#wake();
    });
    socket.on('error', (error) => {
      reason = connectionFault(error, texts.upsd_refused) ?? error.message;
    });
    this.#gone = new Promise((_, reject) => {
      socket.once('close', () => reject(new ConnectionLost(`${peer}: ${reason}`)));
    });
    this.#gone.catch(() => undefined);
  }

  /** Runs one exchange under a deadline. After a failure half-way the connection is unusable and is closed. */
  async take<T>(exchange: (next: Next) => Promise<T>): Promise<T> {
    const late = Promise.withResolvers<never>();
    const cancel = deadline(answer_timeout_ms, () =>
      late.reject(new DeviceUnreachable(`${this.#peer}: ${texts.answer_timeout(answer_timeout_ms / 1_000)}`)),
    );
    const next: Next = {
      connected: async () =>
        new Promise((resolve) => {
          this.#socket.once('connect', () => resolve());
        }),
      words: async () => this.#words(),
    };
    try {
      return await Promise.race([exchange(next), this.#gone, late.promise]);
    } catch (error) {
      if (!(error instanceof UpsdError)) this.#socket.destroy();
      throw error;
    } finally {
      cancel();
    }
  }

  async #words(): Promise<readonly string[]> {
    let end = this.#text.indexOf('\n');
    while (end < 0) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
      end = this.#text.indexOf('\n');
    }
    const words = wordsOf(this.#text.slice(0, end));
    this.#text = this.#text.slice(end + 1);
    if (words[0] === 'ERR') throw new UpsdError(words[1] ?? 'UNKNOWN');
    return words;
  }
}

/** `VAR`, the UPS, the name and the value; 131,000 words in one line took 0.2 s. */
const words_max = 4;

/** The first words of a line. A quoted word may hold spaces; within quotes a backslash escapes the next character. */
export function wordsOf(line: string): readonly string[] {
  const words: string[] = [];
  for (const [, quoted, bare] of line.matchAll(/"((?:[^"\\]|\\.)*)"|(\S+)/gu)) {
    words.push(bare ?? (quoted ?? '').replaceAll(/\\(.)/gu, '$1'));
    if (words.length === words_max) break;
  }
  return words;
}

/** Limit of a status or an alarm. */
const text_chars_max = 500;

/** Variables of a UPS by name: `ups.status`, `battery.charge`. */
type Variables = ReadonlyMap<string, string>;

/** Of the batteries of one UPS in series, and for a month: beyond are sentinels, such as 65535 V and 2^32 - 1 s. */
const voltage_v_max = 1_000;
const runtime_s_max = 30 * 86_400;

function within(value: number | null, max: number): number | null {
  return value !== null && value >= 0 && value <= max ? value : null;
}

/** Reads the variables. A value that the UPS does not report is null; nothing is estimated from the voltage. */
export function readingOf(variables: Variables): Reading {
  const state = variables.get('ups.status')?.trim().slice(0, text_chars_max) ?? null;
  const tokens = state?.split(/\s+/u) ?? [];
  if (tokens.includes('WAIT')) {
    return { ...unknown_reading, reason: texts.ups_starting };
  }
  const charge = numberOf(variables.get('battery.charge'));
  const runtime_s = numberOf(variables.get('battery.runtime'));
  const percent = charge === null ? null : plausiblePercent(charge);
  return {
    percent,
    charging: chargingOf(tokens, variables.get('battery.charger.status'), percent),
    voltage_v: within(numberOf(variables.get('battery.voltage')), voltage_v_max),
    runtime_s: within(runtime_s, runtime_s_max),
    reports_low: tokens.includes('LB'),
    state,
    reason:
      percent !== null ? null : charge === null ? texts.charge_unknown : texts.charge_impossible(charge),
    alarm: alarmOf(tokens, variables.get('ups.alarm')?.trim() ?? ''),
  };
}

function alarmOf(tokens: readonly string[], text: string): string | null {
  const shutdown = tokens.includes('FSD') ? [texts.forced_shutdown] : [];
  const all = [...shutdown, ...(text === '' ? [] : [text])].join('; ');
  if (all !== '') return all.slice(0, text_chars_max);
  return tokens.includes('ALARM') ? texts.alarm_unnamed : null;
}

/** On the mains without CHRG a full battery is not charging; below that it is unknown, since many drivers do not report it. */
function chargingOf(
  tokens: readonly string[],
  charger: string | undefined,
  percent: number | null,
): boolean | null {
  if (charger !== undefined) return charger.trim() === 'charging';
  if (tokens.includes('DISCHRG') || tokens.includes('OB')) return false;
  if (tokens.includes('CHRG')) return true;
  return tokens.includes('OL') && percent === 100 ? false : null;
}
