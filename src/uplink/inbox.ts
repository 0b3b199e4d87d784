/** What the cloud sends down: read, checked, and handed to whom it concerns before the PUBACK leaves. */
import type { z } from 'zod';
import { cloudAck, kitConfig, type CloudAck, type KitConfig } from '../contract/tasks.ts';
import { parseDown } from '../contract/topics.ts';
import { messageOf } from '../errors.ts';

/** Larger down messages are not read. */
const payload_bytes_max = 256 * 1024;

export interface DownMessage {
  readonly topic: string;
  readonly payload: Buffer;
  readonly retained: boolean;
  readonly duplicate: boolean;
}

export interface InboxHandlers {
  /** `raw` is the payload as it came. Resolves when the dispatch is journaled or answered. */
  readonly task: (
    raw: unknown,
    meta: { readonly task_id_in_topic: string; readonly retained: boolean; readonly duplicate: boolean },
  ) => Promise<void>;
  readonly cancel: (task_id: string) => void;
  readonly ack: (ack: CloudAck) => Promise<void>;
  readonly sync: () => void;
  readonly config: (config: KitConfig) => void;
}

export interface InboxLog {
  warn(facts: object, sentence: string): void;
}

/** Handles one down message. Never rejects for what the cloud wrote: that is logged, or answered as a failed task. */
export async function receive(
  kit_id: string,
  message: DownMessage,
  handlers: InboxHandlers,
  log: InboxLog,
): Promise<void> {
  const { topic, payload, retained, duplicate } = message;
  const down = parseDown(kit_id, topic);
  if (!down) {
    log.warn({ topic }, 'a message came on a topic that the contract does not know: ignored');
    return;
  }
  const raw = payload.length > payload_bytes_max ? `${payload.length} bytes` : readJson(payload);
  switch (down.kind) {
    case 'task':
      // An empty retained message is how a cloud takes back a dispatch that it wrongly retained.
      if (payload.length > 0)
        await handlers.task(payload, { task_id_in_topic: down.task_id, retained, duplicate });
      break;
    case 'cancel':
      if (retained) log.warn({ task_id: down.task_id }, 'a retained cancel was ignored');
      else handlers.cancel(down.task_id);
      break;
    case 'sync':
      handlers.sync();
      break;
    case 'ack':
      await given(fitting(cloudAck, raw, topic, log), handlers.ack, log);
      break;
    case 'config':
      await given(fitting(kitConfig, raw, topic, log), async (config) => handlers.config(config), log);
      break;
  }
}

/** The value as the contract has it; undefined, and said, when it does not fit. */
function fitting<T extends z.ZodType>(
  schema: T,
  raw: unknown,
  topic: string,
  log: InboxLog,
): z.output<T> | undefined {
  const read = schema.safeParse(raw);
  if (read.success) return read.data;
  const [issue] = read.error.issues;
  // Not `key`, which the log takes for a secret.
  const field = issue?.path.join('.') || undefined;
  log.warn(
    { topic, field, reason: issue?.message },
    'a message from the cloud does not fit the contract: ignored',
  );
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
    log.warn({ reason: messageOf(error) }, 'a message from the cloud could not be carried out now');
  }
}

function readJson(payload: Buffer): unknown {
  const text = payload.toString('utf8');
  try {
    const value: unknown = JSON.parse(text);
    return value;
  } catch {
    return text;
  }
}
