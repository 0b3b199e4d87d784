/** Pieces of the media server's recordings, as files for the cloud: on order, and around alarms. */
import type { FeedSet } from '../../../contract/feeds.ts';
import { CommandRefused, DeviceUnreachable, messageOf, notSent } from '../../../platform/errors.ts';
import type { Clock } from '../../../platform/clock.ts';
import { sleep } from '../../../platform/time.ts';
import { TokenBucket } from '../../../platform/token-bucket.ts';
import { clip_s_max, clipCommand } from '../../../toolkit/device/pictures/clip.ts';
import type { Command } from '../../../toolkit/driver/command.ts';
import type { DriverHost, DriverLog } from '../../../toolkit/driver/driver.ts';
import type { Allow } from '../commands.ts';
import { texts } from '../texts.ts';
import { type Alarm, alarmIn } from './alarms.ts';
import type { Asset } from './asset.ts';

/** A media server that records. */
export interface Recordings {
  /** Around an alarm; both are also what an order gets that names none. */
  readonly before_s: number;
  readonly after_s: number;
  /** Whether alarms get clips without an order. */
  readonly alarms: boolean;
  /** Resolves with an MP4 of at most this time, from where there is a recording. Rejects with the reason why there is none. */
  readonly clip: (
    asset_key: string,
    when: { readonly from_ms: number; readonly event_ms: number; readonly to_ms: number },
    signal: AbortSignal,
  ) => Promise<{ readonly content: AsyncIterable<Uint8Array>; readonly from_ms: number }>;
}

interface ClipsParts {
  readonly clock: Pick<Clock, 'stamp'>;
  /** Local policy: where `clip` may not be carried out, no alarm has one either. */
  readonly allow: Allow;
  readonly files: DriverHost<FeedSet>['files'];
  readonly recordings: Recordings;
  readonly signal: AbortSignal;
}

/** Of the moment of an order. */
const age_max_ms = 86_400_000;
/** The recorder has written a second by then. */
const written_ms = 2_000;
/** Cameras whose clips are fetched at the same time. */
const cameras_max = 2;
/** Alarms that one clip names. */
const alarms_max = 16;
/** Of alarms of a kit, so that their clips do not fill its disk. */
const rate = { perSecond: 1 / 60, burst: 10 } as const;

interface Moment {
  readonly event_ms: number;
  readonly before_s: number;
  readonly after_s: number;
}

type Camera = Pick<Asset, 'facts' | 'rtsp_url' | 'target'>;

export class Clips {
  readonly #parts: ClipsParts;
  readonly #bucket = new TokenBucket(rate);
  /** By asset id: alarms whose clip is not complete. */
  readonly #under_way = new Map<string, Alarm[]>();
  #fetching = 0;

  constructor(parts: ClipsParts) {
    this.#parts = parts;
  }

  /** The command `clip`, where the asset has a stream. */
  commandOf(camera: Camera): readonly Command[] {
    return camera.rtsp_url === null ? [] : [this.#command(camera)];
  }

  /** A message of this asset was published: a clip follows where it is an alarm, with all alarms until it is complete. */
  published(asset: Camera, feed: string, message: unknown, log: DriverLog): void {
    const { clock, recordings, allow } = this.#parts;
    const alarm = recordings.alarms && asset.rtsp_url !== null ? alarmIn(feed, message) : undefined;
    if (!alarm) return;
    const others = this.#under_way.get(asset.facts.id);
    if (others) {
      if (others.length < alarms_max) others.push(alarm);
      return;
    }
    const { time_ms: event_ms, mono_ms } = clock.stamp();
    if (allow(asset.target(), this.#command(asset)) !== true || !this.#bucket.take(mono_ms)) return;
    const alarms = [alarm];
    this.#under_way.set(asset.facts.id, alarms);
    void this.#add(asset, { ...recordings, event_ms }, { signal: this.#parts.signal, alarms })
      .catch((error: unknown) => {
        const reason = messageOf(error);
        if (!this.#parts.signal.aborted)
          log.info({ name: asset.facts.name, reason }, texts.alarm_clip_missing);
      })
      .finally(() => this.#under_way.delete(asset.facts.id));
  }

  #command(camera: Camera): Command {
    const { clock, recordings } = this.#parts;
    return clipCommand(async ({ at, before_s = recordings.before_s, after_s }, signal) => {
      const now_ms = clock.stamp().time_ms;
      const event_ms = at === undefined ? now_ms : Date.parse(at);
      const moment = { event_ms, before_s, after_s: after_s ?? (at === undefined ? 0 : recordings.after_s) };
      const seconds = moment.before_s + moment.after_s;
      const isRecent = event_ms <= now_ms && event_ms > now_ms - age_max_ms;
      if (!isRecent || seconds === 0 || seconds > clip_s_max)
        throw new CommandRefused(notSent(texts.clip_times(clip_s_max)));
      return this.#add(camera, moment, { signal });
    });
  }

  async #add(
    { facts: { name, asset_key } }: Camera,
    { event_ms, before_s, after_s }: Moment,
    { signal, alarms }: { readonly signal: AbortSignal; readonly alarms?: readonly Alarm[] },
  ): Promise<{ file_id: string; from: string }> {
    const { clock, files, recordings } = this.#parts;
    const to_ms = event_ms + after_s * 1_000;
    const wait_ms = to_ms + written_ms - clock.stamp().time_ms;
    if (wait_ms > 0) await sleep(wait_ms, signal);
    if (signal.aborted) throw new CommandRefused(texts.stopped);
    if (this.#fetching >= cameras_max) throw new DeviceUnreachable(texts.clips_busy);
    this.#fetching += 1;
    try {
      const when = { from_ms: event_ms - before_s * 1_000, event_ms, to_ms };
      const { content, from_ms } = await recordings.clip(asset_key, when, signal);
      const from = new Date(from_ms).toISOString();
      const file_id = await files.add({
        kind: 'clip',
        asset_key,
        name: `${name} ${from.slice(0, 19).replaceAll(':', '-')}.mp4`,
        at_ms: from_ms,
        content_type: 'video/mp4',
        content: { stream: content },
        ...(alarms && { alarms }),
      });
      return { file_id, from };
    } finally {
      this.#fetching -= 1;
    }
  }
}
