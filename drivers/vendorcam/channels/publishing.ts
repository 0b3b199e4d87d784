/** Converts detections of a channel into feed messages: edges at once, the status also as a rare heartbeat; a loss ends detections. */
import type { AiType, vendorcamFeeds } from '../../../src/contract/feeds.ts';
import type { AssetSink } from '../../../src/driver/driver.ts';
import type { Reported } from '../push/alarm-events.ts';
import type { Alarms } from './alarms.ts';
import { texts } from '../texts.ts';

type Sink = Pick<AssetSink<typeof vendorcamFeeds>, 'publish' | 'setOnline'>;

export class Publisher {
  readonly #sink: Sink;
  readonly #heartbeat_ms: number;
  #motion: boolean | null = null;
  #ai: readonly AiType[] | null = null;
  /** Null: no doorbell. */
  #visitor: boolean | null = null;
  #fitted: readonly AiType[] = [];
  #status = '';
  #status_mono_ms = 0;

  constructor(sink: Sink, heartbeat_ms: number) {
    this.#sink = sink;
    this.#heartbeat_ms = heartbeat_ms;
  }

  /** The channel answers with these detections. Returns whether one began or ended since the answer before. */
  see({ motion, ai, fitted, visitor: rings }: Alarms): boolean {
    const visitor = rings ?? null;
    const before = [this.#motion, kindsOf(this.#ai), this.#visitor];
    const after = [motion, kindsOf(ai), visitor];
    this.#sink.setOnline(true);
    this.#publish({ motion, ai, isRinging: visitor === true });
    this.#motion = motion;
    this.#ai = ai;
    this.#fitted = fitted;
    this.#visitor = visitor;
    this.#tell({ online: true, motion_alarm: motion, ai_alarm: ai && ai.length > 0 });
    return before.some((earlier, at) => earlier !== null && earlier !== after[at]);
  }

  /** The camera pushes these detections. Only detectors that a poll has shown count, else the next poll would end them. */
  report({ motion, ai, visitor }: Reported): void {
    if (this.#motion === null && this.#ai === null) return;
    const fitted = this.#fitted;
    this.see({
      motion: this.#motion === null ? null : (motion ?? this.#motion),
      ai: this.#ai && (ai?.filter((type) => fitted.includes(type)) ?? this.#ai),
      fitted,
      ...(this.#visitor === null ? {} : { visitor: visitor ?? this.#visitor }),
    });
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
    if (this.#visitor === true) this.#sink.publish('doorbell', { detected: false, timestamp, reason });
    this.#visitor = null;
    this.#motion = null;
    this.#ai = null;
  }

  /** Publishes what differs from before. A detector that stops reporting ends its detection. */
  #publish({ motion, ai, isRinging }: Pick<Alarms, 'motion' | 'ai'> & { readonly isRinging: boolean }): void {
    const timestamp = new Date().toISOString();
    if (motion === null) this.#endMotion(timestamp, texts.no_longer_reported);
    else if (motion !== this.#motion) this.#sink.publish('motion', { detected: motion, timestamp });
    if (ai === null) this.#endAi(timestamp, texts.no_longer_reported);
    else if (kindsOf(ai) !== kindsOf(this.#ai)) {
      this.#sink.publish('ai_detection', { detected: ai.length > 0, types: [...ai], timestamp });
    }
    if (isRinging !== (this.#visitor === true)) {
      this.#sink.publish('doorbell', { detected: isRinging, timestamp });
    }
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

function kindsOf(ai: readonly AiType[] | null): string | null {
  return ai && ai.join();
}
