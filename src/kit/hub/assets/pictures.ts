/** Pictures of cameras: taken when asked for, one at a time for each camera, not more often than a limit; the newest are kept. */
import { picture_bytes_max, snapshotCommand } from '../../../toolkit/device/pictures/picture.ts';
import type { Command } from '../../../toolkit/driver/command.ts';
import type { DriverHost, NewFile, TakePicture } from '../../../toolkit/driver/driver.ts';
import type { FeedSet } from '../../../contract/feeds.ts';
import type { Health } from '../../../toolkit/driver/health.ts';
import { CommandRefused, DeviceUnreachable, messageOf } from '../../../platform/errors.ts';
import type { Clock } from '../../../platform/clock.ts';
import { within } from '../../../platform/time.ts';
import type { Asset } from './asset.ts';
import type { FoundCommand } from '../commands.ts';
import { texts } from '../texts.ts';

export interface Picture {
  readonly jpeg: Buffer;
  /** UTC, Unix time in milliseconds, when the camera was asked. */
  readonly taken_ms: number;
}

export interface PicturesParts {
  readonly clock: Pick<Clock, 'stamp'>;
  /** Path at the kit's service where the newest picture of this asset is fetched; undefined: it has none. */
  readonly pathOf: ((asset_id: string) => string) | undefined;
  readonly files: DriverHost<FeedSet>['files'];
  /** Whether what is ordered goes to the cloud as a file, too. */
  readonly keepsStills: () => boolean;
  /** A picture came, or a second one in a row did not. */
  readonly onOutcome: (asset_id: string, health: Health) => void;
  /** Ends every request for a picture. */
  readonly signal: AbortSignal;
}

/** Deadline of one picture. */
const picture_deadline_ms = 12_000;
/** Between two pictures of one camera; who asks sooner gets the last one, or its failure. */
export const picture_gap_ms = 2_000;
/** Cameras that are asked for a picture at the same time. */
const cameras_max = 4;
/** Of these, cameras whose last picture failed: cameras that never finish sending could otherwise occupy all places. */
const failing_max = 2;
/** Of all pictures that are kept; the oldest ones go first. */
export const kept_bytes_max = 4 * picture_bytes_max;

interface Shot {
  readonly begin_mono_ms: number;
  readonly picture: Promise<Picture>;
  isOver: boolean;
}

type Camera = Pick<Asset, 'facts' | 'online' | 'announcement' | 'takePicture'>;

/** By asset id. */
export class Pictures {
  readonly #parts: PicturesParts;
  /** Newest last. */
  readonly #kept = new Map<string, Picture & { readonly mono_ms: number }>();
  /** The last one of each camera, under way or settled. */
  readonly #shots = new Map<string, Shot>();
  readonly #under_way = new Set<string>();
  /** Cameras whose last picture failed. */
  readonly #failing = new Set<string>();
  /** Orders that come together share the file. */
  readonly #files = new WeakMap<Picture, Promise<string>>();

  constructor(parts: PicturesParts) {
    this.#parts = parts;
  }

  /** A picture not older than `age_max_ms`. Rejects with `DeviceUnreachable` when the camera gives none. */
  async get(asset_id: string, take: TakePicture, age_max_ms: number): Promise<Picture> {
    const now_ms = this.#parts.clock.stamp().mono_ms;
    const kept = this.#kept.get(asset_id);
    if (kept && now_ms - kept.mono_ms <= age_max_ms) return kept;
    const last = this.#shots.get(asset_id);
    if (last && (!last.isOver || now_ms - last.begin_mono_ms < picture_gap_ms)) return last.picture;
    if (!this.#hasPlace(asset_id)) throw new DeviceUnreachable(texts.pictures_busy);
    const shot: Shot = { begin_mono_ms: now_ms, picture: this.#take(asset_id, take), isOver: false };
    this.#shots.set(asset_id, shot);
    try {
      return await shot.picture;
    } finally {
      shot.isOver = true;
    }
  }

  forget(asset_id: string): void {
    this.#kept.delete(asset_id);
    this.#shots.delete(asset_id);
    this.#failing.delete(asset_id);
  }

  /**
   * A picture of this camera for a client, not older than `age_max_ms`; `found`: its command `snapshot`, which the local
   * policy may forbid. Rejects with `CommandRefused` where none may be taken, with `DeviceUnreachable` when it cannot be now.
   */
  async of(asset: Camera | undefined, found: FoundCommand, age_max_ms: number): Promise<Picture> {
    if ('refusal' in found) throw new CommandRefused(found.refusal);
    if (!asset?.takePicture) throw new CommandRefused(texts.no_pictures);
    const { name, status_reason } = asset.announcement();
    if (!asset.online) throw new DeviceUnreachable(texts.picture_offline(name, status_reason));
    return this.get(asset.facts.id, asset.takePicture, age_max_ms);
  }

  /** The command `snapshot`, where the asset gives pictures. */
  commandOf({ facts, takePicture }: Pick<Camera, 'facts' | 'takePicture'>): readonly Command[] {
    return takePicture ? [this.#command(facts, takePicture)] : [];
  }

  #command(facts: Camera['facts'], take: TakePicture): Command {
    const { pathOf, keepsStills } = this.#parts;
    return snapshotCommand(picture_deadline_ms + picture_gap_ms, async () => {
      const picture = await this.get(facts.id, take, 0);
      return {
        ...(pathOf && { path: pathOf(facts.id) }),
        ...(keepsStills() && { file_id: await this.#fileOf(facts, picture) }),
        bytes: picture.jpeg.length,
        taken_at: new Date(picture.taken_ms).toISOString(),
      };
    });
  }

  async #fileOf(facts: Camera['facts'], picture: Picture): Promise<string> {
    const kept =
      this.#files.get(picture) ?? this.#parts.files.add({ ...stillFile(facts, picture), kind: 'still' });
    this.#files.set(picture, kept);
    return kept;
  }

  #hasPlace(asset_id: string): boolean {
    if (this.#under_way.size >= cameras_max) return false;
    const failing = [...this.#under_way].filter((id) => this.#failing.has(id));
    return !this.#failing.has(asset_id) || failing.length < failing_max;
  }

  async #take(asset_id: string, take: TakePicture): Promise<Picture> {
    const { clock, signal } = this.#parts;
    const { time_ms: taken_ms, mono_ms } = clock.stamp();
    this.#under_way.add(asset_id);
    try {
      const jpeg = await takeInTime(take, signal);
      this.#failing.delete(asset_id);
      const picture = { jpeg, taken_ms, mono_ms };
      if (!signal.aborted && this.#shots.has(asset_id)) this.#keep(asset_id, picture);
      this.#parts.onOutcome(asset_id, { state: 'works' });
      return picture;
    } catch (error) {
      // A camera that was forgotten meanwhile has no shot.
      if (this.#failing.has(asset_id) && !signal.aborted) {
        this.#parts.onOutcome(asset_id, { state: 'fails', reason: messageOf(error) });
      }
      if (this.#shots.has(asset_id)) this.#failing.add(asset_id);
      throw error;
    } finally {
      this.#under_way.delete(asset_id);
    }
  }

  #keep(asset_id: string, picture: Picture & { readonly mono_ms: number }): void {
    this.#kept.delete(asset_id);
    this.#kept.set(asset_id, picture);
    let bytes = this.#kept.values().reduce((sum, { jpeg }) => sum + jpeg.length, 0);
    for (const [oldest, { jpeg }] of this.#kept) {
      if (bytes <= kept_bytes_max) return;
      this.#kept.delete(oldest);
      bytes -= jpeg.length;
    }
  }
}

export function stillFile({ asset_key, name }: Camera['facts'], { jpeg, taken_ms }: Picture) {
  const taken = new Date(taken_ms).toISOString().slice(0, 19).replaceAll(':', '-');
  const content_type = 'image/jpeg';
  return {
    asset_key,
    name: `${name} ${taken}.jpg`,
    at_ms: taken_ms,
    content_type,
    content: { bytes: jpeg },
  } satisfies Omit<NewFile, 'kind'>;
}

/** Rejects with `DeviceUnreachable` when the camera gives none in time. */
export async function takeInTime(take: TakePicture, signal: AbortSignal): Promise<Buffer> {
  const over = new AbortController();
  try {
    const jpeg = await within(picture_deadline_ms, take(AbortSignal.any([over.signal, signal])), signal);
    if (!jpeg) throw new DeviceUnreachable(texts.picture_late(picture_deadline_ms / 1_000));
    return jpeg;
  } finally {
    over.abort();
  }
}
