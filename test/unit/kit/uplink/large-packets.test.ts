import { once } from 'node:events';
import { createServer, type Server } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Segments, segments } from '../../../../src/platform/linux/tcp-info.ts';
import { LargePackets } from '../../../../src/kit/uplink/broker-limits.ts';
import { Problems } from '../../../../src/kit/uplink/problems.ts';
import { texts } from '../../../../src/kit/uplink/texts.ts';
import { eventually } from '../../../support/eventually.ts';

const host = '127.0.0.1';
const hour_ms = 3_600_000;

let server: Server;
let url: string;

beforeEach(async () => {
  server = createServer((socket) => void socket.on('error', () => undefined)).listen(0, host);
  await once(server, 'listening');
  const address = server.address();
  url = `mqtt://${host}:${typeof address === 'object' && address !== null ? address.port : 0}`;
});
afterEach(() => void server.close());

/** A path to a real server; what the kernel reports of it is what the test sets. */
async function lab() {
  const world = {
    now_ms: 0,
    link: 'sat0' as string | null,
    isMissing: true,
    mtu: 1_500,
    answers: true,
    changed_ms: null as number | null,
    drifts: false,
    isOtherDue: true,
  };
  const problems = new Problems(() => world.now_ms, { warn: () => undefined });
  const { openSmall } = await segments();
  let [small, looks] = [0, 0];
  const kernel: Segments = {
    look: () => {
      looks += 1;
      return { isMissing: world.isMissing, mtu: world.mtu };
    },
    openSmall: (ip) => {
      small += 1;
      return openSmall(ip);
    },
  };
  const large_packets = new LargePackets({
    now: () => world.now_ms,
    problems,
    link: () => (world.drifts ? `wan${looks}` : world.link),
    changed_ms: () => world.changed_ms,
    load: async () => kernel,
    knock: async () => (world.answers ? { rtt_ms: 1, isRepeated: false } : { code: 'ETIMEDOUT' }),
    look_ms: 2,
  });
  /** Connects and lets the connection end by itself, or ends it at once where nothing is missing; resolves with the reason. */
  const connect = async ({ closesItself } = { closesItself: false }): Promise<string> => {
    let reason = '';
    const { tcp: socket } = await large_packets.open(
      { url, ca: undefined, cert: undefined, key: undefined },
      new AbortController().signal,
      (lost, why, { isOtherDue }) => {
        reason = why;
        world.isOtherDue = isOtherDue;
        lost.destroy();
      },
    );
    if (!socket) throw new Error('no socket');
    const before = looks;
    if (!world.answers) await eventually('looked at often enough', () => looks > before + 10);
    if (closesItself) await eventually('seen', () => looks > before + 2);
    if (closesItself || !world.isMissing || !world.answers) socket.destroy();
    if (!socket.closed) await once(socket, 'close');
    world.now_ms += 10_000;
    return reason;
  };
  /** Whether the next connection, in which nothing is lost, has small packets. */
  const isNextSmall = async (): Promise<boolean> => {
    const before = small;
    world.isMissing = false;
    await connect().catch(() => undefined);
    world.isMissing = true;
    return small > before;
  };
  return { world, problems, connect, isNextSmall };
}

describe('a path that loses large packets', () => {
  it('is recognised after two connections, named with the remedy, and used with small packets', async () => {
    const { problems, connect, isNextSmall } = await lab();
    expect(await connect()).toBe(texts.large_packets_lost);
    expect([await isNextSmall(), problems.sentences()]).toEqual([false, []]);
    await connect();
    expect(problems.sentences()).toEqual([texts.set_mtu('sat0', host)]);
    expect(await isNextSmall()).toBe(true);
  });

  it('is not assumed where small packets are lost as well', async () => {
    const { world, problems, connect, isNextSmall } = await lab();
    world.answers = false;
    for (let n = 0; n < 4; n += 1) await connect();
    expect([await isNextSmall(), problems.sentences()]).toEqual([false, []]);
  });

  it('is not assumed while the route to the broker moves from one link to another', async () => {
    const { world, problems, connect } = await lab();
    for (let n = 0; n < 4; n += 1) {
      world.changed_ms = world.now_ms;
      await connect({ closesItself: true });
    }
    // Left behind by a route that moved long before.
    [world.changed_ms, world.drifts] = [null, true];
    for (let n = 0; n < 4; n += 1) await connect({ closesItself: true });
    expect(problems.sentences()).toEqual([]);
    world.drifts = false;
    await connect();
    await connect();
    expect(problems.sentences()).toEqual([texts.set_mtu('sat0', host)]);
  });

  it.each([
    ['are ended for it', false],
    ['end by themselves', true],
  ])(
    'is recognised by the second loss where the connections that held before %s',
    async (_, closesItself) => {
      const { world, problems, connect } = await lab();
      const hold = async (): Promise<void> => {
        const ended = connect({ closesItself });
        world.now_ms += 120_000;
        await ended;
      };
      await hold();
      await hold();
      expect(problems.sentences()).toEqual([]);
      await connect();
      expect(problems.sentences()).toHaveLength(1);
    },
  );

  it('is tried again without hurry where even small packets are lost', async () => {
    const { world, problems, connect } = await lab();
    await connect();
    await connect();
    expect(world.isOtherDue).toBe(true);
    expect(await connect()).toBe(texts.large_packets_lost);
    expect([world.isOtherDue, problems.sentences().length]).toEqual([false, 1]);
  });

  it.each([
    ['the link that leads to the broker changes', (world: { link: string | null }) => (world.link = 'wwan0')],
    ['an hour is over', (world: { now_ms: number }) => (world.now_ms += hour_ms)],
  ])('is tried with large packets again when %s, and one loss is enough then', async (_, change) => {
    const { world, problems, connect, isNextSmall } = await lab();
    await connect();
    await connect();
    change(world);
    expect([await isNextSmall(), problems.sentences()]).toEqual([false, []]);
    await connect();
    expect(await isNextSmall()).toBe(true);
  });

  it('is left as soon as the MTU of the link changes', async () => {
    const { world, problems, connect, isNextSmall } = await lab();
    await connect();
    await connect();
    world.mtu = 1_280;
    expect(await connect()).toBe(texts.mtu_changed);
    expect([await isNextSmall(), problems.sentences()]).toEqual([false, []]);
  });

  it('has an ordinary connection in turn while none with small packets is made', async () => {
    const { connect, isNextSmall } = await lab();
    await connect();
    await connect();
    server.close();
    expect([await isNextSmall(), await isNextSmall(), await isNextSmall()]).toEqual([true, false, true]);
  });
});
