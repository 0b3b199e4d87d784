/**
 * What the cloud sends down: read, checked, and handed to whom it concerns. Only the PUBACK of a dispatch waits, until the
 * task is on disk; everything else is acknowledged at once, and nothing holds back what comes after it.
 */
import type { z } from 'zod';
import { message_limits, readJson } from '../../contract/bounded-json.ts';
import { firstFault } from '../../contract/first-fault.ts';
import { type PartnerChange, partnerChange } from '../../contract/partners.ts';
import { type FileAnswer, fileAnswer } from '../../contract/files.ts';
import { cloudAck, kitConfig, type CloudAck, type KitConfig } from '../../contract/tasks.ts';
import { type WhepRequest, whepRequest } from '../../contract/whep.ts';
import { parseDown } from '../../contract/topics.ts';
import { CommandRefused, messageOf } from '../../platform/errors.ts';
import type { Oversize } from '../../mqtt/frames.ts';
import type { Received } from '../../mqtt/connect.ts';
import type { Problems } from './problems.ts';
import { cleanTextsBut } from '../../platform/foreign-text.ts';
import { texts } from './texts.ts';

/** Larger down messages are not read. */
const payload_bytes_max = 256 * 1024;
/** What a broker has kept for the session comes within this time after the connection. */
const queued_ms = 10_000;
/** Dispatches that wait for the disk at once. More of them stay with the broker, unacknowledged. */
const dispatches_max = 64;

export interface DispatchDelivery {
  readonly task_id_in_topic: string;
  readonly retained: boolean;
  readonly duplicate: boolean;
  /** The broker may have kept it while the kit was away. */
  readonly queued: boolean;
}

export interface InboxHandlers {
  /**
   * `raw` is the payload as it came. Resolves when the dispatch is journaled or answered. Rejects with `CommandRefused` while the
   * connector stops: the dispatch stays with the broker.
   */
  readonly task: (raw: unknown, meta: DispatchDelivery) => Promise<void>;
  readonly cancel: (task_id: string) => void;
  /** Returns at once; what the acknowledgement releases is released in the background. */
  readonly ack: (ack: CloudAck) => void | Promise<void>;
  readonly sync: () => void;
  readonly config: (config: KitConfig) => void;
  /** The cloud changed a partner asset. */
  readonly partner: (asset_id: string, change: PartnerChange) => void | Promise<void>;
  /** The cloud wants something of a file. */
  readonly file: (file_id: string, answer: FileAnswer) => void | Promise<void>;
  /** A viewer of video came or left. `queued`: the broker may have kept it while the kit was away. */
  readonly whep: (request: WhepRequest, how: { readonly queued: boolean }) => void | Promise<void>;
}

export interface InboxLog {
  warn(facts: object, sentence: string): void;
}

export interface InboxOptions {
  readonly kit_id: string;
  readonly handlers: InboxHandlers;
  readonly log: InboxLog;
  /** Monotonic time. */
  readonly now: () => number;
  /** Called when the disk has taken all dispatches, and some were left with the broker meanwhile. */
  readonly onRoom: () => void;
}

/** Reads the down messages of one connection. */
export class Inbox {
  readonly #options: InboxOptions;
  #dispatches = 0;
  #left = 0;
  /** Until when messages may be old ones that the broker has kept. */
  #queued_until_ms = Number.POSITIVE_INFINITY;

  constructor(options: InboxOptions) {
    this.#options = options;
  }

  /** The broker has answered. `session_present`: it may have kept messages while the kit was away. */
  connected({ session_present }: { readonly session_present: boolean }): void {
    this.#queued_until_ms = session_present ? this.#options.now() + queued_ms : Number.NEGATIVE_INFINITY;
  }

  /**
   * Resolves when the message may be acknowledged; false: it stays with the broker. Never rejects for what the cloud wrote:
   * that is logged, or answered as a failed task.
   */
  async receive(message: Received): Promise<boolean> {
    const { kit_id, handlers, log } = this.#options;
    const { topic, payload, retained } = message;
    const down = parseDown(kit_id, topic);
    if (!down) {
      log.warn({ topic }, texts.unknown_topic);
      return true;
    }
    const json = (): unknown =>
      payload.length > payload_bytes_max ? `${payload.length} bytes` : valueIn(payload);
    switch (down.kind) {
      case 'task':
        // A cloud clears a wrongly retained dispatch with an empty retained message.
        return payload.length === 0 || this.#dispatch(down.task_id, message);
      case 'cancel':
        if (retained) log.warn({ task_id: down.task_id }, texts.retained_cancel);
        else handlers.cancel(down.task_id);
        break;
      case 'sync':
        handlers.sync();
        break;
      case 'ack':
        void given(fitting(cloudAck, json(), topic, log), async (ack) => handlers.ack(ack), log);
        break;
      case 'partner': {
        const { asset_id } = down;
        const change = fitting(partnerChange, cleanTextsBut('metadata', json()), topic, log);
        void given(change, async (value) => handlers.partner(asset_id, value), log);
        break;
      }
      case 'file': {
        const { file_id } = down;
        const answer = fitting(fileAnswer, json(), topic, log);
        void given(answer, async (value) => handlers.file(file_id, value), log);
        break;
      }
      case 'whep':
        this.#viewer(json(), message);
        break;
      case 'config':
        void given(fitting(kitConfig, json(), topic, log), async (config) => handlers.config(config), log);
        break;
    }
    return true;
  }

  #viewer(raw: unknown, { topic, retained }: Received): void {
    const { handlers, log, now } = this.#options;
    if (retained) return log.warn({ topic }, texts.retained_whep);
    const queued = now() < this.#queued_until_ms;
    const request = fitting(whepRequest, raw, topic, log);
    void given(request, async (value) => handlers.whep(value, { queued }), log);
  }

  async #dispatch(task_id_in_topic: string, { payload, retained, duplicate }: Received): Promise<boolean> {
    const { handlers, log, now, onRoom } = this.#options;
    if (this.#dispatches >= dispatches_max) {
      if (this.#left === 0) log.warn({ dispatches: this.#dispatches }, texts.too_many_dispatches);
      this.#left += 1;
      return false;
    }
    this.#dispatches += 1;
    try {
      const queued = now() < this.#queued_until_ms;
      await handlers.task(payload, { task_id_in_topic, retained, duplicate, queued });
      return true;
    } catch (error) {
      // The connector stops. Without a PUBACK the broker delivers it to the next run; the session is for the farewell.
      if (error instanceof CommandRefused) return false;
      throw error;
    } finally {
      this.#dispatches -= 1;
      if (this.#dispatches === 0 && this.#left > 0) onRoom();
    }
  }
}

/** Notes a message that was discarded unread. */
export function noteTooLarge({ topic, bytes }: Oversize, problems: Problems): void {
  problems.note('too_large', {
    sentence: `the cloud sent a message of ${bytes} bytes on ${topic}, which is too large and was discarded; send at most 256 KiB`,
    line: texts.message_too_large,
    facts: { topic, bytes },
    lasts: 'for_a_while',
  });
}

/** The value as the contract has it; undefined, and logged, when it does not match. */
function fitting<T extends z.ZodType>(
  schema: T,
  raw: unknown,
  topic: string,
  log: InboxLog,
): z.output<T> | undefined {
  const read = schema.safeParse(raw);
  if (read.success) return read.data;
  log.warn({ topic, reason: firstFault(read.error, { value: raw, name: '' }) }, texts.message_invalid);
  return undefined;
}

async function given<T>(
  value: T | undefined,
  handle: (value: T) => Promise<void>,
  log: InboxLog,
): Promise<void> {
  if (value === undefined) return;
  try {
    await handle(value);
  } catch (error) {
    log.warn({ reason: messageOf(error) }, texts.message_failed);
  }
}

function valueIn(payload: Buffer): unknown {
  const text = payload.toString('utf8');
  try {
    return readJson(text, message_limits);
  } catch {
    return text;
  }
}
