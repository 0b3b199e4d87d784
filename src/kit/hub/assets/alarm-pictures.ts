/** Small pictures of what cameras see at an alarm (decision 0048): one at a time for each camera, and not too many of a kit. */
import { alarm_picture_bytes_max, feed_behind, type FeedSet } from '../../../contract/feeds.ts';
import { CommandRefused, messageOf } from '../../../platform/errors.ts';
import type { Clock } from '../../../platform/clock.ts';
import { TokenBucket } from '../../../platform/token-bucket.ts';
import { snapshotCommand } from '../../../toolkit/device/pictures/picture.ts';
import type { DriverHost, DriverLog } from '../../../toolkit/driver/driver.ts';
import type { Allow } from '../commands.ts';
import { texts } from '../texts.ts';
import { type Alarm, alarmIn } from './alarms.ts';
import type { Asset } from './asset.ts';
import { type Pictures, stillFile, takeInTime } from './pictures.ts';

export interface AlarmPicturesParts {
  readonly clock: Pick<Clock, 'stamp'>;
  /** Local policy: where `snapshot` may not be carried out, no alarm has a picture either. */
  readonly allow: Allow;
  /** Why alarms have no pictures now; undefined: they have. */
  readonly alarmPicturesOff: () => string | undefined;
  /** Undefined: the kit takes no whole stills. */
  readonly pictures: Pick<Pictures, 'get'> | undefined;
  readonly files: DriverHost<FeedSet>['files'];
  /** Whether the whole still follows as a file. */
  readonly keepsStills: () => boolean;
  readonly signal: AbortSignal;
}

/** Between two pictures of one camera. */
const gap_ms = 10_000;
/** Cameras that are asked at the same time. */
const cameras_max = 4;
/** Alarms that one picture names. */
const alarms_max = 16;
/** Of a kit, so that they fill neither the link nor the buffer: 33 kB a minute, and a series of them. */
const rate = { perSecond: 1 / 60, burst: 30 } as const;

export class AlarmPictures {
  readonly #parts: AlarmPicturesParts;
  readonly #bucket = new TokenBucket(rate);
  /** By asset id: alarms whose picture is being taken. */
  readonly #under_way = new Map<string, Alarm[]>();
  /** By asset id, monotonic. */
  readonly #last_ms = new Map<string, number>();
  readonly #policy = snapshotCommand(gap_ms, async () => ({}));
  #off: string | undefined;

  constructor(parts: AlarmPicturesParts) {
    this.#parts = parts;
  }

  /** A message of this asset was published. Where it is an alarm, a picture follows, or a sentence why there is none. */
  published(asset: Asset, feed: string, message: unknown, log: DriverLog): void {
    const alarm = asset.takeAlarmPicture && alarmIn(feed, message);
    if (!alarm || this.#isOff(asset, log)) return;
    const { id } = asset.facts;
    const others = this.#under_way.get(id);
    if (others) {
      if (others.length < alarms_max) others.push(alarm);
      return;
    }
    this.#under_way.set(id, [alarm]);
    void this.#send(asset, log);
  }

  forget(asset_id: string): void {
    this.#last_ms.delete(asset_id);
  }

  /** Logged when it changes: on a metered link no message says so. */
  #isOff(asset: Asset, log: DriverLog): boolean {
    const allowed = this.#parts.allow(asset.target(), this.#policy);
    const reason = this.#parts.alarmPicturesOff() ?? (allowed === true ? undefined : allowed);
    if (reason !== this.#off) {
      if (reason === undefined) log.info({}, texts.alarm_pictures_on);
      else log.info({ reason }, texts.alarm_pictures_off);
    }
    this.#off = reason;
    return reason !== undefined;
  }

  /** Never rejects. */
  async #send(asset: Asset, log: DriverLog): Promise<void> {
    const { id, name } = asset.facts;
    const taken_ms = this.#parts.clock.stamp().time_ms;
    let jpeg: Buffer | undefined;
    let reason: string | null = null;
    const before_ms = this.#last_ms.get(id);
    try {
      jpeg = await this.#take(asset);
    } catch (error) {
      reason = messageOf(error);
      log.info({ name, reason }, texts.alarm_picture_missing);
    }
    const alarms = this.#under_way.get(id);
    this.#under_way.delete(id);
    if (asset.removed || this.#parts.signal.aborted) return;
    const taken_at = jpeg ? new Date(taken_ms).toISOString() : null;
    const message = { alarms, jpeg: jpeg?.toString('base64') ?? null, taken_at, reason };
    asset.gate?.publish(feed_behind, message, log);
    // Of alarms that come too often there are no whole stills either.
    if (this.#last_ms.get(id) !== before_ms) await this.#keepStill(asset, alarms, jpeg, log);
  }

  async #keepStill(
    { facts, takePicture }: Asset,
    alarms: readonly Alarm[] = [],
    thumbnail: Buffer | undefined,
    log: DriverLog,
  ): Promise<void> {
    const { pictures, files, keepsStills } = this.#parts;
    if (!pictures || !takePicture || !keepsStills()) return;
    try {
      const still = await pictures.get(facts.id, takePicture, 0);
      await files.add({ ...stillFile(facts, still), kind: 'alarm_still', thumbnail, alarms });
    } catch (error) {
      log.info({ name: facts.name, reason: messageOf(error) }, texts.alarm_still_missing);
    }
  }

  /** Rejects with the reason why there is none. */
  async #take({ facts: { id }, takeAlarmPicture: take }: Asset): Promise<Buffer> {
    const now_ms = this.#parts.clock.stamp().mono_ms;
    const since_ms = now_ms - (this.#last_ms.get(id) ?? Number.NEGATIVE_INFINITY);
    if (since_ms < gap_ms) throw new CommandRefused(texts.alarm_picture_gap(Math.round(since_ms / 1_000)));
    if (this.#under_way.size > cameras_max) throw new CommandRefused(texts.pictures_busy);
    if (!take || !this.#bucket.take(now_ms)) throw new CommandRefused(texts.alarm_pictures_many);
    this.#last_ms.set(id, now_ms);
    const jpeg = await takeInTime(take, this.#parts.signal);
    if (jpeg.length > alarm_picture_bytes_max)
      throw new CommandRefused(texts.alarm_picture_large(jpeg.length, alarm_picture_bytes_max));
    return jpeg;
  }
}
