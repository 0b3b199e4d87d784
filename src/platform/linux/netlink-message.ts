/** Frames of netlink and attributes of rtnetlink (rtnetlink(7)): bytes in, records out. Nothing here trusts a length. */

export interface Message {
  readonly type: number;
  readonly flags: number;
  readonly seq: number;
  readonly body: Buffer;
}

/** By attribute number. */
export type Attributes = ReadonlyMap<number, Buffer>;

const header_bytes = 16;
const attribute_header_bytes = 4;
/** The two top bits of an attribute's type are flags. */
const attribute_type_mask = 0x3fff;
const flags_dump_request = 0x1 | 0x300;

/** The messages of one datagram; what is cut off or inconsistent at the end is left out. */
export function readMessages(datagram: Buffer): readonly Message[] {
  const messages: Message[] = [];
  for (let at = 0; at + header_bytes <= datagram.length;) {
    const length = datagram.readUInt32LE(at);
    if (length < header_bytes || at + length > datagram.length) break;
    messages.push({
      type: datagram.readUInt16LE(at + 4),
      flags: datagram.readUInt16LE(at + 6),
      seq: datagram.readUInt32LE(at + 8),
      body: datagram.subarray(at + header_bytes, at + length),
    });
    at += aligned(length);
  }
  return messages;
}

/** A request for all entries of one kind, of every address family. */
export function dumpRequest(type: number, seq: number, family_header_bytes: number): Buffer {
  const request = Buffer.alloc(header_bytes + family_header_bytes);
  request.writeUInt32LE(request.length, 0);
  request.writeUInt16LE(type, 4);
  request.writeUInt16LE(flags_dump_request, 6);
  request.writeUInt32LE(seq, 8);
  return request;
}

/** The attributes that follow a header of `from` bytes. */
export function readAttributes(body: Buffer, from: number): Attributes {
  const attributes = new Map<number, Buffer>();
  for (let at = from; at + attribute_header_bytes <= body.length;) {
    const length = body.readUInt16LE(at);
    if (length < attribute_header_bytes || at + length > body.length) break;
    attributes.set(
      body.readUInt16LE(at + 2) & attribute_type_mask,
      body.subarray(at + attribute_header_bytes, at + length),
    );
    at += aligned(length);
  }
  return attributes;
}

/** A 32-bit attribute; undefined when it is absent or too short. */
export function uint32(attributes: Attributes, type: number): number | undefined {
  const value = attributes.get(type);
  return value && value.length >= 4 ? value.readUInt32LE(0) : undefined;
}

/** Messages and attributes begin at multiples of four. */
export function aligned(bytes: number): number {
  return (bytes + 3) & ~3;
}
