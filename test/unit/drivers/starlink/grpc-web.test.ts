/** A dish that has gRPC-Web over HTTP/1.1 and no gRPC, as firmware since June 2026. */
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { afterEach, describe, expect, it } from 'vitest';
import { openWebChannel } from '../../../../drivers/starlink/api/grpc-web.ts';
import { suggest } from '../../../../drivers/starlink/suggest.ts';
import { starlink } from '../../../../drivers/starlink/starlink.ts';
import { texts } from '../../../../drivers/starlink/texts.ts';
import { connectTcp } from '../../../../src/platform/linux/bound-tcp.ts';
import { bytes, varint } from '../../../fakes/fake-dish.ts';
import { eventually } from '../../../support/eventually.ts';
import { hubLab } from '../../../support/kit/hub-lab.ts';

const closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

const framed = (flag: number, content: Buffer | string): Buffer => {
  const body = Buffer.from(content);
  const head = Buffer.alloc(5);
  head.writeUInt8(flag, 0);
  head.writeUInt32BE(body.length, 1);
  return Buffer.concat([head, body]);
};
const ended = framed(0x80, 'grpc-status:0\r\n');
const status = Buffer.concat([
  framed(0, bytes(2004, Buffer.concat([bytes(1, bytes(1, 'ut01')), bytes(2, varint(1, 4_000))]))),
  ended,
]);
const unknown = framed(0x80, 'grpc-status: 12\r\ngrpc-message: not%20here\r\n');

interface Asked {
  readonly path: string | undefined;
  readonly type: string | undefined;
  readonly body: Buffer;
}

/** Undefined: no answer. */
async function webDish(
  answer: (asked: Asked, n: number) => Buffer | undefined,
  type = 'application/grpc-web+proto',
) {
  const asked: Asked[] = [];
  const server: Server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const question = {
        path: request.url,
        type: request.headers['content-type'],
        body: Buffer.concat(chunks),
      };
      asked.push(question);
      const body = answer(question, asked.length);
      if (body) response.writeHead(200, { 'Content-Type': type }).end(body);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  closing.push(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => {
      server.close(resolve);
    });
  });
  const at = server.address();
  return { port: typeof at === 'object' && at !== null ? at.port : 0, asked };
}

/** Nothing listens there. */
const closed_port = 1;
const isStatus = ({ body }: Asked): boolean => body.subarray(5).equals(bytes(1004, ''));

describe('a dish with gRPC-Web alone', () => {
  it('is served, and asked again once where it leaves a question without an answer', async () => {
    const dish = await webDish((question, n) =>
      isStatus(question) ? (n === 1 ? undefined : status) : unknown,
    );
    const lab = hubLab({ configured: ['dish'] });
    closing.push(lab.stop);
    const where = { host: '127.0.0.1', port: closed_port, web_port: dish.port, bind: false, link: 'sat0' };
    void lab.run(starlink, 'dish', { options: { ...where, interval_s: 1, timeout_s: 0.5 } });
    await eventually('it is up', () => lab.hub.drivers()[0]?.state === 'up');
    expect(lab.hub.drivers()[0]?.facts).toMatchObject({ uptime_s: 4_000 });
    expect(dish.asked[0]).toMatchObject({
      path: '/SpaceX.API.Device.Device/Handle',
      type: 'application/grpc-web+proto',
    });
  });

  it('is found by setup', async () => {
    const dish = await webDish((question) => (isStatus(question) ? status : unknown));
    const where = { host: '127.0.0.1', port: closed_port, web_port: dish.port };
    expect(await suggest(new AbortController().signal, where)).toMatchObject([
      { what: expect.stringContaining('Starlink dish') as string, complete: true },
    ]);
  });

  const call = async (port: number, timeout_ms = 5_000) => {
    const { signal } = new AbortController();
    const connect = async () => connectTcp({ host_ip: '127.0.0.1', port, timeout_ms, signal });
    return openWebChannel({ connect, timeout_ms, signal }).call('/a/b', Buffer.from('x'));
  };

  it('answers with a message or with the reason of a refusal', async () => {
    const ok = await webDish(() => Buffer.concat([framed(0, 'hello'), ended]));
    expect(await call(ok.port)).toMatchObject({ status: 0, message: Buffer.from('hello') });
    const refusing = await webDish(() => unknown);
    expect(await call(refusing.port)).toEqual({ status: 12, reason: 'not here' });
  });

  it.each<[string, Buffer | undefined, string]>([
    ['ends without a status', framed(0, 'hello'), texts.no_status],
    ['has no message', ended, texts.no_message],
    ['is cut short', framed(0, 'hello').subarray(0, 8), texts.length_wrong],
    ['is compressed', Buffer.concat([framed(1, 'x'), ended]), texts.compressed],
    // An expression that looked for the end of a line took 6 s for these, and 25 minutes for 1 MB.
    ['has large trailers', framed(0x80, `grpc-status:a${' '.repeat(64_000)}b`), texts.trailers_too_large],
    ['is too large', Buffer.alloc(1_100_000), texts.answer_too_large(1_048_576)],
    ['never comes', undefined, texts.answer_timeout(300)],
  ])('is unreachable with the reason where its answer %s', async (_, body, reason) => {
    const { port } = await webDish(() => body);
    await expect(call(port, body ? 5_000 : 300)).rejects.toThrow(reason);
  });

  it('is named where a web page answers', async () => {
    const { port } = await webDish(() => Buffer.from('<html>'), 'text/html');
    await expect(call(port)).rejects.toThrow(texts.not_grpc('200', 'text/html'));
  });
});
