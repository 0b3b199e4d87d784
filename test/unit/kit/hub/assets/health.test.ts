/**
 * What an asset delivers, as its driver reports it. Sources of the cases: ZoneMinder #4191 (no way to know whether events are
 * subscribed other than the log), #4099 (subscription lost for good with the network); home-assistant/core #36145 (stream works,
 * no events, nothing in the log), #42784; koush/scrypted #319, #320 (events end until a restart, nothing is shown), #1994
 * (a camera that has none is retried for ever); openhab-addons #1939 (a monitor without events was shown as offline);
 * blakeblackshear/frigate #1932, #15104; AlexxIT/go2rtc #1498, bluenviron/mediamtx #2182 (a source once seen reads as ready).
 */
import { describe, expect, it, vi } from 'vitest';
import { announcement } from '../../../../../src/contract/assets.ts';
import { assetId } from '../../../../../src/contract/identity.ts';
import { channels } from '../../../../../src/contract/topics.ts';
import { fails_after_ms, far_retry_ms } from '../../../../../src/kit/hub/assets/health.ts';
import { texts } from '../../../../../src/kit/hub/texts.ts';
import type { AssetDescription } from '../../../../../src/toolkit/driver/driver.ts';
import { fails, type Health, notOffered, works } from '../../../../../src/toolkit/driver/health.ts';
import { command, drone } from '../../../../fakes/scripted-driver.ts';
import { useFakeTime } from '../../../../support/fake-time.ts';
import { kit_id } from '../../../../support/kit/hub-lab.ts';
import { testHub } from '../../../../support/kit/test-hub.ts';

useFakeTime();

const id = assetId(kit_id, 'drone-1');

/** A hub with one asset, and what the cloud was told of it. */
async function served(about: Partial<AssetDescription>, more: Parameters<typeof testHub>[0] = {}) {
  const lab = testHub(more);
  const host = await lab.hostOf();
  const sink = host.announce(drone('drone-1', about));
  const told = () => lab.outbox.on(channels.asset(id)).map((each) => announcement.parse(each));
  return {
    lab,
    host,
    sink,
    told,
    last: () => told().at(-1)?.health,
    shown: () => lab.hub.assets()[0]?.health,
  };
}

const shownAs = (
  state: Health['state'],
  reason: string | null = null,
  next_try_at: string | null = null,
) => ({
  state,
  reason,
  next_try_at,
});

describe('the health of an asset', () => {
  it('is announced with the asset in one message: what is there, and why the rest is not', async () => {
    const health = { stream: fails('has no profile; create one'), commands: notOffered('is fixed') };
    const { told, last } = await served({ health, takePicture: async () => Buffer.alloc(1) });
    expect(told()).toHaveLength(1);
    expect(last()).toEqual({
      stream: shownAs('fails', 'has no profile; create one'),
      still: shownAs('works'),
      // The hub offers the command snapshot.
      commands: shownAs('works'),
    });
  });

  it('is absent where its driver reports none', async () => {
    const { told, shown } = await served({ takePicture: async () => Buffer.alloc(1) });
    expect(told()[0]).not.toHaveProperty('health');
    expect(shown()).toEqual({});
  });

  it('fails for the cloud in the words of the device, with the time of the next try', async () => {
    const { sink, last, shown } = await served({ health: {} });
    const next_try_at = new Date(Date.now() + 900_000).toISOString();
    sink.setHealth('events', fails('pull point limit\u{202e} reached', 900_000));
    expect(last()).toEqual({ events: shownAs('fails', 'pull point limit reached', next_try_at) });
    expect(shown()).toEqual(last());
    sink.setHealth('events', works);
    expect(last()).toEqual({ events: shownAs('works') });
  });

  it('does not show a subscription that is made again within seconds, and sends nothing for it', async () => {
    const { sink, told, last } = await served({ health: {} });
    sink.setHealth('events', works);
    const before = told().length;
    for (let round = 0; round < 20; round += 1) {
      sink.setHealth('events', fails('closed the connection'));
      await vi.advanceTimersByTimeAsync(fails_after_ms - 1_000);
      sink.setHealth('events', works);
      await vi.advanceTimersByTimeAsync(1_000);
    }
    expect(told()).toHaveLength(before);
    sink.setHealth('events', fails('closed the connection'));
    await vi.advanceTimersByTimeAsync(fails_after_ms / 2);
    sink.setHealth('events', fails('refuses', 1_000));
    await vi.advanceTimersByTimeAsync(fails_after_ms / 2);
    expect(last()).toEqual({ events: shownAs('fails', 'refuses') });
    expect(told()).toHaveLength(before + 1);
  });

  it('sends nothing for near tries that fail alike, and shows their time at the kit', async () => {
    const { sink, told, last, shown } = await served({ health: {} });
    sink.setHealth('events', fails('refuses', far_retry_ms - 1));
    const before = told().length;
    await vi.advanceTimersByTimeAsync(60_000);
    sink.setHealth('events', fails('refuses', far_retry_ms - 1));
    expect(told()).toHaveLength(before);
    expect(last()?.events?.next_try_at).toBeNull();
    const next_try_at = new Date(Date.now() + far_retry_ms - 1).toISOString();
    expect(shown()?.events).toMatchObject({ next_try_at });
    sink.setHealth('events', fails('refuses', far_retry_ms));
    expect(told()).toHaveLength(before + 1);
  });

  it('ends with the asset, and begins anew when it is back', async () => {
    const { host, sink, told, last } = await served({ health: { stream: fails('none') } });
    sink.setHealth('events', works);
    sink.setOnline(false, 'silent');
    expect(last()).toBeUndefined();
    sink.setHealth('events', works);
    await vi.advanceTimersByTimeAsync(fails_after_ms);
    expect(told().at(-1)).not.toHaveProperty('health');
    sink.setOnline(true);
    expect(last()).toEqual({ stream: shownAs('fails', 'none') });
    host.announce(drone('drone-1', { health: { stream: fails('none') } }), [command('arm')]);
    expect(last()).toEqual({ stream: shownAs('fails', 'none'), commands: shownAs('works') });
  });

  it('shows a stream as its viewers find it: not before the media server has it, nor when that is gone', async () => {
    const found: { health?: Health } = {};
    const streams = { want: () => undefined, urlOf: () => null, healthOf: () => found.health };
    const { lab, last } = await served({ health: {}, rtsp_url: 'rtsp://192.0.2.7/sub' }, { streams });
    expect(last()).toBeUndefined();
    found.health = works;
    lab.hub.streamChanged('drone-1');
    expect(last()).toEqual({ stream: shownAs('works') });
    found.health = fails('mediamtx does not answer', 10_000);
    lab.hub.streamChanged('drone-1');
    await vi.advanceTimersByTimeAsync(fails_after_ms);
    expect(last()).toEqual({ stream: shownAs('fails', 'mediamtx does not answer') });
  });

  it('names the service that a kit lacks to serve pictures', async () => {
    const { last } = await served(
      { health: {}, takePicture: async () => Buffer.alloc(1) },
      { picturePath: undefined },
    );
    expect(last()).toEqual({ still: shownAs('not_offered', texts.no_pictures) });
  });
});
