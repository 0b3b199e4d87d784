/** Echo requests by one device and the answers that belong to them. */
import { randomBytes } from 'node:crypto';
import { DeviceRejected, messageOf } from '../../../src/platform/errors.ts';
import { reasonOf } from '../../../src/platform/linux/bound-fd.ts';
import { type EchoReply, type EchoSocket, openIcmp } from '../../../src/platform/linux/bound-icmp.ts';
import { canonicalIp, familyOf, type Family } from '../../../src/platform/linux/socket-address.ts';
import { deadline } from '../../../src/platform/time.ts';
import { texts } from '../texts.ts';

/**
 * What became of one question. `isRepeated`: the answer came to a repetition of the kernel's, so one was lost. `refused`: this
 * process may not ask in this way at all.
 */
export type Echo =
  | { readonly rtt_ms: number; readonly isRepeated?: boolean }
  | { readonly reason: string; readonly refused?: true };

interface Waiting {
  readonly from: string;
  readonly sent_ms: number;
  readonly answer: (echo: Echo) => void;
}

const token_bytes = 8;
const payload_bytes = token_bytes + 4;
const no_answer = 'no answer';
const stopped = 'stopped';

interface EchoesOptions {
  readonly device: string;
  readonly timeout_ms: number;
}

/**
 * Echo requests that are identified by their payload: a token of this process and a serial number. The identifier of
 * ICMP cannot serve, since kernels and NATs change it; two links that ask the same target never get each other's answers.
 */
export class IcmpEchoes {
  readonly #options: EchoesOptions;
  readonly #token = randomBytes(token_bytes);
  readonly #waiting = new Map<number, Waiting>();
  readonly #sockets = new Map<Family, Promise<EchoSocket>>();
  #serial = 0;
  #closed = false;

  constructor(options: EchoesOptions) {
    this.#options = options;
  }

  /** Resolves a little after the timeout at the latest, and never rejects. */
  async ask(ip: string): Promise<Echo> {
    const family = familyOf(ip);
    if (family === null) return { reason: texts.not_an_address(ip) };
    try {
      return await this.#exchange(ip, family);
    } catch (error) {
      const reason = messageOf(error);
      return error instanceof DeviceRejected ? { reason, refused: true } : { reason };
    }
  }

  close(): void {
    this.#closed = true;
    for (const family of this.#sockets.keys()) this.#forget(family);
    for (const { answer } of this.#waiting.values()) answer({ reason: stopped });
  }

  async #exchange(ip: string, family: Family): Promise<Echo> {
    const socket = await this.#socketOf(family);
    if (this.#closed) return { reason: stopped };
    this.#serial = (this.#serial + 1) >>> 0;
    const serial = this.#serial;
    const payload = Buffer.alloc(payload_bytes);
    this.#token.copy(payload);
    payload.writeUInt32BE(serial, token_bytes);
    const sent_ms = performance.now();
    const code = socket.send(ip, serial, payload);
    if (code === null) return this.#answerTo(serial, canonicalIp(ip), sent_ms);
    this.#forget(family);
    return { reason: reasonOf(code) };
  }

  async #answerTo(serial: number, from: string, sent_ms: number): Promise<Echo> {
    return new Promise((resolve) => {
      const answer = (echo: Echo): void => {
        cancel();
        this.#waiting.delete(serial);
        resolve(echo);
      };
      const cancel = deadline(this.#options.timeout_ms, () => answer({ reason: no_answer }));
      this.#waiting.set(serial, { from, sent_ms, answer });
    });
  }

  #receive({ from, payload, received_ms }: EchoReply): void {
    if (payload.length !== payload_bytes || !payload.subarray(0, token_bytes).equals(this.#token)) return;
    const pending = this.#waiting.get(payload.readUInt32BE(token_bytes));
    if (pending === undefined || pending.from !== from) return;
    const rtt_ms = Math.max(0, received_ms - pending.sent_ms);
    pending.answer(rtt_ms <= this.#options.timeout_ms ? { rtt_ms } : { reason: no_answer });
  }

  async #socketOf(family: Family): Promise<EchoSocket> {
    const known = this.#sockets.get(family);
    if (known !== undefined) return known;
    const { device } = this.#options;
    const opening = openIcmp({ device, family, onReply: (reply) => this.#receive(reply) });
    this.#sockets.set(family, opening);
    opening.catch(() => this.#sockets.delete(family));
    return opening;
  }

  /** A socket that could not send may be bound to a device that is gone: the next question opens a new one. */
  #forget(family: Family): void {
    const open = this.#sockets.get(family);
    this.#sockets.delete(family);
    void open?.then(
      (socket) => socket.close(),
      () => undefined,
    );
  }
}
