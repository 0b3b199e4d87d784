/** A connection to upsd: one question at a time, each with a deadline. */
import { connect, type Socket } from 'node:net';
import { DeviceUnreachable } from '../../src/errors.ts';
import { sleep } from '../../src/platform/time.ts';
import { wordsOf } from './nut-lines.ts';

const answer_timeout_ms = 5_000;
/** A UPS with all its outlets tells some 300 variables of 80 characters. */
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

export interface NutSession {
  /** Sends a line; resolves with the words of the answer. Rejects with `UpsdError` or `DeviceUnreachable`. */
  readonly ask: (line: string) => Promise<readonly string[]>;
  /** Sends `LIST what`; resolves with the words of each line between BEGIN and END. */
  readonly list: (what: string) => Promise<readonly (readonly string[])[]>;
  readonly close: () => void;
}

interface Where {
  readonly host: string;
  readonly port: number;
}

/** Connects. The session ends with `signal`; rejects with `DeviceUnreachable` when nobody listens. */
export async function openNut({ host, port }: Where, signal: AbortSignal): Promise<NutSession> {
  const socket = connect({ host, port });
  const lines = new Lines(socket, `upsd at ${host}:${port}`);
  const stop = (): void => void socket.destroy();
  signal.addEventListener('abort', stop, { once: true });
  socket.once('close', () => signal.removeEventListener('abort', stop));
  if (signal.aborted) stop();
  await lines.take(async (next) => next.connected());
  return {
    ask: async (line) =>
      lines.take(async (next) => {
        socket.write(`${line}\n`);
        return next.words();
      }),
    list: async (what) =>
      lines.take(async (next) => {
        socket.write(`LIST ${what}\n`);
        const rows: (readonly string[])[] = [];
        await next.words();
        for (;;) {
          const row = await next.words();
          if (row[0] === 'END') return rows;
          rows.push(row);
          if (rows.length > rows_max) throw new DeviceUnreachable(`LIST ${what}: upsd answers without end`);
        }
      }),
    close: stop,
  };
}

interface Next {
  connected(): Promise<void>;
  words(): Promise<readonly string[]>;
}

/** Cuts what the socket says into lines and gives them out while a question is open. */
class Lines {
  readonly #socket: Socket;
  readonly #peer: string;
  readonly #gone: Promise<never>;
  #text = '';
  #wake: () => void = () => undefined;

  constructor(socket: Socket, peer: string) {
    this.#socket = socket;
    this.#peer = peer;
    let reason = 'closed the connection';
    socket.setEncoding('utf8');
    socket.on('data', (chunk: string) => {
      this.#text += chunk;
      if (this.#text.length > answer_chars_max) socket.destroy(new Error('answers without end'));
      this.#wake();
    });
    socket.on('error', (error) => {
      reason = error.message;
    });
    this.#gone = new Promise((_, reject) => {
      socket.once('close', () => reject(new DeviceUnreachable(`${peer}: ${reason}`)));
    });
    this.#gone.catch(() => undefined);
  }

  /** Runs one exchange under a deadline. One that failed half-way leaves the connection of no use, so it is ended. */
  async take<T>(exchange: (next: Next) => Promise<T>): Promise<T> {
    const over = new AbortController();
    const late = sleep(answer_timeout_ms, over.signal).then(() => {
      if (over.signal.aborted) return new Promise<never>(() => undefined);
      throw new DeviceUnreachable(`${this.#peer}: no answer within ${answer_timeout_ms / 1_000} s`);
    });
    late.catch(() => undefined);
    const next: Next = {
      connected: async () =>
        new Promise((resolve) => {
          this.#socket.once('connect', () => resolve());
        }),
      words: async () => this.#words(),
    };
    try {
      return await Promise.race([exchange(next), this.#gone, late]);
    } catch (error) {
      if (!(error instanceof UpsdError)) this.#socket.destroy();
      throw error;
    } finally {
      over.abort();
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
