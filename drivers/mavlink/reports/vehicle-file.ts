/** MAVLink FTP (services/ftp) with a vehicle: one request at a time, and the reading of a small file with it. */
import type { Messages } from '../wire/messages.ts';

type Frame = Messages['FILE_TRANSFER_PROTOCOL']['payload'];

export const ftp = { terminate: 1, list: 3, open: 4, read: 5, checksum: 14 } as const;
type Opcode = (typeof ftp)[keyof typeof ftp];
export const ftp_end_of_file = 6;
const acknowledged = 128;
const refused = 129;
const header_length = 12;
export const ftp_part_max = 239;
const answer_wait_ms = 1_000;
const tries_max = 8;

export interface FtpRequest {
  readonly opcode: Opcode;
  readonly session?: number;
  readonly offset?: number;
  /** Of a path or entry. */
  readonly data?: Uint8Array;
}

/** `error`: of the protocol; undefined: it has answered with data. */
export interface FtpAnswer {
  readonly session: number;
  readonly error?: number;
  readonly data: Uint8Array;
}

/** One request at a time, again until it is answered. */
export class FtpExchange {
  #sequence: number;
  #request: FtpRequest | undefined;
  #settle: (answer: FtpAnswer | undefined) => void = () => undefined;
  #sent_ms = Number.NEGATIVE_INFINITY;
  #tries = 0;
  readonly #wait_ms: number;

  /** Of two exchanges with one vehicle, the sequences begin apart. */
  constructor({ sequence = 0, wait_ms = answer_wait_ms }: { sequence?: number; wait_ms?: number } = {}) {
    this.#sequence = sequence;
    this.#wait_ms = wait_ms;
  }

  /** Whether an answer is awaited. */
  get isWaiting(): boolean {
    return this.#request !== undefined;
  }

  /** Resolves with the answer; undefined: there is none. */
  async ask(request: FtpRequest): Promise<FtpAnswer | undefined> {
    this.#sequence = (this.#sequence + 1) & 0xffff;
    this.#request = request;
    this.#sent_ms = Number.NEGATIVE_INFINITY;
    this.#tries = 0;
    return new Promise((resolve) => {
      this.#settle = resolve;
    });
  }

  /** Returns the request to send now, or again without an answer. */
  next(now_ms: number): Frame | undefined {
    if (!this.#request || now_ms - this.#sent_ms < this.#wait_ms) return undefined;
    if (this.#tries >= tries_max) {
      this.#end(undefined);
      return undefined;
    }
    this.#tries += 1;
    this.#sent_ms = now_ms;
    const { opcode, session = 0, offset = 0, data = new Uint8Array() } = this.#request;
    const payload = new Uint8Array(header_length + ftp_part_max);
    const view = new DataView(payload.buffer);
    view.setUint16(0, this.#sequence, true);
    payload.set([session, opcode, opcode === ftp.read ? ftp_part_max : data.length], 2);
    view.setUint32(8, offset, true);
    payload.set(data.subarray(0, ftp_part_max), header_length);
    return [...payload];
  }

  /** Takes the answer to the request; everything else is none. */
  receive(payload: Frame): void {
    const [low = 0, high = 0, session = 0, opcode, size = 0, of] = payload;
    const isAnswer = opcode === acknowledged || opcode === refused;
    if (!this.#request || of !== this.#request.opcode || !isAnswer) return;
    if ((low | (high << 8)) !== ((this.#sequence + 1) & 0xffff)) return;
    const data = Uint8Array.from(payload.slice(header_length, header_length + size));
    this.#end({ session, data, ...(opcode === refused && { error: data[0] ?? 0 }) });
  }

  #end(answer: FtpAnswer | undefined): void {
    this.#request = undefined;
    this.#settle(answer);
  }
}

type Ask = (request: FtpRequest) => Promise<FtpAnswer | undefined>;

/**
 * Reads a file part by part, as long as `take` returns true, and closes it. Resolves with the error that ended it, which is
 * `ftp_end_of_file` when all was read; `stopped` by `take`; undefined: the vehicle did not answer.
 */
export async function readVehicleFile(
  ask: Ask,
  path: string,
  take: (data: Uint8Array) => boolean | Promise<boolean>,
): Promise<number | 'stopped' | undefined> {
  const opened = await ask({ opcode: ftp.open, data: new TextEncoder().encode(path) });
  if (!opened || opened.error !== undefined) return opened?.error;
  const { session } = opened;
  let end: number | 'stopped' | undefined;
  for (let offset = 0; end === undefined;) {
    const part = await ask({ opcode: ftp.read, session, offset });
    if (!part) return undefined;
    offset += part.data.length;
    end = part.error ?? ((await take(part.data)) ? undefined : 'stopped');
  }
  await ask({ opcode: ftp.terminate, session });
  return end;
}
