/**
 * A station that reads missions with frames that it builds and parses byte by byte: a witness that shares no code with the driver.
 * Layouts and checksum seeds are those of the MAVLink XML.
 */
import { createSocket, type RemoteInfo } from 'node:dgram';

const station = { sysid: 255, compid: 190 } as const;
const request_list = { id: 43, seed: 132 } as const;
const count_message = { id: 44, seed: 221, length: 9 } as const;
const request_int = { id: 51, seed: 196 } as const;
const item_int = { id: 73, seed: 38, length: 38 } as const;
const stx = 0xfd;
const header_bytes = 10;
const tries_max = 40;
const wait_ms = 150;

export interface RawItem {
  readonly command: number;
  readonly frame: number;
  readonly params: readonly number[];
  readonly x: number;
  readonly y: number;
  readonly z: number;
}

function x25(bytes: Uint8Array, seed: number): number {
  let crc = 0xffff;
  for (const byte of [...bytes, seed]) {
    let mixed = (byte ^ (crc & 0xff)) & 0xff;
    mixed = (mixed ^ (mixed << 4)) & 0xff;
    crc = ((crc >> 8) ^ (mixed << 8) ^ (mixed << 3) ^ (mixed >> 4)) & 0xffff;
  }
  return crc;
}

function frameOf(id: number, seed: number, payload: Buffer, seq: number): Buffer {
  const head = Buffer.from([stx, payload.length, 0, 0, seq, station.sysid, station.compid, id, 0, 0]);
  const body = Buffer.concat([head, payload]);
  const crc = x25(body.subarray(1), seed);
  return Buffer.concat([body, Buffer.from([crc & 0xff, crc >> 8])]);
}

/** Returns the payloads of the frames with this id that are addressed to this station, filled up with zeros. */
function payloadsOf(
  datagram: Buffer,
  { id, seed, length }: { readonly id: number; readonly seed: number; readonly length: number },
  target_at: number,
): readonly Buffer[] {
  const found: Buffer[] = [];
  let at = 0;
  while (at + header_bytes < datagram.length && datagram[at] === stx) {
    const end = at + header_bytes + (datagram[at + 1] ?? 0);
    const body = datagram.subarray(at + 1, end);
    if (datagram.readUIntLE(at + 7, 3) === id && x25(body, seed) === datagram.readUInt16LE(end)) {
      const payload = Buffer.alloc(length);
      datagram.copy(payload, 0, at + header_bytes, end);
      if (payload[target_at] === station.sysid && payload[target_at + 1] === station.compid)
        found.push(payload);
    }
    at = end + 2;
  }
  return found;
}

/** Opens a UDP port for the vehicle; `close` ends it. */
export async function openRawClient() {
  const socket = createSocket('udp4');
  let peer: RemoteInfo | undefined;
  let onDatagram: (datagram: Buffer) => void = () => undefined;
  socket.on('message', (datagram, from) => {
    peer = from;
    onDatagram(datagram);
  });
  await new Promise<void>((resolve) => {
    socket.bind(0, '127.0.0.1', resolve);
  });
  let seq = 0;
  /** Sends a request until `look` finds its answer in a datagram. */
  const ask = async <T>(
    frame: (seq: number) => Buffer,
    look: (datagram: Buffer) => T | undefined,
  ): Promise<T> => {
    for (let tries = 0; tries < tries_max; tries += 1) {
      const answer = new Promise<T | undefined>((resolve) => {
        onDatagram = (datagram) => {
          const found = look(datagram);
          if (found !== undefined) resolve(found);
        };
        setTimeout(() => resolve(undefined), wait_ms);
      });
      seq = (seq + 1) & 0xff;
      if (peer) socket.send(frame(seq), peer.port, peer.address);
      const found = await answer;
      if (found !== undefined) return found;
    }
    throw new Error(`no answer to ${tries_max} requests`);
  };
  return {
    port: socket.address().port,
    close: () => socket.close(),
    /** Reads what a vehicle has stored; `type`: 0 mission, 1 fence, 2 rally points. */
    async read(sysid: number, type: number): Promise<readonly RawItem[]> {
      const count = await ask(
        (number) => frameOf(request_list.id, request_list.seed, Buffer.from([sysid, 1, type]), number),
        (datagram) => {
          const [payload] = payloadsOf(datagram, count_message, 2);
          return payload?.[4] === type ? payload.readUInt16LE(0) : undefined;
        },
      );
      const items: RawItem[] = [];
      while (items.length < count) {
        const wanted = items.length;
        const request = Buffer.from([wanted & 0xff, wanted >> 8, sysid, 1, type]);
        items.push(
          await ask(
            (number) => frameOf(request_int.id, request_int.seed, request, number),
            (datagram) => {
              const payload = payloadsOf(datagram, item_int, 32).find(
                (each) => each.readUInt16LE(28) === wanted && each[37] === type,
              );
              return payload && itemOf(payload);
            },
          ),
        );
      }
      return items;
    },
  };
}

function itemOf(payload: Buffer): RawItem {
  return {
    params: [0, 4, 8, 12].map((at) => payload.readFloatLE(at)),
    x: payload.readInt32LE(16),
    y: payload.readInt32LE(20),
    z: payload.readFloatLE(24),
    command: payload.readUInt16LE(30),
    frame: payload[34] ?? 0,
  };
}
