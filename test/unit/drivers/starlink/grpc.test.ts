/** A host in place of a dish that sends frames of HTTP/2 which a dish never sends. */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';
import { describe, expect, it } from 'vitest';
import { openChannel } from '../../../../drivers/starlink/api/grpc.ts';
import { texts } from '../../../../drivers/starlink/texts.ts';

const types = { data: 0, headers: 1, settings: 4, continuation: 9, ping: 6 } as const;
const end_headers = 4;
const stream = 1;

/** RFC 9113, section 4.1. */
function frame(type: keyof typeof types, { flags = 0, id = stream, body = '' }): Buffer {
  const content = Buffer.from(body, 'latin1');
  const head = Buffer.alloc(9);
  head.writeUIntBE(content.length, 0, 3);
  head.writeUInt8(types[type], 3);
  head.writeUInt8(flags, 4);
  head.writeUInt32BE(id, 5);
  return Buffer.concat([head, content]);
}

/** HPACK: `:status: 200` of the static table, and a literal. */
const head = `\x88\x00\x0ccontent-type\x10application/grpc`;
const opened = frame('headers', { flags: end_headers, body: head });
const many = (each: Buffer): Buffer => Buffer.concat(Array<Buffer>(100_000).fill(each));

describe('a dish that floods its channel', () => {
  it.each<[string, Buffer, string]>([
    [
      'with pieces of one byte',
      Buffer.concat([opened, many(frame('data', { body: 'x' }))]),
      texts.answer_in_pieces(4_096),
    ],
    ['with pings', many(frame('ping', { id: 0, body: '12345678' })), texts.not_grpc_at_all],
    ['with settings', many(frame('settings', { id: 0 })), texts.not_grpc_at_all],
    [
      'with headers that never end',
      Buffer.concat([frame('headers', { body: head }), many(frame('continuation', {}))]),
      texts.not_grpc_at_all,
    ],
  ])('%s ends its call with the reason', async (_, flood, reason) => {
    const server = createServer((socket) => {
      socket.on('error', () => undefined);
      socket.once('data', () => socket.write(Buffer.concat([frame('settings', { id: 0 }), flood])));
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const ends = new AbortController();
    try {
      const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
      await once(socket, 'connect');
      const channel = openChannel(socket, { timeout_ms: 30_000, signal: ends.signal });
      await expect(channel.call('/a/b', Buffer.from('x'))).rejects.toThrow(reason);
    } finally {
      ends.abort();
      server.close();
    }
  });
});
