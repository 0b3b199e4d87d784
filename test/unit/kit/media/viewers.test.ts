/** Viewers of the cloud at the kit: who may watch, what it costs, and how it ends. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import type { WhepRequest } from '../../../../src/contract/whep.ts';
import { type MediaServer, OfferRefused, type Viewing } from '../../../../src/kit/media/server.ts';
import { texts } from '../../../../src/kit/media/texts.ts';
import { type VideoGrant, Viewers } from '../../../../src/kit/media/viewers.ts';
import { eventually } from '../../../support/eventually.ts';
import { recordingLog } from '../../../support/recording-log.ts';
import { testDirectory } from '../../../support/test-directory.ts';

const asset_id = '00000000-0000-4000-8000-00000000000a';
const id_of = (n: number): string => `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`;

/** A server whose viewers are known by the number of their offer. */
function fakeServer({ counts = true }: { readonly counts?: boolean } = {}) {
  const sent = new Map<string, number>();
  let watched = 0;
  const server = {
    name: 'MediaMTX',
    fault: undefined as Error | undefined,
    answer: undefined as string | undefined,
    held: undefined as Promise<void> | undefined,
    watch: async (_name: string, offer: string): Promise<Viewing> => {
      await server.held;
      if (server.fault) throw server.fault;
      watched += 1;
      const session = `s${watched}`;
      sent.set(session, 0);
      return {
        answer: server.answer ?? `answer to ${offer}`,
        resource: `http://127.0.0.1/cam/whep/${session}`,
        session,
      };
    },
    leave: async ({ session }: Pick<Viewing, 'resource' | 'session'>): Promise<void> => {
      sent.delete(session ?? '');
    },
    looks: 0,
    ...(counts && {
      sent: async () => {
        server.looks += 1;
        return new Map(sent);
      },
    }),
  } satisfies Partial<MediaServer> & Record<string, unknown>;
  return { server, sent };
}

async function open(
  { server, sent }: ReturnType<typeof fakeServer>,
  { file }: { readonly file?: string } = {},
) {
  const ends = new AbortController();
  onTestFinished(() => ends.abort());
  const kit = {
    grant: { kind: 'free' } as VideoGrant,
    none: undefined as string | undefined,
    address: undefined as string | undefined,
    day: '2026-11-29',
    key_frames: [] as string[],
  };
  const log = recordingLog();
  const place = file ?? join(await testDirectory(), 'video.json');
  const viewers = new Viewers({
    server,
    requestKeyFrame: async (id) => void kit.key_frames.push(id),
    streamOf: () => (kit.none === undefined ? { name: 'cam' } : { none: kit.none }),
    grant: () => kit.grant,
    publicAddress: () => kit.address,
    today: () => kit.day,
    file: place,
    log,
    signal: ends.signal,
  });
  const watch = async (n: number) => viewers.receive({ id: id_of(n), asset_id, offer: 'v=0' });
  const leave = async (n: number) => viewers.receive({ id: id_of(n), asset_id, offer: null });
  return { viewers, kit, log, watch, leave, sent, fake: server, file: place };
}

describe('viewers of the cloud', () => {
  it('get the answer of the media server, and end there when they leave', async () => {
    const { watch, leave, sent, viewers } = await open(fakeServer());
    expect(await watch(1)).toEqual({ answer: 'answer to v=0' });
    expect([sent.size, viewers.use.viewers]).toEqual([1, 1]);
    expect(await leave(1)).toBeUndefined();
    expect([sent.size, viewers.use.viewers]).toEqual([0, 0]);
  });

  it('get the public address of the kit beside the candidates of the media server', async () => {
    const { watch, kit, fake } = await open(fakeServer());
    const lines = [
      'a=candidate:1 1 udp 2130706431 127.0.0.1 8189 typ host',
      'a=candidate:2 1 udp 2130706431 2001:db8::7 8189 typ host',
      'a=candidate:3 1 udp 2130706431 192.168.1.2 8189 typ host generation 0',
      'a=candidate:4 1 tcp 1671430143 192.168.1.2 9 typ host tcptype active',
      '',
    ];
    fake.answer = lines.join('\r\n');
    expect(await watch(1)).toEqual({ answer: fake.answer });
    kit.address = '203.0.113.10';
    const added = 'a=candidate:kit 1 udp 1694498815 203.0.113.10 8189 typ srflx raddr 0.0.0.0 rport 0';
    expect(await watch(2)).toEqual({ answer: lines.toSpliced(3, 0, added).join('\r\n') });
    // The media server has asked STUN itself.
    fake.answer = lines.toSpliced(3, 0, added).join('\r\n');
    expect(await watch(3)).toEqual({ answer: fake.answer });
    fake.answer = 'a=candidate:4 1 tcp 1671430143 192.168.1.2 9 typ host tcptype active\r\n';
    expect(await watch(4)).toEqual({ answer: fake.answer });
  });

  it('begin with a key frame that the camera is asked for with their first packets, once', async () => {
    const { watch, kit, sent, fake } = await open(fakeServer());
    await watch(1);
    await watch(2);
    const looks = async (count: number) => {
      const before = fake.looks;
      await eventually('the kit looks again', () => fake.looks >= before + count);
    };
    await looks(3);
    expect(kit.key_frames).toEqual([]);
    sent.set('s1', 1_200);
    await eventually('the camera is asked', () => kit.key_frames.length > 0);
    sent.set('s1', 90_000);
    await looks(3);
    expect(kit.key_frames).toEqual([asset_id]);
  });

  it('end also when they leave before the media server has answered', async () => {
    const fake = fakeServer();
    const held = Promise.withResolvers<void>();
    fake.server.held = held.promise;
    const { watch, leave, sent, viewers } = await open(fake);
    const watching = watch(1);
    await leave(1);
    held.resolve();
    await watching;
    expect([sent.size, viewers.use.viewers]).toEqual([0, 0]);
  });

  it('are forgotten once the media server has lost them', async () => {
    const { watch, sent, viewers } = await open(fakeServer());
    await watch(1);
    sent.clear();
    await viewers.look();
    expect(viewers.use.viewers).toBe(0);
  });

  it('come and go fifty times without one that is left', async () => {
    const { watch, leave, sent, viewers } = await open(fakeServer());
    const all = Array.from({ length: 50 }, (_, n) => n);
    await Promise.all(all.map(watch));
    expect(sent.size).toBe(50);
    await Promise.all(all.map(leave));
    expect([sent.size, viewers.use.viewers]).toEqual([0, 0]);
  });

  it('are ended and counted on by the next run of the kit', async () => {
    const fake = fakeServer();
    const before = await open(fake);
    before.kit.grant = { kind: 'limited', seconds_max: 600, bytes_max: 1_000_000 };
    await before.watch(1);
    fake.sent.set('s1', 400_000);
    await before.viewers.look();
    await before.watch(2);
    await vi.waitFor(async () => expect(await readFile(before.file, 'utf8')).toContain('s2'));
    const after = await open(fake, { file: before.file });
    after.kit.grant = before.kit.grant;
    await after.leave(1);
    expect([...fake.sent.keys()]).toEqual(['s2']);
    expect(after.viewers.use).toMatchObject({ viewers: 1, metered_bytes_today: 400_000 });
  });

  it.each<{ readonly why: string; readonly fault: Error; readonly refused: string; readonly reason: string }>(
    [
      {
        why: 'the codec',
        fault: new OfferRefused('codec', texts.codec('H265')),
        refused: 'codec',
        reason: texts.codec('H265'),
      },
      {
        why: 'a server that does not answer',
        fault: new Error('connect ECONNREFUSED'),
        refused: 'unavailable',
        reason: 'connect ECONNREFUSED',
      },
    ],
  )('are refused with the reason of the media server: $why', async ({ fault, refused, reason }) => {
    const fake = fakeServer();
    fake.server.fault = fault;
    const { watch } = await open(fake);
    expect(await watch(1)).toEqual({ refused, reason });
  });

  it('are refused where the asset has no video, and ended when it has none any more', async () => {
    const { watch, viewers, kit, sent } = await open(fakeServer());
    await watch(1);
    kit.none = 'video is off while the battery is low';
    expect(await watch(2)).toEqual({ refused: 'no_stream', reason: kit.none });
    await viewers.look();
    expect(sent.size).toBe(0);
  });
});

describe('video over a metered link', () => {
  const limited: VideoGrant = { kind: 'limited', seconds_max: 600, bytes_max: 10_000_000 };

  it('is refused where the link is forbidden, and ended when such a link comes into use', async () => {
    const { watch, viewers, kit, sent } = await open(fakeServer());
    await watch(1);
    const reason = texts.link_forbids('satellite');
    kit.grant = { kind: 'never', reason };
    expect(await watch(2)).toEqual({ refused: 'link', reason });
    await viewers.look();
    expect(sent.size).toBe(0);
  });

  it('costs at most the megabytes of the day, and less than 5 % under them', async () => {
    const { watch, viewers, kit, sent } = await open(fakeServer());
    kit.grant = limited;
    await watch(1);
    await watch(2);
    let total = 0;
    // 2 Mbit/s each.
    for (let second = 0; second < 60 && sent.size > 0; second += 1) {
      for (const session of sent.keys()) sent.set(session, (sent.get(session) ?? 0) + 125_000);
      total = [...sent.values()].reduce((sum, bytes) => sum + bytes, 0);
      await viewers.look();
    }
    expect(sent.size).toBe(0);
    expect(total).toBeGreaterThanOrEqual(9_500_000);
    expect(total).toBeLessThanOrEqual(10_000_000);
    expect(viewers.use.metered_bytes_today).toBe(total);
    // What is left is too little for a second, also for who asks later.
    await viewers.look();
    expect(await watch(3)).toEqual({ refused: 'link', reason: texts.used_up('10 MB') });
    kit.grant = { ...limited, bytes_max: 20_000_000 };
    expect(await watch(3)).toHaveProperty('answer');
    kit.grant = limited;
    kit.day = '2026-11-30';
    expect(await watch(3)).toHaveProperty('answer');
  });

  it('is not sent by a server that cannot end a viewer', async () => {
    const { watch, kit } = await open(fakeServer({ counts: false }));
    expect(await watch(1)).toHaveProperty('answer');
    kit.grant = limited;
    expect(await watch(2)).toEqual({ refused: 'link', reason: texts.cannot_count('MediaMTX') });
  });

  it('keeps its use in a file of the kit', async () => {
    const { watch, kit, file } = await open(fakeServer());
    kit.grant = limited;
    await watch(1);
    await vi.waitFor(async () =>
      expect(JSON.parse(await readFile(file, 'utf8'))).toMatchObject({ day: '2026-11-29', bytes: 0 }),
    );
  });
});

it('a request without an offer of a viewer that is not known is nothing', async () => {
  const { viewers } = await open(fakeServer());
  const request: WhepRequest = { id: id_of(9), asset_id, offer: null };
  expect(await viewers.receive(request)).toBeUndefined();
});
