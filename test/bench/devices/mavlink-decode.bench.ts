/** Frames to fields: our framer and decoders beside node-mavlink's own pipeline, over the same stream in the same run. */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { PassThrough } from 'node:stream';
import { createMavLinkStream, type MavLinkPacket } from 'node-mavlink';
import { StreamFramer } from '../../../drivers/mavlink/wire/framer.ts';
import { mavlink } from '../../../drivers/mavlink/mavlink.ts';
import { decode } from '../../../drivers/mavlink/wire/messages.ts';
import { sleep } from '../../../src/platform/time.ts';
import { hubLab } from '../../support/kit/hub-lab.ts';
import { type Bench, type BenchContext, type Figure, median } from '../figure.ts';
import { type LibraryMessage, library, makeStream, mix } from '../support/mavlink-stream.ts';
import { freePort } from '../../support/ports.ts';

const messages = 100_000;
const passes = 3;
const chunk_bytes = 1_400;
const drones = 20;
/** The rates of a kit that is configured to nothing else. */
const feed_rates_hz = { default: 5, gps: 2, attitude: 2 };
/** Every drone is known after 5 s. The rest is for the engine, which compiles what runs often: a kit flies for hours. */
const settle_ms = 30_000;
const ratio_target = '>= 8 x node-mavlink';

async function run({ long, say, calm }: BenchContext): Promise<readonly Figure[]> {
  const stream = makeStream(messages);
  const chunks = inChunks(stream);
  say(
    `${messages} messages of ${(stream.length / messages).toFixed(1)} bytes, ${Object.keys(mix).length} kinds`,
  );
  const used = usedIds(stream);
  await calm();
  const rounds = Array.from({ length: long ? 15 : 5 });
  const ours: number[] = [];
  const theirs: number[] = [];
  // Neither is measured before the engine has compiled it.
  for (let warm_up = 0; warm_up < 2; warm_up++) {
    await oursOver(chunks);
    await theirsOver(chunks, used);
  }
  for (const _ of rounds) {
    ours.push(await rate(async () => oursOver(chunks)));
    theirs.push(await rate(async () => theirsOver(chunks, used)));
  }
  const kit_cpu_pct = await costOfKit(long ? 30 : 10);
  say(`20 drones cost ${kit_cpu_pct.toFixed(2)} % of a core`);
  return [
    {
      figure: 'messages_per_s',
      value: median(ours),
      unit: 'messages per second of processor time',
      against: 'node-mavlink, createMavLinkStream and data()',
      against_value: median(theirs),
      target: ratio_target,
    },
    {
      figure: 'kit_20_drones',
      value: kit_cpu_pct,
      unit: '% of a core, 1,400 messages/s from socket to hub',
      target: '< 3',
    },
  ];
}

/** Processor time of the driver in a hub while twenty drones talk to it over UDP, in per cent of one core. */
async function costOfKit(seconds: number): Promise<number> {
  const port = await freePort();
  const lab = hubLab({ rates: feed_rates_hz });
  void lab.run(mavlink, 'drones', { options: { links: [{ kind: 'udp_listen', host: '127.0.0.1', port }] } });
  const sender = fork(new URL('../processes/mavlink-sender-process.ts', import.meta.url), [String(port)]);
  try {
    await sleep(settle_ms, new AbortController().signal);
    lab.outbox.clear();
    const before = process.cpuUsage();
    await sleep(seconds * 1_000, new AbortController().signal);
    const { user, system } = process.cpuUsage(before);
    if (lab.outbox.drafts.length < seconds * drones) throw new Error('the drones were hardly heard');
    return (user + system) / 1e4 / seconds;
  } finally {
    sender.disconnect();
    await lab.stop();
  }
}

/** Messages a second of processor time, all threads together. */
async function rate(work: () => Promise<number>): Promise<number> {
  const before = process.cpuUsage();
  let found = 0;
  // The clock of the processor is too coarse for one pass.
  for (let pass = 0; pass < passes; pass++) found += await work();
  const { user, system } = process.cpuUsage(before);
  if (found !== messages * passes) throw new Error(`${found} of ${messages * passes} messages were found`);
  return found / ((user + system) / 1e6);
}

async function oursOver(chunks: readonly Uint8Array[]): Promise<number> {
  let found = 0;
  const framer = new StreamFramer({
    frame: (frame) => {
      decode(frame);
      found++;
    },
  });
  for (const chunk of chunks) framer.push(chunk);
  return found;
}

async function theirsOver(
  chunks: readonly Uint8Array[],
  used: ReadonlyMap<number, LibraryMessage>,
): Promise<number> {
  let found = 0;
  const source = new PassThrough({ highWaterMark: 2 ** 26 });
  const reader = createMavLinkStream(source);
  reader.on('data', ({ header, protocol, payload }: MavLinkPacket) => {
    const Message = used.get(header.msgid);
    if (Message) protocol.data(payload, Message);
    found++;
  });
  for (const chunk of chunks) source.write(chunk);
  source.end();
  await once(reader, 'end');
  return found;
}

function usedIds(stream: Buffer): ReadonlyMap<number, LibraryMessage> {
  const used = new Map<number, LibraryMessage>();
  const framer = new StreamFramer({
    frame: (frame) => {
      const Message = library.get(decode(frame)?.name ?? '');
      if (Message) used.set(frame.msgid, Message);
    },
  });
  framer.push(stream);
  return used;
}

function inChunks(stream: Buffer): readonly Uint8Array[] {
  const count = Math.ceil(stream.length / chunk_bytes);
  return Array.from({ length: count }, (_, index) =>
    stream.subarray(index * chunk_bytes, (index + 1) * chunk_bytes),
  );
}

export const bench: Bench = { name: 'mavlink-decode', run };
