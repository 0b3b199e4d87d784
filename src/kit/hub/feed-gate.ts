/** What every feed message of one asset passes before it reaches the outbox: schema, then rate. */
import type { z } from 'zod';
import { channels } from '../../contract/topics.ts';
import { feed_behind, type FeedSet, laneOfFeed } from '../../contract/feeds.ts';
import { firstFault } from '../../contract/first-fault.ts';
import { fit } from '../../contract/fit.ts';
import type { JsonObject } from '../../contract/json.ts';
import type { DriverLog } from '../../toolkit/driver/driver.ts';
import { messageOf } from '../../platform/errors.ts';
import type { Appender } from '../outbox/api.ts';
import type { Clock } from '../../platform/clock.ts';
import { cleanTexts } from '../../platform/foreign-text.ts';
import type { PacedStream, Pacer } from './rate.ts';
import { texts } from './texts.ts';

export interface FeedGateParts {
  readonly asset_id: string;
  readonly feeds: FeedSet;
  readonly outbox: Appender;
  readonly clock: Clock;
  readonly pacer: Pacer;
  /** Called when the outbox contradicts itself: the process has to start again. */
  readonly broken: (error: unknown) => void;
}

/** Counters of one feed, as status shows them. */
export interface FeedView {
  /** Seconds since the newest message that was good. */
  readonly age_s: number;
  /** Messages handed to the outbox. */
  readonly messages: number;
  /** Messages that a newer one replaced while they waited for their turn. */
  readonly coalesced: number;
  /** Messages dropped because they break the feed's schema. */
  readonly invalid: number;
}

export type FeedGate = ReturnType<typeof createFeedGate>;

interface Counters {
  readonly schema: z.ZodType;
  readonly lane: ReturnType<typeof laneOfFeed>;
  readonly channel: string;
  readonly stream: PacedStream | undefined;
  newest_mono_ms: number;
  messages: number;
  coalesced: number;
  invalid: number;
}

export function createFeedGate(parts: FeedGateParts) {
  const { feeds, outbox, clock, broken } = parts;
  /** Only declared feeds get an entry, so that a driver cannot make it grow. */
  const seen = new Map<string, Counters>();
  let undeclared = false;

  const countersOf = (feed: string): Counters | undefined => {
    const known = seen.get(feed);
    if (known) return known;
    const schema = Object.hasOwn(feeds, feed) ? feeds[feed] : undefined;
    const fresh = schema && freshCounters(feed, schema, parts);
    if (fresh) seen.set(feed, fresh);
    return fresh;
  };

  const refuse = (feed: string, counters: Counters, reason: string, log: DriverLog): false => {
    counters.invalid += 1;
    if (counters.invalid === 1) log.error({ feed, reason }, texts.feed_invalid);
    return false;
  };

  return {
    feeds,
    /** Takes one message; answers whether it was good. Never throws. */
    publish(feed: string, message: unknown, log: DriverLog): boolean {
      const counters = countersOf(feed);
      if (!counters) {
        if (!undeclared) log.error({ feed }, texts.feed_undeclared);
        undeclared = true;
        return false;
      }
      const read = fit(counters.schema, message);
      if (!read.success) return refuse(feed, counters, firstFault(read.error), log);
      const data = cleanTexts(read.data);
      if (!isJsonObject(data)) return refuse(feed, counters, 'the message is not an object', log);
      const stamp = clock.stamp();
      counters.newest_mono_ms = stamp.mono_ms;
      const { channel, lane } = counters;
      const send = (): void => {
        try {
          outbox.append({ channel, lane, data, stamp, ...(feed === feed_behind && { is_behind: true }) });
          counters.messages += 1;
        } catch (error) {
          // Not even an outbox that is out of order may be taken for a bad message.
          if (isWritable(data)) broken(error);
          else refuse(feed, counters, messageOf(error), log);
        }
      };
      if (!counters.stream) send();
      else if (counters.stream.offer(send)) counters.coalesced += 1;
      return true;
    },
    /** By feed name, only feeds with at least one message. */
    view(): Readonly<Record<string, FeedView>> {
      const now_ms = clock.stamp().mono_ms;
      const entries = [...seen].map(([feed, { newest_mono_ms, messages, coalesced, invalid }]) => {
        const age_s = Math.round((now_ms - newest_mono_ms) / 100) / 10;
        return [feed, { age_s, messages, coalesced, invalid }] as const;
      });
      return Object.fromEntries(entries);
    },
    close(): void {
      for (const { stream } of seen.values()) stream?.close();
    },
  };
}

function freshCounters(feed: string, schema: z.ZodType, { asset_id, clock, pacer }: FeedGateParts): Counters {
  const lane = laneOfFeed(feed);
  return {
    schema,
    lane,
    channel: lane === 'alarm' ? channels.event(asset_id, feed) : channels.feed(asset_id, feed),
    stream: lane === 'feed' ? pacer.open(feed) : undefined,
    newest_mono_ms: clock.stamp().mono_ms,
    messages: 0,
    coalesced: 0,
    invalid: 0,
  };
}

/** Whether JSON can carry it: no big integers, no circles. */
function isWritable(data: JsonObject): boolean {
  try {
    JSON.stringify(data);
    return true;
  } catch {
    return false;
  }
}

/** Feed schemas describe what JSON can carry, so the outer shape is all that is left to check. */
function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
