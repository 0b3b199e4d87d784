/** What a sender that floods costs the others: its bytes in one turn of the event loop are bounded on every socket. */
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { connect } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { Endpoint } from '../../../../../drivers/mavlink/forward/endpoint.ts';
import { openLink } from '../../../../../drivers/mavlink/links/link.ts';
import { turn_bytes_max, TurnBudget } from '../../../../../drivers/mavlink/links/sockets.ts';
import { linkOptions, mavlinkOptions } from '../../../../../drivers/mavlink/options.ts';
import type { Frame } from '../../../../../drivers/mavlink/wire/frame.ts';
import { eventually } from '../../../../support/eventually.ts';
import { freePort } from '../../../../support/ports.ts';
import { recordingLog } from '../../../../support/recording-log.ts';
import { heartbeat } from '../frames.ts';

const flood_bytes = 4_000_000;
/** As many as come in one datagram, of which three fit into the buffer of a socket. */
const beats = Buffer.concat(Array.from({ length: 2_800 }, () => heartbeat()));

/** Counts the bytes of the frames that are handled, and the most in one turn of the event loop. */
function turnMeter() {
  const meter = { total: 0, most: 0 };
  let turn = 0;
  const handled = ({ bytes }: Frame): void => {
    if (turn === 0)
      setImmediate(() => {
        turn = 0;
      });
    meter.total += bytes.length;
    turn += bytes.length;
    meter.most = Math.max(meter.most, turn);
  };
  return { meter, handled };
}

/** The two users of each medium. `dropped`: what was not read. */
const users = {
  'a link to vehicles': (options: object, signal: AbortSignal, handled: (frame: Frame) => void) => {
    const link = openLink(linkOptions.parse(options), { frame: handled, state: () => undefined }, { signal });
    return { ended: link.ended, isUp: () => link.stats().up, dropped: () => link.stats().bytes_skipped };
  },
  'ground stations': (options: object, signal: AbortSignal, handled: (frame: Frame) => void) => {
    const [parsed] = mavlinkOptions.parse({ links: [options], endpoints: [options] }).endpoints;
    if (!parsed) throw new Error('there is one');
    const frame = (_endpoint: Endpoint, each: Frame): void => handled(each);
    const endpoint = new Endpoint(parsed, { signal, log: recordingLog(), frame });
    return {
      ended: endpoint.ended,
      isUp: () => endpoint.stats().up,
      dropped: () => endpoint.stats().dropped.flood,
    };
  },
};

async function open(user: keyof typeof users, kind: string) {
  const port = await freePort();
  const { meter, handled } = turnMeter();
  const end = new AbortController();
  const { ended, isUp, dropped } = users[user]({ kind, host: '127.0.0.1', port }, end.signal, handled);
  onTestFinished(async () => {
    end.abort();
    await ended;
  });
  await eventually('it is open', isUp);
  return { port, meter, dropped };
}

describe('a flood', () => {
  it.each([
    ['on a TCP link to vehicles', 'a link to vehicles'],
    ['of a ground station over TCP', 'ground stations'],
  ] as const)('%s is read by one chunk a turn', async (_title, user) => {
    const { port, meter } = await open(user, 'tcp_listen');
    const sender = connect(port, '127.0.0.1');
    onTestFinished(() => void sender.destroy());
    sender.on('error', () => undefined);
    await once(sender, 'connect');
    const count = Math.ceil(flood_bytes / beats.length);
    sender.write(Buffer.concat(Array.from({ length: count }, () => beats)));
    await eventually('everything was read', () => meter.total >= flood_bytes);
    // A frame may have begun in the chunk before.
    expect(meter.most).toBeLessThanOrEqual(turn_bytes_max + heartbeat().length);
  });

  it.each([
    ['on a UDP link to vehicles', 'a link to vehicles'],
    ['of a ground station over UDP', 'ground stations'],
  ] as const)('%s is dropped beyond the limit of a turn, and counted', async (_title, user) => {
    const { port, meter, dropped } = await open(user, 'udp_listen');
    const sender = createSocket('udp4');
    onTestFinished(() => void sender.close());
    // The first send binds the socket; the others are in the buffer of the receiver before it reads.
    await new Promise<void>((resolve) => {
      sender.bind(0, '127.0.0.1', resolve);
    });
    for (let count = 0; count < 8; count += 1) sender.send(beats, port, '127.0.0.1');
    await eventually('the datagrams arrived', () => meter.total > 0 && dropped() > 0);
    expect(meter.most).toBeLessThanOrEqual(turn_bytes_max);
  });

  it('has its full share again in the next turn', async () => {
    const budget = new TurnBudget();
    expect([budget.take(turn_bytes_max - 1), budget.take(2), budget.take(1)]).toEqual([true, false, true]);
    await new Promise((resolve) => {
      setImmediate(resolve);
    });
    expect(budget.take(turn_bytes_max)).toBe(true);
  });
});
