/** Connections in the virtual world: bytes in order, resets, links that are down, and ends that hear nothing. */
import type { Duplex } from 'node:stream';
import { expect, test } from 'vitest';
import { type Connection, Network } from '../../sim/world/network.ts';
import { Rng } from '../../sim/world/rng.ts';
import { withWorld } from './lab.ts';

/** A client that has connected to a server which notes what it hears. */
async function connected(
  play: (parts: {
    readonly socket: Duplex;
    readonly connection: Connection;
    readonly heard: string[];
    readonly after: (ms: number) => Promise<void>;
    readonly say: (text: string) => void;
    readonly down: (ms: number) => void;
  }) => Promise<void>,
): Promise<void> {
  await withWorld('network', async (world, proc) => {
    const server = world.spawn('server', { name: 'there', wall_offset_ms: 0 });
    const network = new Network(world, new Rng('network'));
    const link = network.link('link', 20);
    const heard: string[] = [];
    let connection: Connection | undefined;
    let socket: Duplex | undefined;
    world.after(0, proc, () => {
      socket = network.connect(link, {
        proc: () => server,
        accept: (of) => {
          connection = of;
          return {
            received: (bytes) => void heard.push(bytes.toString()),
            closed: () => void heard.push('closed'),
          };
        },
      });
      socket.on('error', (error) => heard.push(error.message));
      socket.on('data', (bytes: Buffer) => heard.push(`client: ${bytes.toString()}`));
      socket.write('hello');
    });
    await world.run(1_000);
    if (!socket || !connection) throw new Error('not connected');
    const open = socket;
    await play({
      socket: open,
      connection,
      heard,
      after: async (ms) => world.run(world.now_ms + ms),
      say: (text) => void world.after(0, proc, () => void open.write(text)),
      down: (ms) => {
        link.down_until_ms = world.now_ms + ms;
      },
    });
  });
}

test('what was written before the connection stood arrives, and an answer comes back', async () => {
  await connected(async ({ connection, heard, after }) => {
    connection.send(Buffer.from('welcome'));
    await after(100);
    expect(heard).toEqual(['hello', 'client: welcome']);
  });
});

test('a link that is down delays bytes and never reorders them', async () => {
  await connected(async ({ heard, after, say, down }) => {
    say('one');
    await after(1);
    down(500);
    for (const text of ['two', 'three', 'four']) say(text);
    await after(400);
    expect(heard).toEqual(['hello']);
    await after(5_000);
    expect(heard).toEqual(['hello', 'one', 'two', 'three', 'four']);
  });
});

test('a reset reaches both ends, and data on its way is lost', async () => {
  await connected(async ({ connection, heard, after, say }) => {
    say('never read');
    await after(1);
    connection.reset();
    await after(1_000);
    expect(heard).toEqual(['hello', 'closed', 'read ECONNRESET']);
  });
});

test('a half-open connection swallows everything in silence', async () => {
  await connected(async ({ connection, heard, after, say }) => {
    connection.halfOpen('up');
    say('nobody hears this');
    connection.send(Buffer.from('still heard'));
    await after(60_000);
    expect(heard).toEqual(['hello', 'client: still heard']);
  });
});
