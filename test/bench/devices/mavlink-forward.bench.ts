/** Forwarding of frames from a link to a station: processor time of the driver's part, from the bytes of the link to the socket. */
import { fork } from 'node:child_process';
import { Forwarder } from '../../../drivers/mavlink/forward/forwarder.ts';
import { endpointOptions } from '../../../drivers/mavlink/endpoint-options.ts';
import type { Link } from '../../../drivers/mavlink/links/link.ts';
import { LinkTally } from '../../../drivers/mavlink/links/link-tally.ts';
import { Outgoing } from '../../../drivers/mavlink/links/outgoing.ts';
import { StreamFramer } from '../../../drivers/mavlink/wire/framer.ts';
import { sleep } from '../../../src/platform/time.ts';
import { eventually } from '../../support/eventually.ts';
import { type Bench, type BenchContext, type Figure, median } from '../figure.ts';
import { makeStream } from '../support/mavlink-stream.ts';
import { freePort } from '../../support/ports.ts';

const frames = 50_000;
const frames_per_turn = 20;
const mean_frame_bytes = 36;
const nothing = (): undefined => undefined;
const log = { info: nothing, warn: nothing, debug: nothing };

async function run({ long, say, calm }: BenchContext): Promise<readonly Figure[]> {
  await calm();
  const stream = makeStream(frames);
  const figures: Figure[] = [];
  for (const kind of ['udp', 'tcp'] as const) {
    const costs_us: number[] = [];
    for (let round = 0; round < (long ? 9 : 3); round += 1) costs_us.push(await costOf(kind, stream));
    say(`${kind}: ${median(costs_us).toFixed(1)} us of processor time for a frame`);
    figures.push({
      figure: `${kind}_us_per_frame`,
      value: median(costs_us),
      unit: 'us of processor time for a frame, link to socket',
      against: '-',
      against_value: null,
      target: '<= 20',
    });
  }
  return figures;
}

/** Processor time of this process for each frame that the station received. */
async function costOf(kind: 'udp' | 'tcp', stream: Buffer): Promise<number> {
  const port = await freePort();
  const over = new AbortController();
  const out = new Outgoing({ sysid: 245, compid: 191, passive: false, signing: undefined });
  const endpoints = [endpointOptions.parse({ kind: `${kind}_listen`, port, name: 'gcs' })];
  const parts = { endpoints, passive: false, out, routes: () => [], signal: over.signal, log };
  const forwarder = new Forwarder(parts);
  const dropped = (): number => {
    const { slow = 0, no_peer = 0 } = forwarder.stats()[0]?.dropped ?? {};
    return slow + no_peer;
  };
  await eventually('the endpoint is open', () => forwarder.stats()[0]?.up === true);
  const station = fork(new URL('../processes/mavlink-station-process.ts', import.meta.url), [
    kind,
    String(port),
  ]);
  let received = 0;
  station.on('message', (count) => {
    received = Number(count);
  });
  try {
    await eventually('the station is known', () => forwarder.stats()[0]?.peers.length === 1);
    const link: Pick<Link, 'name'> = { name: 'field' };
    const frame = framesOf(forwarder, link);
    const chunk_bytes = frames_per_turn * mean_frame_bytes;
    const before = process.cpuUsage();
    for (let at = 0; at < stream.length; at += chunk_bytes) {
      frame.push(stream.subarray(at, at + chunk_bytes));
      // The station must keep up: what it loses would cost less.
      await sleep(1, over.signal);
    }
    const { user, system } = process.cpuUsage(before);
    await eventually('the station has all', () => received + dropped() >= frames * 0.99);
    return (user + system) / (frames - dropped());
  } finally {
    station.disconnect();
    over.abort();
    await forwarder.ended;
  }
}

function framesOf(forwarder: Forwarder, link: Pick<Link, 'name'>): StreamFramer {
  return new StreamFramer({
    tally: new LinkTally(),
    frame: (each) =>
      forwarder.fromLink(link, each, { peer: 'here', now_ms: performance.now(), verified: true }),
  });
}

export const bench: Bench = { name: 'mavlink-forward', run };
