/** Echo requests by one device and the answers that belong to them. */
import { randomBytes } from 'node:crypto';
import { DeviceRejected, messageOf } from '../../../src/errors.ts';
import {
  canonicalIp,
  type EchoReply,
  type EchoSocket,
  familyOf,
  type Family,
  openIcmp,
  reasonOf,
} from '../../../src/platform/bound-socket.ts';

/** What became of one question. `refused`: this process may not ask in this way at all. */
export type Echo = { readonly rtt_ms: number } | { readonly reason: string; readonly refused?: true };

export interface Echoes {
  /** Resolves within the timeout, and never rejects. */
  ask(ip: string): Promise<Echo>;
  close(): void;
}

interface Waiting {
  readonly from: string;
  readonly sent_ms: number;
  readonly answer: (echo: Echo) => void;
}

const token_bytes = 8;
const payload_bytes = token_bytes + 4;
const no_answer = 'no answer';
const stopped = 'stopped';

/**
 * Echo requests that are told apart by their payload: a token of this process and a serial number. The identifier of
 * ICMP cannot serve, since kernels and NATs change it; two links that ask the same target never get each other's answers.
 */
export function icmpEchoes({
  device,
  timeout_ms,
}: {
  readonly device: string;
  readonly timeout_ms: number;
}): Echoes {
  const token = randomBytes(token_bytes);
  const waiting = new Map<number, Waiting>();
  const sockets = new Map<Family, Promise<EchoSocket>>();
  let serial = 0;
  let closed = false;

  const onReply = ({ from, payload, received_ms }: EchoReply): void => {
    if (payload.length !== payload_bytes || !payload.subarray(0, token_bytes).equals(token)) return;
    const asked = waiting.get(payload.readUInt32BE(token_bytes));
    if (asked === undefined || asked.from !== from) return;
    const rtt_ms = Math.max(0, received_ms - asked.sent_ms);
    asked.answer(rtt_ms <= timeout_ms ? { rtt_ms } : { reason: no_answer });
  };
  const socketOf = async (family: Family): Promise<EchoSocket> => {
    const open = sockets.get(family) ?? openIcmp({ device, family, onReply });
    sockets.set(family, open);
    open.catch(() => sockets.delete(family));
    return open;
  };
  /** A socket that could not send may be bound to a device that is gone: the next question opens a new one. */
  const forget = (family: Family): void => {
    const open = sockets.get(family);
    sockets.delete(family);
    void open?.then(
      (socket) => socket.close(),
      () => undefined,
    );
  };
  const exchange = async (ip: string, family: Family): Promise<Echo> => {
    const socket = await socketOf(family);
    if (closed) return { reason: stopped };
    serial = (serial + 1) >>> 0;
    const number = serial;
    const payload = Buffer.alloc(payload_bytes);
    token.copy(payload);
    payload.writeUInt32BE(number, token_bytes);
    const sent_ms = performance.now();
    const code = socket.send(ip, number, payload);
    if (code !== null) {
      forget(family);
      return { reason: reasonOf(code) };
    }
    return new Promise((resolve) => {
      const answer = (echo: Echo): void => {
        clearTimeout(timer);
        waiting.delete(number);
        resolve(echo);
      };
      // After a pause of this process timers come before sockets: one more round lets an answer that is there be read.
      let timer = setTimeout(() => {
        timer = setTimeout(() => answer({ reason: no_answer }), 1);
      }, timeout_ms);
      waiting.set(number, { from: canonicalIp(ip), sent_ms, answer });
    });
  };
  return {
    async ask(ip) {
      const family = familyOf(ip);
      if (family === null) return { reason: `${ip} is no IP address` };
      try {
        return await exchange(ip, family);
      } catch (error) {
        if (error instanceof DeviceRejected) return { reason: messageOf(error), refused: true };
        return { reason: messageOf(error) };
      }
    },
    close() {
      closed = true;
      for (const family of sockets.keys()) forget(family);
      for (const { answer } of waiting.values()) answer({ reason: stopped });
    },
  };
}
