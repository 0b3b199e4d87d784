/**
 * What a message costs on a link that is paid by the byte: IP bytes in both directions, over TLS. Broker and connector
 * have a network namespace of their own, on whose loopback nothing else passes: the subscriber listens on a unix socket.
 */
import { join } from 'node:path';
import { sleep } from '../../src/platform/time.ts';
import { startMosquitto, unthrottled } from '../support/brokers/broker.ts';
import { makeCertificates, type Certificates } from '../support/certificates.ts';
import { loopbackBytes, withNamespace } from '../support/gateway/netns.ts';
import { peerMissing, rootMissing } from '../support/peers.ts';
import { startSubscriber } from '../support/brokers/subscriber.ts';
import type { EngineChoice } from './engines/engine.ts';
import type { Bench, BenchContext, Figure } from './figure.ts';
import { fillBuffer } from './support/prefill.ts';
import { startSubject, type Load } from './support/subject.ts';

const backlog_rows = 20_000;
const arrive_ms = 30_000;
/** TCP acknowledges what it has not answered otherwise after at most this time. */
const quiet_ms = 500;

interface Wire {
  readonly choice: EngineChoice;
  /** What is sent after connecting; without it the backlog alone is measured, with the connection. */
  readonly load: Load | undefined;
  readonly messages: number;
}

/** IP bytes for each message. The connection itself counts only where a backlog goes out with it. */
async function measure(
  { choice, load, messages }: Wire,
  dir: string,
  certificates: Certificates,
): Promise<number> {
  return withNamespace(async ({ prefix }) => {
    const { ca, server } = certificates;
    const socket = join(dir, 'witness.sock');
    const broker = await startMosquitto({ conf: unthrottled, tls: { ca, pair: server }, socket, prefix });
    const subscriber = await startSubscriber({ socket });
    try {
      const subject = await startSubject({ choice, target: { url: broker.url, ca } }, { prefix });
      let before = 0;
      if (load) {
        await sleep(quiet_ms, new AbortController().signal);
        before = await loopbackBytes(subject.pid);
        await subject.load(load);
      }
      const seen = await subscriber.until(({ unique }) => unique >= messages, arrive_ms);
      await sleep(quiet_ms, new AbortController().signal);
      const bytes = (await loopbackBytes(subject.pid)) - before;
      await subject.close();
      if (seen.unique < messages) throw new Error(`${seen.unique} of ${messages} messages arrived`);
      return bytes / messages;
    } finally {
      await subscriber.stop();
      await broker.stop();
    }
  });
}

async function run({ long, dir, say }: BenchContext): Promise<readonly Figure[]> {
  const about = { unit: 'IP bytes/msg', against: 'one message each, MQTT 3.1.1, JSON' };
  const targets = { live_single: '-', live_packets: '<= 60', backlog_batch: '<= 35' };
  if (rootMissing() || peerMissing('ip', 'openssl')) {
    const skipped = 'needs root, ip and openssl';
    return Object.entries(targets).map(([figure, target]) =>
      Object.assign({ figure, target, value: null, skipped }, about),
    );
  }
  const certificates = await makeCertificates(dir, 'kit');
  const seconds = long ? 30 : 10;
  const load: Load = { kind: 'paced', per_second: 50, seconds, durabilities: ['lazy'], data: 'flight' };
  const messages = 50 * seconds;
  const bytesOf = async (name: string, wire: Wire): Promise<number> => {
    const bytes = await measure(wire, dir, certificates);
    say(`${name}: ${bytes.toFixed(1)} bytes a message`);
    return bytes;
  };
  const file = (name: string): string => join(dir, `${name}.db`);
  const against_value = await bytesOf('MQTT 3.1.1', {
    choice: { kind: 'mqttjs', protocol: 4, keepalive_s: 30 },
    load,
    messages,
  });
  const single = await bytesOf('singly', {
    choice: { kind: 'connector', file: file('single') },
    load,
    messages,
  });
  const packets = await bytesOf('in packets', {
    choice: { kind: 'connector', file: file('packets'), packet_ms: 1_000 },
    load,
    messages,
  });
  await fillBuffer(file('backlog'), backlog_rows);
  const backlog = await bytesOf('backlog', {
    choice: { kind: 'connector', file: file('backlog') },
    load: undefined,
    messages: backlog_rows,
  });
  return [
    { figure: 'live_single', ...about, value: single, against_value, target: targets.live_single },
    { figure: 'live_packets', ...about, value: packets, against_value, target: targets.live_packets },
    { figure: 'backlog_batch', ...about, value: backlog, against_value, target: targets.backlog_batch },
  ];
}

export const bench: Bench = { name: 'wire', run };
