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

  /** Whether the vehicle does not answer. */
  isUnanswered(now_ms: number): boolean {
    return this.#tries >= tries_max && now_ms - this.#sent_ms >= this.#wait_ms;
  }

  ask(request: FtpRequest): void {
    this.#sequence = (this.#sequence + 1) & 0xffff;
    this.#request = request;
    this.#sent_ms = Number.NEGATIVE_INFINITY;
    this.#tries = 0;
  }

  /** Returns the request to send now, or again without an answer. */
  next(now_ms: number): Frame | undefined {
    if (!this.#request || this.#tries >= tries_max || now_ms - this.#sent_ms < this.#wait_ms)
      return undefined;
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

  /** Returns the answer to the request; undefined: it is none. */
  receive(payload: Frame): FtpAnswer | undefined {
    const [low = 0, high = 0, session = 0, opcode, size = 0, of] = payload;
    const isAnswer = opcode === acknowledged || opcode === refused;
    if (!this.#request || of !== this.#request.opcode || !isAnswer) return undefined;
    if ((low | (high << 8)) !== ((this.#sequence + 1) & 0xffff)) return undefined;
    this.#request = undefined;
    const data = Uint8Array.from(payload.slice(header_length, header_length + size));
    return { session, data, ...(opcode === refused && { error: data[0] ?? 0 }) };
  }
}

export type FileResult = { readonly bytes: Uint8Array } | { readonly fault: string };

/** Reads one small file: opens it, reads it part by part, and closes it. */
export class VehicleFile {
  readonly #path: Uint8Array;
  readonly #size_max: number;
  readonly #exchange = new FtpExchange();
  readonly #parts: number[] = [];
  #session: number | undefined;
  #closing: FileResult | undefined;
  #result: FileResult | undefined;

  constructor(path: string, size_max: number) {
    this.#path = new TextEncoder().encode(path);
    this.#size_max = size_max;
  }

  /** Set once it was read and closed, or cannot be. */
  get result(): FileResult | undefined {
    return this.#result;
  }

  /** Returns the request to send now: the next one, or the same again without an answer. */
  next(now_ms: number): Frame | undefined {
    if (this.#result) return undefined;
    if (!this.#exchange.isWaiting) this.#exchange.ask(this.#request());
    if (this.#exchange.isUnanswered(now_ms)) this.#result = this.#closing ?? { fault: 'no answer' };
    return this.#exchange.next(now_ms);
  }

  receive(payload: Frame): void {
    const answer = this.#exchange.receive(payload);
    if (!answer) return;
    if (this.#closing) this.#result = this.#closing;
    else if (answer.error !== undefined) this.#refused(answer.error);
    else if (this.#session === undefined) this.#session = answer.session;
    else this.#take(answer.data);
  }

  #refused(error: number): void {
    const isEnd = error === ftp_end_of_file && this.#session !== undefined;
    const result = isEnd ? { bytes: Uint8Array.from(this.#parts) } : { fault: `file error ${error}` };
    if (this.#session === undefined) this.#result = result;
    else this.#closing = result;
  }

  #take(data: Uint8Array): void {
    for (const byte of data) this.#parts.push(byte);
    if (this.#parts.length > this.#size_max) this.#closing = { fault: `larger than ${this.#size_max} bytes` };
  }

  #request(): FtpRequest {
    if (this.#session === undefined) return { opcode: ftp.open, data: this.#path };
    if (this.#closing) return { opcode: ftp.terminate, session: this.#session };
    return { opcode: ftp.read, session: this.#session, offset: this.#parts.length };
  }
}
