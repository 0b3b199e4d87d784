/** A real outbox on a real file, with the test in the uplink's place: it takes messages and answers for the broker. */
import { join } from 'node:path';
import { unpackBatch } from '../../../src/contract/batch/batch.ts';
import type { JsonObject } from '../../../src/contract/json.ts';
import type { Lane } from '../../../src/contract/lanes.ts';
import { channels } from '../../../src/contract/topics.ts';
import type { AckRule } from '../../../src/kit/outbox/api.ts';
import { openOutbox, type Outbox } from '../../../src/kit/outbox/live/outbox.ts';
import type { StartStore } from '../../../src/kit/outbox/live/store-client.ts';
import type { Numbers } from '../../../src/kit/outbox/live/numbering.ts';
import type { OutgoingMessage } from '../../../src/kit/outbox/live/outgoing.ts';
import type { StoreLimits } from '../../../src/kit/outbox/protocol.ts';
import type { Clock } from '../../../src/platform/clock.ts';
import { sleep } from '../../../src/platform/time.ts';
import { roomy_limits } from '../kit/connector.ts';
import type { FaultyDisk } from './faulty-disk.ts';

const asset = '00000000-0000-4000-8000-000000000001';
const never = new AbortController().signal;

export interface OutboxLab {
  readonly outbox: Outbox;
  /** Sentences of warnings and errors. */
  readonly lines: readonly string[];
  send(lane: Lane, n: number, name?: string): number;
  connect(how?: { session_present?: boolean; packet_ms?: number; ack?: AckRule }): void;
  /** Takes what can be taken until `until`, else until nothing comes for a while; `answer` plays the broker for each. */
  pump(answer: (outgoing: OutgoingMessage) => void, until?: () => boolean): Promise<OutgoingMessage[]>;
}

export async function openLab(
  dir: string,
  options: {
    readonly clock?: Clock;
    readonly limits?: Partial<StoreLimits>;
    readonly batch_rows?: number;
    readonly disk?: FaultyDisk;
    readonly start?: StartStore;
    readonly numbers?: Numbers;
    readonly onEpoch?: (epoch: number) => void;
    readonly runtime_dir?: string;
  } = {},
): Promise<OutboxLab> {
  const lines: string[] = [];
  const capture = (_facts: object, sentence: string): void => void lines.push(sentence);
  const outbox = await openOutbox({
    file: join(dir, 'buffer.db'),
    limits: { ...roomy_limits, ...options.limits },
    clock: options.clock ?? steadyClock(),
    log: { info: () => undefined, warn: capture, error: capture },
    startStore: options.start ?? options.disk?.start,
    numbers: { random: () => 0, ...options.numbers },
    ...(options.runtime_dir !== undefined && { runtime_dir: options.runtime_dir }),
    form: { batch_rows: options.batch_rows ?? 200, batch_bytes: 64 * 1024 },
  });
  if (options.onEpoch) outbox.onEpoch = options.onEpoch;
  return {
    outbox,
    lines,
    send: (lane, n, name = 'x') => outbox.append({ lane, channel: channelFor(lane, name), data: { n } }).seq,
    connect: ({ session_present = true, packet_ms = 0, ack = 'broker' } = {}) =>
      outbox.dispatch.connected({ session_present, packet_ms, ack, onReady: () => undefined }),
    async pump(answer, until) {
      const taken: OutgoingMessage[] = [];
      const turns_max = until ? patient_turns : idle_turns;
      for (let idle = 0; idle < turns_max + last_answers;) {
        if (until?.()) break;
        const outgoing = outbox.dispatch.next({ backlog: true });
        if (outgoing) {
          idle = 0;
          taken.push(outgoing);
          answer(outgoing);
        } else {
          const nothing_left = !until && outbox.ledger().buffered === 0;
          idle = Math.max(idle + 1, nothing_left ? turns_max : 0);
          await (idle < turns_max ? sleep(10, never) : storeAnswers(outbox));
        }
      }
      return taken;
    },
  };
}
/** Longer than the pause of a group commit. */
const idle_turns = 45;
const patient_turns = 1_000;
/** A commit, what is read after it, and one more: on a busy machine the thread of the store may be behind. */
const last_answers = 3;
/** A disk that hangs answers nothing. */
const answer_max_ms = 1_000;

/** The store has answered all that it was asked before. */
async function storeAnswers(outbox: Outbox): Promise<void> {
  await Promise.race([outbox.list(1).catch(() => undefined), sleep(answer_max_ms, never)]);
}

/** A clock that is right, and whose time since boot goes on with the process. */
export function steadyClock(): Clock {
  return {
    boot_id: 'test',
    stamp: () => ({ time_ms: Date.now(), mono_ms: Math.round(performance.now()), synced: true }),
  };
}

function channelFor(lane: Lane, name: string): string {
  const by_lane: Readonly<Record<Lane, string>> = {
    task: channels.task(name),
    presence: channels.asset(name),
    alarm: channels.event(asset, name),
    kit: channels.telemetry,
    feed: channels.feed(asset, name),
  };
  return by_lane[lane];
}

interface Inside {
  readonly seq: number;
  readonly epoch: number;
  readonly time_ms: number;
  readonly time_quality?: string;
  readonly data: JsonObject;
}

/** The messages inside an outgoing message, which may be a batch. */
export function messagesIn({ payload }: OutgoingMessage): readonly Inside[] {
  if (typeof payload !== 'string') {
    return Array.from(unpackBatch(payload), ({ data, time_quality, ...item }) => ({
      ...item,
      ...(time_quality && { time_quality }),
      data: JSON.parse(data) as JsonObject,
    }));
  }
  const { time, ...single } = JSON.parse(payload) as Omit<Inside, 'time_ms'> & { readonly time: string };
  return [{ ...single, time_ms: Date.parse(time) }];
}
