/** Whatever a kit or a client writes, the service stores and hands on nothing that deceives a reader. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { packBatch } from '../../../src/contract/batch/pack.ts';
import type { Json } from '../../../src/contract/json.ts';
import { channels, upTopic } from '../../../src/contract/topics.ts';
import { readMessage } from '../../../src/cloud/read-message.ts';
import { asset_id, kit_id, samples, task_id } from '../../support/contract-samples.ts';
import { corpus, isDeceptive } from '../../support/foreign-text.ts';
import { type ServiceLab, startServiceLab } from '../../support/service/service-lab.ts';
import { start_ms } from './story.ts';

/** Every kind of channel with a sample of its data. */
const carriers: readonly (readonly [channel: string, sample: string])[] = [
  [channels.state, 'kitState'],
  [channels.telemetry, 'kitTelemetry'],
  [channels.roster, 'roster'],
  [channels.drops, 'dropReport'],
  [channels.asset(asset_id), 'announcement'],
  [channels.commands(asset_id), 'commandList'],
  [channels.feed(asset_id, 'status'), 'vendorradioStatus'],
  [channels.event(asset_id, 'ai_detection'), 'vendorcamAiDetection'],
  [channels.task(task_id), 'taskReport'],
  [channels.partner(asset_id), 'partnerRecord'],
];

/** The value with this in every text and every key. */
function poisoned(value: Json, text: string): Json {
  if (typeof value === 'string') return text;
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) {
    const items: readonly Json[] = value;
    return [...items, text].map((each) => poisoned(each, text));
  }
  const entries = Object.entries(value).filter(([key]) => key !== 'metadata');
  return {
    ...Object.fromEntries(entries.map(([key, each]) => [key, poisoned(each ?? null, text)])),
    [`key ${text}`]: text,
  };
}

/** Texts of a value; a key of its own is text too. `metadata` belongs to the client of a partner asset. */
function textsIn(value: unknown): string[] {
  if (typeof value === 'string') return [value];
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, each]) => (key === 'metadata' ? [] : [key, ...textsIn(each)]));
}

function deceptiveIn(value: unknown): string[] {
  return textsIn(value).filter((text) => isDeceptive(text));
}

describe.each(Object.entries(corpus))('%s', (_, text) => {
  it.each(carriers)('is cleaned on %s, alone and in a batch', (channel, sample) => {
    const data = JSON.stringify(poisoned(samples[sample] ?? {}, text));
    const envelope = `{"time":"${new Date(start_ms).toISOString()}","epoch":17,"seq":1,"data":${data}}`;
    const alone = readMessage(upTopic(kit_id, channel), Buffer.from(envelope));
    expect(JSON.stringify(alone?.messages)).toContain('gate');
    expect(deceptiveIn(alone?.messages)).toEqual([]);
    if (channel === channels.state) return;
    const items = [{ channel, epoch: 17, seq: 1, time_ms: start_ms, data }];
    const batch = readMessage(upTopic(kit_id, channels.batch), packBatch(items, { historical: true }));
    expect(JSON.stringify(batch?.messages)).toContain('gate');
    expect(deceptiveIn(batch?.messages)).toEqual([]);
    // As it came it must not reach the history.
    expect(batch?.packed).toBeUndefined();
  });

  it('stays as it is in the metadata of a partner asset', () => {
    const metadata = { note: text };
    const data = JSON.stringify({ ...samples['partnerRecord'], metadata });
    const envelope = `{"time":"${new Date(start_ms).toISOString()}","epoch":17,"seq":1,"data":${data}}`;
    const read = readMessage(upTopic(kit_id, channels.partner(asset_id)), Buffer.from(envelope));
    expect(read?.messages[0]?.data).toHaveProperty('metadata', metadata);
  });
});

describe('a service with a hostile kit and a hostile client', () => {
  let lab: ServiceLab;
  beforeEach(async () => {
    lab = await startServiceLab(kit_id);
  });
  afterEach(async () => lab.stop());

  const get = async (path: string): Promise<unknown> => {
    const response = await fetch(`${lab.url}${path}`, { headers: { 'x-api-key': lab.key } });
    return response.json();
  };

  it('answers with nothing that deceives a reader, in lists, assets, feeds, tasks and history', async () => {
    const text = Object.values(corpus).join(' ');
    await lab.publish(channels.state, { ...samples['kitState'], name: text, degraded: [text] });
    await lab.publish(channels.asset(asset_id), {
      ...samples['announcement'],
      name: text,
      model: text,
      vendor: text,
    });
    await lab.publish(channels.feed(asset_id, 'status'), { status: text, reason: text });
    await lab.publish(channels.event(asset_id, 'asset_status'), { status: 'offline', reason: text });
    const kit = `/api/kits/${kit_id}`;
    const answers = await Promise.all(
      ['/api/kits', kit, `${kit}/assets`, `${kit}/assets/${asset_id}`, `${kit}/events`].map(get),
    );
    expect(JSON.stringify(answers)).toContain('gate');
    expect(deceptiveIn(answers)).toEqual([]);
  });

  it('registers an asset by what can be seen of its name, and refuses one without', async () => {
    const post = async (name: string): Promise<{ readonly status: number; readonly body: unknown }> => {
      const response = await fetch(`${lab.url}/api/kits/${kit_id}/assets`, {
        method: 'POST',
        headers: { 'x-api-key': lab.key, 'content-type': 'application/json' },
        body: JSON.stringify({ name, type: 'vehicle' }),
      });
      return { status: response.status, body: await response.json() };
    };
    await lab.publish(channels.state, samples['kitState'] ?? {});
    const drawn = await post('gate\u202Eexe.fdp\u200B');
    expect(drawn).toMatchObject({ status: 201, body: { name: 'gateexe.fdp' } });
    expect(await post('\u200B\u202E')).toMatchObject({ status: 422 });
    expect(await post('gate\u001B[2J')).toMatchObject({ status: 422 });
  });
});
