/** Reads one small file of a vehicle by MAVLink FTP (services/ftp): opens it, reads it part by part, and closes it. */
import type { Messages } from '../wire/messages.ts';

type Frame = Messages['FILE_TRANSFER_PROTOCOL']['payload'];

const open_read_only = 4;
const read_file = 5;
const terminate_session = 1;
const acknowledged = 128;
const refused = 129;
const error_end_of_file = 6;
const header_length = 12;
const part_max = 239;
const answer_wait_ms = 1_000;
const tries_max = 8;

export type FileResult = { readonly bytes: Uint8Array } | { readonly fault: string };

export class VehicleFile {
  readonly #path: Uint8Array;
  readonly #size_max: number;
  readonly #parts: number[] = [];
  #session: number | undefined;
  #sequence = 0;
  #sent_ms = Number.NEGATIVE_INFINITY;
  #tries = 0;
  #isWaiting = false;
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
    if (this.#result || (this.#isWaiting && now_ms - this.#sent_ms < answer_wait_ms)) return undefined;
    if (this.#tries >= tries_max) {
      this.#result = this.#closing ?? { fault: 'no answer' };
      return undefined;
    }
    if (!this.#isWaiting) this.#sequence = (this.#sequence + 1) & 0xffff;
    this.#isWaiting = true;
    this.#tries += 1;
    this.#sent_ms = now_ms;
    return this.#request();
  }

  receive(payload: Frame): void {
    if (!this.#isWaiting || !this.#isAnswer(payload)) return;
    const [, , session = 0, opcode, size = 0] = payload;
    this.#isWaiting = false;
    this.#tries = 0;
    const data = payload.slice(header_length, header_length + size);
    if (this.#closing) this.#result = this.#closing;
    else if (opcode === refused) this.#refused(data[0] ?? 0);
    else if (this.#session === undefined) this.#session = session;
    else this.#take(data);
  }

  /** Whether it answers the latest request. */
  #isAnswer([low = 0, high = 0, , opcode, , of]: Frame): boolean {
    if (of !== this.#opcode || (opcode !== acknowledged && opcode !== refused)) return false;
    return (low | (high << 8)) === ((this.#sequence + 1) & 0xffff);
  }

  get #opcode(): number {
    if (this.#closing) return terminate_session;
    return this.#session === undefined ? open_read_only : read_file;
  }

  #refused(error: number): void {
    const isEnd = error === error_end_of_file && this.#session !== undefined;
    const result = isEnd ? { bytes: Uint8Array.from(this.#parts) } : { fault: `file error ${error}` };
    if (this.#session === undefined) this.#result = result;
    else this.#closing = result;
  }

  #take(data: readonly number[]): void {
    for (const byte of data) this.#parts.push(byte);
    if (this.#parts.length > this.#size_max) this.#closing = { fault: `larger than ${this.#size_max} bytes` };
  }

  #request(): Frame {
    const isOpening = this.#opcode === open_read_only;
    const data = isOpening ? this.#path : new Uint8Array();
    const payload = new Uint8Array(header_length + part_max);
    const view = new DataView(payload.buffer);
    view.setUint16(0, this.#sequence, true);
    payload[2] = this.#session ?? 0;
    payload[3] = this.#opcode;
    payload[4] = isOpening ? data.length : part_max;
    if (this.#opcode === terminate_session) payload[4] = 0;
    view.setUint32(8, this.#opcode === read_file ? this.#parts.length : 0, true);
    payload.set(data.subarray(0, part_max), header_length);
    return [...payload];
  }
}
