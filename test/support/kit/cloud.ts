/** The cloud's side of the contract on a real MQTT 5 client: takes what a kit publishes, checks all of it, and sends down. */
import { connectAsync, type IClientOptions } from 'mqtt';
import { z } from 'zod';
import { openBatch, unpackBatch } from '../../../src/contract/batch/batch.ts';
import { timeQuality } from '../../../src/contract/envelope.ts';
import { jsonObject, type JsonObject } from '../../../src/contract/json.ts';
import { type Down, downTopic, upTopic, parseWhep } from '../../../src/contract/topics.ts';
import { within } from '../../../src/platform/time.ts';
import { contractChecker } from '../contract-check.ts';

/** A message as the cloud understands it: those of a batch one by one. */
export interface Heard {
  /** The topic below `k1/{kit_id}/up/`. */
  readonly channel: string;
  readonly retain: boolean;
  /** Came inside a batch that is marked as history. */
  readonly historical: boolean;
  readonly time: string;
  readonly epoch: number;
  readonly seq: number;
  /** Null: the retained topic was cleared. */
  readonly data: JsonObject | null;
}

export interface Cloud {
  /** In the order in which they came. */
  readonly heard: readonly Heard[];
  /** Everything that came, as it lay on the wire. */
  readonly raw: readonly { readonly topic: string; readonly payload: Buffer }[];
  /** Messages of one channel; with a trailing `/`, of all channels below it. */
  on(channel: string): readonly Heard[];
  /** Resolves with the first message, heard already or yet to come, that fits; rejects with `what` after `ms`. */
  until(what: string, fits: (message: Heard) => boolean, ms?: number): Promise<Heard>;
  send(down: Down, body: object | string, how?: { readonly retain: boolean }): Promise<void>;
  /** Rejects when anything of what came broke the contract. */
  leave(): Promise<void>;
}

const patience_ms = 60_000;
const envelope = z.looseObject({
  time: z.string(),
  time_quality: timeQuality.optional(),
  epoch: z.int(),
  seq: z.int(),
  data: jsonObject.nullable(),
});

/** Connects and subscribes to everything of the kit. */
export async function startCloud(url: string, kit_id: string, options: IClientOptions = {}): Promise<Cloud> {
  const check = contractChecker();
  const faults: string[] = [];
  const heard: Heard[] = [];
  const raw: { topic: string; payload: Buffer }[] = [];
  const waiters = new Set<() => void>();
  const client = await connectAsync(url, { protocolVersion: 5, ...options }, false);
  client.on('message', (topic, payload, { retain }) => {
    raw.push({ topic, payload });
    try {
      check(topic, payload, { kit_id });
      if (!parseWhep(topic)) heard.push(...read(topic.slice(upTopic(kit_id, '').length), payload, retain));
    } catch (error) {
      faults.push(error instanceof Error ? error.message : String(error));
    }
    for (const look of waiters) look();
  });
  // With "retain as published", the flag tells what the kit asked for and not whether the message is old.
  await client.subscribeAsync(upTopic(kit_id, '#'), { qos: 1, rap: true });
  return {
    heard,
    raw,
    on: (channel) =>
      heard.filter(
        (each) => each.channel === channel || (channel.endsWith('/') && each.channel.startsWith(channel)),
      ),
    async until(what, fits, ms = patience_ms) {
      const found = Promise.withResolvers<Heard>();
      let at = 0;
      const look = (): void => {
        const [fault] = faults;
        if (fault) found.reject(new Error(fault));
        for (; at < heard.length; at++) {
          const message = heard[at];
          if (message && fits(message)) found.resolve(message);
        }
      };
      waiters.add(look);
      look();
      const message = await within(ms, found.promise);
      waiters.delete(look);
      if (!message) throw new Error(`not within ${ms} ms: ${what}; heard: ${summary(heard)}`);
      return message;
    },
    async send(down, body, { retain } = { retain: false }) {
      const payload = typeof body === 'string' ? body : JSON.stringify(body);
      await client.publishAsync(downTopic(kit_id, down), payload, { qos: 1, retain });
    },
    async leave() {
      await client.endAsync(true);
      if (faults.length > 0) throw new Error(`${faults.length} messages break the contract: ${faults[0]}`);
    },
  };
}

function read(channel: string, payload: Buffer, retain: boolean): Heard[] {
  if (payload.length === 0)
    return [{ channel, retain, historical: false, time: '', epoch: 0, seq: 0, data: null }];
  if (channel !== 'batch')
    return [{ channel, retain, historical: false, ...envelope.parse(JSON.parse(payload.toString())) }];
  const { historical } = openBatch(payload);
  return unpackBatch(payload).map(({ channel, time_ms, epoch, seq, data }) => ({
    channel,
    retain,
    historical,
    time: new Date(time_ms).toISOString(),
    epoch,
    seq,
    data: jsonObject.nullable().parse(JSON.parse(data)),
  }));
}

function summary(heard: readonly Heard[]): string {
  return heard
    .slice(-20)
    .map(({ channel, data }) => `${channel} ${JSON.stringify(data).slice(0, 160)}`)
    .join('\n');
}
