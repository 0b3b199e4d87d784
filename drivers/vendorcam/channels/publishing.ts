/** Converts detections of a channel into feed messages: edges at once, the status also as a rare heartbeat; a loss ends detections. */
import type { AiType, vendorcamFeeds } from '../../../src/contract/feeds.ts';
import type { AssetSink } from '../../../src/driver/driver.ts';
import type { Alarms } from './alarms.ts';
import { texts } from '../texts.ts';

type Sink = Pick<AssetSink<typeof vendorcamFeeds>, 'publish' | 'setOnline'>;

export class Publisher {
  readonly #sink: Sink;
  readonly #heartbeat_ms: number;
  #motion: boolean | null = null;
  #ai: readonly AiType[] | null = null;
  #visitor = false;
  #status = '';
  #status_mono_ms = 0;

  constructor(sink: Sink, heartbeat_ms: number) {
    this.#sink = sink;
    this.#heartbeat_ms = heartbeat_ms;
  }

  /** The channel answers with these detections. */
  see({ motion, ai, visitor = false }: Alarms): void {
    this.#sink.setOnline(true);
    const timestamp = new Date().toISOString();
    if (motion !== null && motion !== this.#motion)
      this.#sink.publish('motion', { detected: motion, timestamp });
    if (ai !== null && ai.join() !== this.#ai?.join()) {
      this.#sink.publish('ai_detection', { detected: ai.length > 0, types: [...ai], timestamp });
    }
    if (visitor !== this.#visitor) this.#sink.publish('doorbell', { detected: visitor, timestamp });
    this.#visitor = visitor;
    // A detector that stops reporting ends its detection.
    if (motion === null) this.#endMotion(timestamp, texts.no_longer_reported);
    if (ai === null) this.#endAi(timestamp, texts.no_longer_reported);
    this.#motion = motion;
    this.#ai = ai;
    this.#tell({ online: true, motion_alarm: motion, ai_alarm: ai && ai.length > 0 });
  }

  /** The channel cannot be polled: its detections end, with the reason. */
  lose(reason: string): void {
    this.quiet(reason);
    this.#tell({ online: false, motion_alarm: null, ai_alarm: null });
    this.#sink.setOnline(false, reason);
  }

  /** Polling stopped: all detections end. */
  quiet(reason: string): void {
    const timestamp = new Date().toISOString();
    this.#endMotion(timestamp, reason);
    this.#endAi(timestamp, reason);
    if (this.#visitor) this.#sink.publish('doorbell', { detected: false, timestamp, reason });
    this.#visitor = false;
    this.#motion = null;
    this.#ai = null;
  }

  #endMotion(timestamp: string, reason: string): void {
    if (this.#motion === true) this.#sink.publish('motion', { detected: false, timestamp, reason });
  }

  #endAi(timestamp: string, reason: string): void {
    if (!this.#ai || this.#ai.length === 0) return;
    this.#sink.publish('ai_detection', { detected: false, types: [], timestamp, reason });
  }

  #tell(status: { online: boolean; motion_alarm: boolean | null; ai_alarm: boolean | null }): void {
    const now_ms = performance.now();
    const told = JSON.stringify(status);
    const isDue = status.online && now_ms - this.#status_mono_ms >= this.#heartbeat_ms;
    if (told === this.#status && !isDue) return;
    this.#status = told;
    this.#status_mono_ms = now_ms;
    this.#sink.publish('status', status);
  }
}
