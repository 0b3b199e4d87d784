/** Pieces of recordings, from a playback server with the habits of real ones. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { recordedClip } from '../../../../src/kit/media/recordings.ts';
import { texts } from '../../../../src/kit/media/texts.ts';
import { type FakePlayback, startFakePlayback } from '../../../fakes/services/fake-playback.ts';

const t0_ms = Date.parse('2026-11-29T12:00:00Z');
const at = (s: number): number => t0_ms + s * 1_000;
/** Ten seconds before and after the event. */
const order = { name: 'gate', from_ms: at(100), event_ms: at(110), to_ms: at(120) };

let server: FakePlayback;
beforeEach(async () => {
  server = await startFakePlayback();
});
afterEach(async () => server.stop());

async function clip(more: Partial<typeof order> = {}) {
  const access = { api_url: server.url, username: 'kit', password: 'secret' };
  const { content, from_ms } = await recordedClip(access, { ...order, ...more }, AbortSignal.timeout(30_000));
  let bytes = 0;
  for await (const chunk of content) bytes += chunk.length;
  return { from_s: (from_ms - t0_ms) / 1_000, seconds: bytes / server.bytes_per_s };
}

describe('A clip of a recording', () => {
  it('has the seconds before and after the event, as an MP4 that plays everywhere', async () => {
    server.credentials = 'kit:secret';
    server.spans.set('gate', [{ start_ms: at(0), seconds: 600 }]);
    expect(await clip()).toEqual({ from_s: 100, seconds: 20 });
    expect(Object.fromEntries(server.gets[0] ?? [])).toEqual({
      path: 'gate',
      start: '2026-11-29T12:01:40.000Z',
      duration: '20',
      format: 'mp4',
    });
  });

  it.each([
    [
      'before the event, around it',
      [
        [0, 105],
        [107, 100],
      ],
      { from_s: 107, seconds: 13 },
    ],
    [
      'between, with the event in it, before the gap',
      [
        [0, 108],
        [112, 100],
      ],
      { from_s: 100, seconds: 8 },
    ],
    ['until after the event, behind the gap', [[112, 100]], { from_s: 112, seconds: 8 }],
  ] as const)(
    'of a stream that broke is the piece with the event, or next to it: %s',
    async (_, pieces, expected) => {
      server.spans.set(
        'gate',
        pieces.map(([start, seconds]) => ({ start_ms: at(start), seconds })),
      );
      expect(await clip()).toEqual(expected);
    },
  );

  it('is as long as was asked for where the server lists days', async () => {
    server.seconds_too_many = 537_070;
    server.spans.set('gate', [{ start_ms: at(90), seconds: 25 }]);
    expect(await clip()).toEqual({ from_s: 100, seconds: 15 });
  });

  it('begins a little later where the server finds nothing just before a segment', async () => {
    server.blind = { before_ms: at(100.1), ms: 200 };
    server.spans.set('gate', [{ start_ms: at(0), seconds: 600 }]);
    expect(await clip()).toEqual({ from_s: 100, seconds: 19.75 });
    expect(server.gets).toHaveLength(2);
  });

  it('is refused with the reason where there is none, and where the login lacks the permission', async () => {
    await expect(clip()).rejects.toThrow(texts.no_recording);
    server.spans.set('gate', [{ start_ms: at(0), seconds: 10 }]);
    await expect(clip()).rejects.toThrow(texts.no_recording);
    server.credentials = 'other:one';
    await expect(clip()).rejects.toThrow(texts.playback_refused_login);
  });
});
