/** One MAVLink frame whose checksum was verified: where its parts stand in the bytes that came in. */

export const stx_v1 = 0xfe;
export const stx_v2 = 0xfd;
/** Start byte, header and checksum; the payload comes on top. */
export const overhead_v1 = 8;
export const overhead_v2 = 12;
export const signature_length = 13;
export const frame_length_max = overhead_v2 + 255 + signature_length;

const signed_flag = 1;

export type MavlinkVersion = 1 | 2;

/** Its bytes are a view of the received bytes, which are never modified. */
export interface Frame {
  readonly version: MavlinkVersion;
  readonly seq: number;
  readonly sysid: number;
  readonly compid: number;
  readonly msgid: number;
  readonly signed: boolean;
  /** Null: not signed, or no key is known. */
  readonly signature_ok: boolean | null;
  /** As it came: MAVLink 2 cuts zeros off its end, `decode` puts them back. */
  readonly payload: Uint8Array;
  /** From the start byte to the checksum or signature. */
  readonly bytes: Uint8Array;
  /** The bytes among which the frame stands, and where: for readers that must not allocate. */
  readonly source: Uint8Array;
  readonly payload_at: number;
  readonly payload_length: number;
}

/**
 * A frame at `at` of `source`, whose length and checksum the caller has verified. Everything is read when asked for: most frames are
 * asked for little, and a small object costs less.
 */
export class FrameView implements Frame {
  readonly source: Uint8Array;
  readonly payload_length: number;
  readonly msgid: number;
  signature_ok: boolean | null = null;
  readonly #at: number;

  constructor(source: Uint8Array, at: number) {
    this.source = source;
    this.#at = at;
    this.payload_length = byte(source, at + 1);
    this.msgid =
      source[at] === stx_v2
        ? byte(source, at + 7) | (byte(source, at + 8) << 8) | (byte(source, at + 9) << 16)
        : byte(source, at + 5);
  }

  get version(): MavlinkVersion {
    return this.source[this.#at] === stx_v2 ? 2 : 1;
  }

  get signed(): boolean {
    return this.version === 2 && (byte(this.source, this.#at + 2) & signed_flag) !== 0;
  }

  get seq(): number {
    return byte(this.source, this.#at + (this.version === 2 ? 4 : 2));
  }

  get sysid(): number {
    return byte(this.source, this.#at + (this.version === 2 ? 5 : 3));
  }

  get compid(): number {
    return byte(this.source, this.#at + (this.version === 2 ? 6 : 4));
  }

  get payload_at(): number {
    return this.#at + (this.version === 2 ? 10 : 6);
  }

  get payload(): Uint8Array {
    return this.source.subarray(this.payload_at, this.payload_at + this.payload_length);
  }

  get bytes(): Uint8Array {
    const tail = 2 + (this.signed ? signature_length : 0);
    return this.source.subarray(this.#at, this.payload_at + this.payload_length + tail);
  }
}

/** The caller has checked the bounds; the zero is for the compiler. */
function byte(bytes: Uint8Array, at: number): number {
  return bytes[at] ?? 0;
}

/** System, message, sequence number and checksum, which covers everything else: 48 bits, exact in a number. */
export function fingerprintOf({ source, payload_at, payload_length, sysid, msgid, seq }: Frame): number {
  const at = payload_at + payload_length;
  const crc = byte(source, at) | (byte(source, at + 1) << 8);
  return crc + seq * 0x1_00_00 + (msgid & 0xff_ff) * 0x1_00_00_00 + sysid * 0x1_00_00_00_00_00;
}
