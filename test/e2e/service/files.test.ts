/**
 * Files of a kit reach the cloud byte for byte and once each, over two WANs of which one forbids them: through cuts, silence, changes of
 * the link, and kills of the daemon and of the service, while live messages pass. Prints what it measured.
 */
import { createHash, randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { texts } from '../../../src/cloud/texts.ts';
import { FileStore } from '../../../src/kit/files/file-store.ts';
import { sleep } from '../../../src/platform/time.ts';
import { startMosquitto } from '../../support/brokers/broker.ts';
import { type Proxy, startProxy } from '../../support/brokers/proxy.ts';
import { startSubscriber } from '../../support/brokers/subscriber.ts';
import { makeCertificates } from '../../support/certificates.ts';
import type { Child } from '../../support/child.ts';
import { eventually } from '../../support/eventually.ts';
import { enterNamespace } from '../../support/gateway/enter-namespace.ts';
import { type Kit, withKit } from '../../support/kit/kit.ts';
import { peerMissing, program, rootMissing } from '../../support/peers.ts';
import { freePort } from '../../support/ports.ts';
import { type ServiceProcess, serviceProcess } from '../../support/service/service-process.ts';
import { run, withDirectory } from '../../support/temporary.ts';

/** `FILES_CAMPAIGN=1000,200` for a gigabyte through 200 troubles. */
const [megabytes = 8, troubles_count = 8] = (process.env['FILES_CAMPAIGN'] ?? '8,8').split(',').map(Number);
const total_bytes = megabytes * 1e6;
const files_count = Math.max(4, megabytes / 20);
const patience_ms = 120_000;
const never = new AbortController().signal;

/** The service that the kit sends files to, and the broker. */
const [cloud_ip, broker_ip] = ['198.18.0.1', '198.18.0.2'];
/** Files may go by the first only. */
const wans = { wwan0: '10.99.0.2', sat0: '10.99.1.2' } as const;
type Wan = keyof typeof wans;
const spaces = { kit: `kc-files-${process.pid}-kit`, net: `kc-files-${process.pid}-net` } as const;

const listed = z.object({
  files: z.array(z.object({ id: z.string(), state: z.string(), sha256: z.string() })),
});
type Listed = z.output<typeof listed>['files'];

const hashOf = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');

/** Puts files into the folder of a kit, as if drivers of an earlier run had; returns their hashes. */
async function seed(dir: string): Promise<readonly string[]> {
  const ending = new AbortController();
  const store = new FileStore({
    dir,
    limits: () => ({ bytes_max: 2 * total_bytes, age_max_ms: 1e9, free_bytes_min: 0 }),
    now: Date.now,
    onDropped: () => undefined,
    signal: ending.signal,
  });
  const hashes: string[] = [];
  for (let each = 0; each < files_count; each += 1) {
    const bytes = randomBytes(Math.round(total_bytes / files_count));
    const about = { kind: 'flight_log', asset_id: null, name: `${each}.bin` } as const;
    const content_type = 'application/octet-stream';
    const { sha256 } = await store.add({ bytes }, { ...about, content_type, at_ms: Date.now() });
    hashes.push(sha256);
  }
  ending.abort();
  await store.close();
  return hashes;
}

interface Scene {
  readonly kit: Kit;
  readonly service: ServiceProcess;
  /** Between the kit and the service. */
  readonly link: Proxy;
  /** The kernel reaches the service by this WAN from now on. */
  readonly goBy: (wan: Wan) => Promise<void>;
  /** Bytes of files on the WAN that forbids them: of packets, handshakes and repetitions included. */
  readonly forbiddenBytes: () => Promise<number>;
  readonly files: () => Promise<Listed>;
  /** How long live messages were on their way since it was asked last. */
  readonly live: () => Promise<string>;
}

async function withScene(play: (scene: Scene) => Promise<void>): Promise<void> {
  const ends: (() => Promise<unknown>)[] = Object.values(spaces).map(
    (name) => async () => run('ip', 'netns', 'del', name),
  );
  try {
    await joinSpaces();
    const leave = enterNamespace(spaces.net);
    ends.push(async () => leave());
    await withDirectory(async (dir) => {
      const { ca, server } = await makeCertificates(dir, 'kit');
      setDefaultCACertificates([...getCACertificates(), await readFile(ca, 'utf8')]);
      const conf = [`listener 1883 ${broker_ip}`, 'allow_anonymous true'];
      const broker = await startMosquitto({ conf });
      ends.push(async () => broker.stop());
      const witness = await startSubscriber(broker.port, { filters: ['k1/+/up/feed/#'] });
      ends.push(async () => witness.stop());
      const port = await freePort();
      const link = await startProxy(port, {}, 0, cloud_ip);
      ends.push(async () => link.close());
      const service = await serviceProcess(dir, {
        port,
        broker: { url: broker.url },
        tls: { cert_file: server.cert, key_file: server.key },
        files: { dir: join(dir, 'files'), url: `https://${cloud_ip}:${link.port}` },
      });
      ends.push(async () => service.end('SIGKILL'));
      await service.start();
      const prefix = ['env', `NODE_EXTRA_CA_CERTS=${ca}`, program('ip'), 'netns', 'exec', spaces.kit];
      await withKit({ rehearsed: true, prefix }, async (kit) => {
        await kit.configure({
          broker: { url: `mqtt://${broker_ip}` },
          files: {
            bytes_max_mb: megabytes * 2,
            // Small sizes at a rate, so that they are still under way when troubles come.
            kbps_max: megabytes > 20 ? 0 : 8_000,
            upload: { default: 'never', cellular: 'always' },
          },
          feeds: { rates_hz: { gps: 10 } },
          drivers: [
            kit.rehearse({ gps_hz: 10 }),
            {
              driver: 'links',
              options: { wan: { wwan0: { type: 'cellular' }, sat0: { type: 'satellite' } } },
            },
          ],
        });
        const route = async (ip: string, wan: Wan): Promise<void> => {
          await inside('kit', 'route', 'replace', `${ip}/32`, 'via', wans[wan], 'dev', wan);
        };
        await route(broker_ip, 'wwan0');
        await play({
          kit,
          service,
          link,
          goBy: async (wan) => route(cloud_ip, wan),
          forbiddenBytes: await countForbidden(link.port),
          files: async () => {
            const answer = await service.ask(`${kit.kit_id}/files?limit=500`);
            return answer.ok ? listed.parse(await answer.json()).files : [];
          },
          async live() {
            const { latency } = await witness.report();
            await witness.reset();
            if (!latency) return 'none';
            const [p50, p99, max] = [latency.p50_ms, latency.p99_ms, latency.max_ms].map((ms) =>
              ms.toFixed(0),
            );
            return `${latency.count} live messages, p50 ${p50} ms, p99 ${p99} ms, most ${max} ms`;
          },
        });
      });
    });
  } finally {
    for (const end of ends.reverse()) await end();
  }
}

async function inside(space: keyof typeof spaces, ...words: readonly string[]): Promise<void> {
  await run('ip', '-n', spaces[space], ...words);
}

/** The kit with two WANs, and the internet. */
async function joinSpaces(): Promise<void> {
  for (const name of Object.values(spaces)) await run('ip', 'netns', 'add', name);
  for (const [wan, ip] of Object.entries(wans)) {
    const peer = ['type', 'veth', 'peer', 'name', wan, 'netns', spaces.net];
    await run('ip', 'link', 'add', wan, 'netns', spaces.kit, ...peer);
    await inside('kit', 'addr', 'add', ip.replace(/2$/u, '1/24'), 'dev', wan);
    await inside('net', 'addr', 'add', `${ip}/24`, 'dev', wan);
    for (const space of ['kit', 'net'] as const) await inside(space, 'link', 'set', wan, 'up');
  }
  for (const space of ['kit', 'net'] as const) await inside(space, 'link', 'set', 'lo', 'up');
  for (const ip of [cloud_ip, broker_ip]) await inside('net', 'addr', 'add', `${ip}/32`, 'dev', 'lo');
}

async function countForbidden(port: number): Promise<() => Promise<number>> {
  const nft = async (...words: readonly string[]): Promise<string> =>
    run('ip', 'netns', 'exec', spaces.kit, 'nft', ...words);
  await nft('add', 'table', 'ip', 'files');
  await nft('add', 'chain', 'ip', 'files', 'out', '{ type filter hook postrouting priority 300; }');
  await nft('add', 'counter', 'ip', 'files', 'forbidden');
  const counted = ['oifname', 'sat0', 'tcp', 'dport', String(port), 'counter', 'name', 'forbidden'];
  await nft('add', 'rule', 'ip', 'files', 'out', ...counted);
  return async () =>
    Number(/bytes (\d+)/u.exec(await nft('list', 'counter', 'ip', 'files', 'forbidden'))?.[1]);
}

/** What happens in turn. Silence and a forbidden link take longer, and are rarer. */
const troubles = [
  'cut',
  'daemon',
  'service',
  'link',
  'cut',
  'cut',
  'daemon',
  'service',
  'cut',
  'link',
] as const;
type Trouble = (typeof troubles)[number] | 'silence';

describe.skipIf(rootMissing() || peerMissing('mosquitto', 'ip', 'nft', 'openssl'))('Files of a kit', () => {
  it('reach the cloud byte for byte, once each, through all troubles', { timeout: 5_400_000 }, async () => {
    await withScene(async ({ kit, service, link, goBy, forbiddenBytes, files, live }) => {
      const hashes = await seed(join(kit.dir, 'state/files'));
      const cloud = await kit.listen(`mqtt://${broker_ip}`);
      await goBy('sat0');
      let daemon: Child = await kit.start();
      await sleep(Math.min(30_000, megabytes * 600), never);
      console.log(`without an upload: ${await live()}`);
      expect(link.counters.up_bytes).toBe(0);
      await goBy('wwan0');
      const begun_ms = performance.now();
      const done: Partial<Record<Trouble, number>> = {};
      const deeds: Record<Trouble, () => Promise<void>> = {
        cut: async () => link.cut(),
        async daemon() {
          await daemon.end('SIGKILL');
          daemon = await kit.start();
        },
        async service() {
          await service.end('SIGKILL');
          await service.start();
        },
        async link() {
          await goBy('sat0');
          // Longer than the connection may keep what it had under way.
          await sleep(2_000, never);
          await goBy('wwan0');
        },
        async silence() {
          const before = link.counters.accepted;
          link.stall();
          await eventually('it is given up', () => link.counters.accepted > before, patience_ms);
          link.cut();
        },
      };
      for (let round = 0; round < troubles_count; round += 1) {
        const before = link.counters.up_bytes;
        const some = (total_bytes / (troubles_count + 1)) * 0.6;
        const hasCome = (): boolean => link.counters.up_bytes > before + some;
        try {
          await eventually('some of it has passed', hasCome, patience_ms);
        } catch (error) {
          const { files: view } = await kit.status();
          console.log(`round ${round} after ${JSON.stringify(done)}: ${JSON.stringify(view)}`);
          for (const each of [daemon, service]) console.log(each.output().split('\n').slice(-40).join('\n'));
          throw error;
        }
        const trouble = round % 50 === 4 ? 'silence' : (troubles[round % troubles.length] ?? 'cut');
        await deeds[trouble]();
        done[trouble] = (done[trouble] ?? 0) + 1;
      }
      await eventually(
        'the kit has sent all',
        async () => {
          const { files: books } = await kit.status();
          return books?.kept.files === 0 && books.uploaded === files_count && books.accepted === files_count;
        },
        600_000,
      );
      const seconds = (performance.now() - begun_ms) / 1_000;
      console.log(
        `${megabytes} MB in ${files_count} files, ${seconds.toFixed(0)} s, ${JSON.stringify(done)}: ${await live()}, ${(link.counters.up_bytes / 1e6).toFixed(1)} MB sent, ${await forbiddenBytes()} bytes on the forbidden link`,
      );
      const there = await files();
      expect(there.map(({ state }) => state)).toEqual(hashes.map(() => 'stored'));
      expect(there.map(({ sha256 }) => sha256).toSorted()).toEqual(hashes.toSorted());
      for (const { id, sha256 } of there) {
        const content = await service.ask(`${kit.kit_id}/files/${id}/content`);
        expect(hashOf(new Uint8Array(await content.arrayBuffer()))).toBe(sha256);
      }
      const announced = new Set(cloud.on('file/').map(({ data }) => data?.['id']));
      expect(announced).toEqual(new Set(there.map(({ id }) => id)));
      expect(announced.size).toBe(there.length);
      const stored = service
        .output()
        .split('\n')
        .filter((line) => line.includes(texts.log_file_stored));
      for (const { id } of there) expect(stored.filter((line) => line.includes(id)).length).toBeLessThan(2);
      expect(await forbiddenBytes()).toBe(0);
      // What a cut leaves unacknowledged passes twice, and not all of it.
      expect(link.counters.up_bytes).toBeLessThan(2 * total_bytes);
    });
  });
});
