/** Publishes the texts of one vehicle: the latest as a feed, and each new warning as an alarm. */
import type { z } from 'zod';
import { type droneFeeds, severity as severities } from '../../../src/contract/drone-feeds.ts';
import { SeenRecently } from '../../../src/platform/seen-recently.ts';
import { TokenBucket } from '../../../src/platform/token-bucket.ts';
import type { Link } from '../links/link.ts';
import type { StatusText } from '../reports/status-text.ts';
import type { DroneSink } from './publishing.ts';
import { isArmingReason } from './situation.ts';

const shown_max = 10;
/** A text that comes again within this time, while it goes on coming, is no new one. */
const repeat_ms = 600_000;
/** Texts that only repeat are published no more often. */
const repeats_pause_ms = 60_000;
/** What two links deliver within this time is one text. */
const links_apart_max_ms = 5_000;
const alarms_remembered_max = 100;
const severity_critical = 2;
const severity_warning = 4;
/** Of what is critical, and of the rest apart: the device may send ever new texts, and none of them may displace an emergency. */
const alarms_rate = { perSecond: 1 / 30, burst: 10 };

type Shown = z.output<(typeof droneFeeds)['messages']>['messages'][number];

interface Known {
  readonly shown: Shown;
  readonly at_ms: number;
  readonly link: Link;
}

export class VehicleTexts {
  readonly #sink: DroneSink;
  /** Newest last. */
  readonly #known = new Map<string, Known>();
  readonly #alarmed = new SeenRecently<string>({ keep_ms: repeat_ms, max: alarms_remembered_max });
  readonly #rates = { critical: new TokenBucket(alarms_rate), other: new TokenBucket(alarms_rate) };
  #published_ms = Number.NEGATIVE_INFINITY;

  constructor(sink: DroneSink) {
    this.#sink = sink;
  }

  /** `now_ms` is monotonic. */
  receive({ severity, text }: StatusText, link: Link, now_ms: number): void {
    const named = severities.options[severity];
    if (named === undefined) return;
    const known = this.#known.get(text);
    const same = known && now_ms - known.at_ms < repeat_ms ? known : undefined;
    if (same && same.link !== link && now_ms - same.at_ms < links_apart_max_ms) return;
    const timestamp = new Date().toISOString();
    const count = (same?.shown.count ?? 0) + 1;
    this.#note({ shown: { text, severity: named, timestamp, count }, at_ms: now_ms, link });
    if (!same || now_ms - this.#published_ms >= repeats_pause_ms) this.#publish(now_ms);
    if (this.#isNewAlarm(severity, text, now_ms))
      this.#sink.publish('alarm', { text, severity: named, timestamp });
  }

  #note(known: Known): void {
    this.#known.delete(known.shown.text);
    this.#known.set(known.shown.text, known);
    const [oldest] = this.#known.keys();
    if (this.#known.size > shown_max && oldest !== undefined) this.#known.delete(oldest);
  }

  #publish(now_ms: number): void {
    this.#published_ms = now_ms;
    const messages = [...this.#known.values()].map(({ shown }) => shown).toReversed();
    this.#sink.publish('messages', { messages });
  }

  #isNewAlarm(severity: number, text: string, now_ms: number): boolean {
    if (severity > severity_warning || isArmingReason(text)) return false;
    const isKnown = this.#alarmed.has(text, now_ms);
    this.#alarmed.note(text, true, now_ms);
    const rate = this.#rates[severity <= severity_critical ? 'critical' : 'other'];
    return !isKnown && rate.take(now_ms);
  }
}
