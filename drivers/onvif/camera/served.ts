/** Publishes what a camera shows: an asset for each of its video sources, with its status and what its detectors report. */
import { feed_list_max } from '../../../src/contract/limits.ts';
import { onvifAiType, type onvifFeeds, pictureFault } from '../../../src/contract/feeds.ts';
import type { Command } from '../../../src/toolkit/driver/command.ts';
import type { AssetDescription, AssetSink, DriverHost } from '../../../src/toolkit/driver/driver.ts';
import type { Health } from '../../../src/toolkit/driver/health.ts';
import { every } from '../../../src/platform/time.ts';
import { Detections, type Edge } from '../events/detections.ts';
import type { EventFeed } from '../events/topic-table.ts';
import { texts } from '../texts.ts';

export interface ServedParts {
  readonly host: Pick<DriverHost<typeof onvifFeeds>, 'announce'>;
  readonly heartbeat_ms: number;
  readonly motion_hold_max_ms: number;
}

/** The assets of one camera, by the end of their key: empty for the camera itself. */
export class ServedSources {
  readonly #parts: ServedParts;
  readonly #served = new Map<string, Served>();

  constructor(parts: ServedParts) {
    this.#parts = parts;
  }

  of(end: string): Served {
    const served = this.#served.get(end) ?? new Served(this.#parts);
    this.#served.set(end, served);
    return served;
  }

  /** The camera is lost. */
  lose(reason: string): void {
    for (const served of this.#served.values()) served.lose(reason);
  }

  /** Reports whether events come. */
  setEvents(health: Health): void {
    for (const served of this.#served.values()) served.setEvents(health);
  }

  /** The camera does not list the video sources of the others. */
  keep(ends: readonly string[], reason: string): void {
    for (const [end, served] of this.#served) if (!ends.includes(end)) served.leave(reason);
  }
}

/** Keeps the asset over losses: each edge is published once. */
export class Served {
  readonly #parts: ServedParts;
  #sink: AssetSink<typeof onvifFeeds> | undefined;
  #announce: (commands: readonly Command[], offline_reason?: string | null) => void = () => undefined;
  #detections: Detections | undefined;

  constructor(parts: ServedParts) {
    this.#parts = parts;
  }

  /** The camera answered. The signal ends with this connection. */
  begin(
    described: Omit<AssetDescription, 'type' | 'protocol' | 'configured'>,
    commands: readonly Command[],
    signal: AbortSignal,
  ): Detections {
    const { host, heartbeat_ms, motion_hold_max_ms } = this.#parts;
    const asset = { ...described, configured: true, type: 'camera', protocol: 'onvif' } as const;
    const sink = host.announce(asset, commands);
    this.#sink = sink;
    let absence = described.offline_reason ?? null;
    this.#announce = (others, offline_reason = absence) => {
      this.#sink = host.announce({ ...asset, offline_reason }, others);
    };
    const beat = (): void => sink.publish('status', { online: absence === null, timestamp: now() });
    beat();
    every(heartbeat_ms, signal, beat);
    this.#detections = new Detections({
      hold_max_ms: motion_hold_max_ms,
      signal,
      edge: (feed, edge) => {
        publishEdge(sink, feed, edge);
        // A channel of a recorder that lists all of them (onvif/specs#470); the device itself answers.
        if (feed !== 'picture_fault' || !described.parent_key || described.offline_reason) return;
        absence = edge.types.includes('signal_loss') ? texts.no_signal : null;
        if (this.#detections) sink.setOnline(absence === null, texts.no_signal);
      },
    });
    return this.#detections;
  }

  /** Replaces the commands of a camera that is served. */
  offer(commands: readonly Command[]): void {
    if (this.#detections) this.#announce(commands);
  }

  setEvents(health: Health): void {
    this.#sink?.setHealth('events', health);
  }

  /** The camera answers, without this video source. */
  leave(reason: string): void {
    this.lose(reason);
    this.#announce([], reason);
  }

  /** Publishes the loss of the camera, once for all failed attempts. */
  lose(reason: string): void {
    const detections = this.#detections;
    if (!detections) return;
    this.#detections = undefined;
    detections.forget(reason);
    this.#sink?.publish('status', { online: false, timestamp: now() });
    this.#sink?.setOnline(false, reason);
  }
}

function publishEdge(
  sink: AssetSink<typeof onvifFeeds>,
  feed: EventFeed,
  { detected, types, reason }: Edge,
): void {
  const edge = { detected, timestamp: now(), ...(reason === undefined ? {} : { reason }) };
  switch (feed) {
    case 'ai_detection':
      sink.publish(feed, { ...edge, types: onvifAiType.options.filter((type) => types.includes(type)) });
      break;
    case 'picture_fault':
      sink.publish(feed, { ...edge, types: pictureFault.options.filter((type) => types.includes(type)) });
      break;
    case 'digital_input':
      sink.publish(feed, { ...edge, inputs: types.slice(0, feed_list_max) });
      break;
    case 'motion':
    case 'tamper':
    case 'doorbell':
    case 'sound':
    case 'storage_fault':
      sink.publish(feed, edge);
      break;
    default:
      feed satisfies never;
  }
}

/** The gateway's clock: that of a camera is often wrong. */
function now(): string {
  return new Date().toISOString();
}
