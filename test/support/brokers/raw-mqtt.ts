/** As much of MQTT 3.1.1 as a subscriber needs, written for speed: the witness must not disturb what it measures. */

/** Packet types of section 2.2.1. */
export const packetTypes = { connack: 2, publish: 3, puback: 4, suback: 9 } as const;

export interface Packet {
  readonly type: number;
  /** The lower half of the first byte. */
  readonly flags: number;
  readonly body: Buffer;
}

export function connectPacket(options: {
  readonly client_id: string;
  readonly clean: boolean;
  readonly username?: string | undefined;
  readonly password?: string | undefined;
}): Buffer {
  const { username, password } = options;
  const flags = (options.clean ? 0x02 : 0) | (username ? 0x80 : 0) | (password ? 0x40 : 0);
  const protocol_level = 4;
  const keepalive_s = 0;
  const parts = [text('MQTT'), Buffer.from([protocol_level, flags, 0, keepalive_s]), text(options.client_id)];
  if (username) parts.push(text(username));
  if (password) parts.push(text(password));
  return packet(0x10, ...parts);
}

/** QoS 1 for every filter. */
export function subscribePacket(packet_id: number, filters: readonly string[]): Buffer {
  const qos = 1;
  return packet(
    0x82,
    uint16(packet_id),
    ...filters.map((filter) => Buffer.concat([text(filter), Buffer.from([qos])])),
  );
}

/** QoS 1, retained. */
export function retainedPublishPacket(
  packet_id: number,
  topic: string,
  payload: string | Uint8Array,
): Buffer {
  return packet(0x33, text(topic), uint16(packet_id), Buffer.from(payload));
}

/** QoS 1, not retained. */
export function publishPacket(packet_id: number, topic: string, payload: string | Uint8Array): Buffer {
  return packet(0x32, text(topic), uint16(packet_id), Buffer.from(payload));
}

export function pubackPacket(packet_id: number): Buffer {
  return packet(0x40, uint16(packet_id));
}

export interface Publication {
  readonly topic: string;
  /** Undefined at QoS 0. */
  readonly packet_id: number | undefined;
  readonly payload: Buffer;
}

export function readPublish({ flags, body }: Packet): Publication {
  const topic_end = 2 + body.readUInt16BE(0);
  const acknowledged = ((flags >> 1) & 3) > 0;
  return {
    topic: body.toString('latin1', 2, topic_end),
    packet_id: acknowledged ? body.readUInt16BE(topic_end) : undefined,
    payload: body.subarray(topic_end + (acknowledged ? 2 : 0)),
  };
}

/** Of MQTT 5, which has properties before the payload; `readPublish` takes them for a part of it. */
export function withoutProperties({ payload, ...publication }: Publication): Publication {
  const length = remainingLength(payload, 0);
  return { ...publication, payload: payload.subarray(length ? length.body_at + length.body_bytes : 0) };
}

/** Cuts a byte stream into packets. */
export function packetReader(onPacket: (packet: Packet) => void): (data: Buffer) => void {
  let rest: Buffer = Buffer.alloc(0);
  return (data) => {
    const bytes = rest.length > 0 ? Buffer.concat([rest, data]) : data;
    let at = 0;
    for (;;) {
      const length = remainingLength(bytes, at + 1);
      if (!length || length.body_at + length.body_bytes > bytes.length) break;
      const end = length.body_at + length.body_bytes;
      const first = bytes.readUInt8(at);
      onPacket({ type: first >> 4, flags: first & 15, body: bytes.subarray(length.body_at, end) });
      at = end;
    }
    rest = bytes.subarray(at);
  };
}

/** Section 2.2.3; undefined when its bytes have not all come yet. */
function remainingLength(
  bytes: Buffer,
  from: number,
): { readonly body_at: number; readonly body_bytes: number } | undefined {
  let body_bytes = 0;
  for (let at = from; at < Math.min(from + 4, bytes.length); at++) {
    const byte = bytes.readUInt8(at);
    body_bytes += (byte & 127) * 128 ** (at - from);
    if (byte < 128) return { body_at: at + 1, body_bytes };
  }
  return undefined;
}

function packet(first: number, ...parts: readonly Buffer[]): Buffer {
  const body = Buffer.concat(parts);
  const length: number[] = [];
  let left = body.length;
  do {
    const more = left >= 128;
    length.push((left % 128) | (more ? 128 : 0));
    left = Math.floor(left / 128);
  } while (left > 0);
  return Buffer.concat([Buffer.from([first, ...length]), body]);
}

function text(value: string): Buffer {
  const bytes = Buffer.from(value);
  return Buffer.concat([uint16(bytes.length), bytes]);
}

function uint16(value: number): Buffer {
  const bytes = Buffer.alloc(2);
  bytes.writeUInt16BE(value);
  return bytes;
}
