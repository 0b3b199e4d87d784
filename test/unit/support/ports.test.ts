import { describe, expect, it } from 'vitest';
import { startChild } from '../../support/child.ts';

const many = 200;
const begin = `
  import { createSocket } from 'node:dgram';
  import { once } from 'node:events';
  import { createServer } from 'node:net';
  import { freePort } from ${JSON.stringify(new URL('../../support/ports.ts', import.meta.url).href)};
  const ports = async () => Promise.all(Array.from({ length: ${many} }, freePort));
`;
const holds_the_next_two = `
  const first = await freePort();
  const server = createServer().listen(first + 1, '127.0.0.1');
  const socket = createSocket('udp4').bind(first + 2, '127.0.0.1');
  await Promise.all([once(server, 'listening'), once(socket, 'listening')]);
  console.log(JSON.stringify({ held: [first + 1, first + 2], next: await ports() }));
  server.close();
  socket.close();
`;

async function printedBy(code: string): Promise<unknown> {
  const { stdout } = await startChild(['--input-type=module', '--eval', `${begin}${code}`]).ended;
  return JSON.parse(stdout);
}

describe('Ports of tests', () => {
  it('are handed out once, also to processes that ask at the same time', async () => {
    const all = await Promise.all(
      [1, 2].map(async () => (await printedBy('console.log(JSON.stringify(await ports()));')) as number[]),
    );
    expect(new Set(all.flat()).size).toBe(2 * many);
  });

  it('are free for TCP and for UDP', async () => {
    const { held, next } = (await printedBy(holds_the_next_two)) as Record<
      'held' | 'next',
      readonly number[]
    >;
    expect(next).toHaveLength(many);
    for (const port of held) expect(next).not.toContain(port);
  });
});
