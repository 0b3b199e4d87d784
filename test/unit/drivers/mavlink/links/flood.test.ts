/** What a sender that floods costs the others: its bytes in one turn of the event loop are bounded on every socket. */
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { connect } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import {
  runTcpListen as listenForStations,
  runUdpListen as receiveFromStations,
} from '../../../../../drivers/mavlink/forward/endpoint.ts';
import { EndpointTally, type EndpointHost } from '../../../../../drivers/mavlink/forward/endpoint-host.ts';
import type { MediumHost } from '../../../../../drivers/mavlink/links/medium.ts';
import { runTcpListen } from '../../../../../drivers/mavlink/links/tcp.ts';
import { runUdpListen } from '../../../../../drivers/mavlink/links/udp.ts';
import { turn_bytes_max, TurnBudget } from '../../../../../drivers/mavlink/links/sockets.ts';
import { eventually } from '../../../../support/eventually.ts';
import { freePort } from '../../../../support/ports.ts';

const flood_bytes = 4_000_000;
/** Three of them fit into the buffer of a socket. */
const datagram = Buffer.alloc(60_000);

/** Counts the bytes that are handled in each turn of the event loop. */
function turnMeter() {
  const meter = { total: 0, most: 0, dropped: 0 };
  let turn = 0;
  let isCounting = false;
  return {
    meter,
    handled: (bytes: number): void => {
      meter.total += bytes;
      turn += bytes;
      meter.most = Math.max(meter.most, turn);
      if (isCounting) return;
      isCounting = true;
      setImmediate(() => {
        isCounting = false;
        turn = 0;
      });
    },
  };
}
type Meter = ReturnType<typeof turnMeter>;

/** The two users of each medium, as it sees them. */
function linkHost({ meter, handled }: Meter, signal: AbortSignal, opened: () => void): MediumHost {
  return {
    signal,
    opened,
    datagram: (bytes) => {
      handled(bytes.length);
      return 'ignored';
    },
    overrun: (bytes) => void (meter.dropped += bytes),
    stream: () => ({
      push: (chunk) => handled(chunk.length),
      received_ms: () => performance.now(),
      close: () => undefined,
    }),
  };
}

function stationHost({ meter, handled }: Meter, signal: AbortSignal, opened: () => void): EndpointHost {
  return {
    signal,
    tally: new EndpointTally(),
    opened,
    closed: () => undefined,
    joined: () => undefined,
    left: () => undefined,
    refused: () => undefined,
    overrun: () => void (meter.dropped += 1),
    datagram: (bytes) => {
      handled(bytes.length);
      return false;
    },
    stream: () => (chunk) => handled(chunk.length),
  };
}

interface Open {
  readonly port: number;
  readonly turns: Meter;
}

async function open(
  run: (turns: Meter, signal: AbortSignal, opened: () => void) => Promise<void>,
): Promise<Meter> {
  const turns = turnMeter();
  const end = new AbortController();
  const opened = Promise.withResolvers<undefined>();
  const ended = run(turns, end.signal, () => opened.resolve(undefined));
  onTestFinished(async () => {
    end.abort();
    await ended;
  });
  await opened.promise;
  return turns;
}

async function floodTcp({ port, turns }: Open): Promise<void> {
  const sender = connect(port, '127.0.0.1');
  onTestFinished(() => void sender.destroy());
  sender.on('error', () => undefined);
  await once(sender, 'connect');
  sender.write(Buffer.alloc(flood_bytes));
  await eventually('everything was read', () => turns.meter.total >= flood_bytes);
}

async function floodUdp({ port, turns }: Open): Promise<void> {
  const sender = createSocket('udp4');
  onTestFinished(() => void sender.close());
  // The first send binds the socket; the others are in the buffer of the receiver before it reads.
  await new Promise<void>((resolve) => {
    sender.bind(0, '127.0.0.1', resolve);
  });
  for (let count = 0; count < 8; count += 1) sender.send(datagram, port, '127.0.0.1');
  await eventually('the datagrams arrived', () => turns.meter.total > 0 && turns.meter.dropped > 0);
}

describe('a flood', () => {
  it('on a TCP link to vehicles is read by one chunk a turn', async () => {
    const port = await freePort();
    const options = { kind: 'tcp_listen', host: '127.0.0.1', port, high_latency: false } as const;
    const turns = await open(async (...to) => runTcpListen(options, linkHost(...to)));
    await floodTcp({ port, turns });
    expect(turns.meter.most).toBeLessThanOrEqual(turn_bytes_max);
  });

  it('of a ground station over TCP is read by one chunk a turn', async () => {
    const port = await freePort();
    const options = { ...station, kind: 'tcp_listen', port, clients_max: 4 } as const;
    const turns = await open(async (...to) => listenForStations(options, stationHost(...to)));
    await floodTcp({ port, turns });
    expect(turns.meter.most).toBeLessThanOrEqual(turn_bytes_max);
  });

  it('on a UDP link to vehicles is dropped beyond the limit of a turn, and counted', async () => {
    const port = await freePort();
    const options = { kind: 'udp_listen', host: '127.0.0.1', port, high_latency: false } as const;
    const turns = await open(async (...to) => runUdpListen(options, linkHost(...to)));
    await floodUdp({ port, turns });
    expect(turns.meter.most).toBeLessThanOrEqual(turn_bytes_max);
  });

  it('of a ground station over UDP is dropped beyond the limit of a turn, and counted', async () => {
    const port = await freePort();
    const options = { ...station, kind: 'udp_listen', port, peers_max: 4 } as const;
    const turns = await open(async (...to) => receiveFromStations(options, stationHost(...to)));
    await floodUdp({ port, turns });
    expect(turns.meter.most).toBeLessThanOrEqual(turn_bytes_max);
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

const station = {
  host: '127.0.0.1',
  read_only: false,
  unverified: false,
  to_vehicles_bytes_per_s: 4_000,
} as const;
