/** Whatever a device calls itself or says, the hub hands on nothing that deceives a reader. */
import { describe, expect, it, vi } from 'vitest';
import { z } from 'zod';
import { sentence_chars_max } from '../../../../src/contract/limits.ts';
import { defineDriver } from '../../../../src/toolkit/driver/driver.ts';
import { DeviceUnreachable } from '../../../../src/platform/errors.ts';
import { aborted } from '../../../../src/platform/time.ts';
import { command } from '../../../fakes/scripted-driver.ts';
import { corpus, isDeceptive } from '../../../support/foreign-text.ts';
import { testHub } from '../../../support/kit/test-hub.ts';
import { useFakeTime } from '../../../support/fake-time.ts';

useFakeTime();

const feeds = { status: z.looseObject({ reason: z.string() }) };

describe.each(Object.entries(corpus))('%s', (_, text) => {
  it('is cleaned in every carrier of the hub', async () => {
    const { carried } = await carriers(text);
    expect(carried).toContain('gate');
    // JSON writes some of them as codes, which are none of these then.
    expect(textsIn(JSON.parse(carried)).filter((found) => isDeceptive(found))).toEqual([]);
  });
});

it('text without end is cut in every carrier of the hub', async () => {
  const { lab } = await carriers('gate '.repeat(20_000));
  const { hub } = lab;
  const found = textsIn([hub.assets(), hub.drivers(), hub.kit(), hub.links()]);
  expect(Math.max(...found.map((text) => text.length))).toBe(sentence_chars_max);
});

/** What the hub hands on of a driver whose device writes this text everywhere. */
async function carriers(text: string) {
  const lab = testHub();
  const driver = defineDriver({
    name: 'devices',
    feeds,
    options: z.strictObject({}),
    run: async (_options, host) => {
      const about = { type: 'camera', protocol: 'onvif', name: text, vendor: text, model: text } as const;
      const asset = { ...about, firmware: text, asset_key: `key ${text}`, parent_key: text };
      const sink = host.announce(asset, [command('go', { description: text })]);
      sink.publish('status', { reason: text, nested: [{ text }] });
      sink.setOnline(false, text);
      host.announce({ ...about, firmware: text, asset_key: `${text} away`, offline_reason: text });
      host.reportLocation({ latitude: 1, longitude: 2, altitude: null, source: 'manual', age_ms: 0 });
      host.reportLink({ name: 'wan0', isp: text, reason: text });
      host.reportKit({ wans: [{ name: 'wan0', type: 'ethernet', status: 'offline' }] });
      const times = { tried_at: null, next_try_at: null };
      host.reportStatus({ path: text }, [
        { name: text, tried: text, asset_key: null, state: 'offline', reason: text, ...times },
      ]);
      await Promise.race([aborted(host.signal), vi.advanceTimersByTimeAsync(2_000)]);
      throw new DeviceUnreachable(text);
    },
  });
  void lab.run(driver);
  await vi.advanceTimersByTimeAsync(4_000);
  const carried = JSON.stringify([
    lab.outbox.drafts.map(({ data }) => data),
    lab.hub.assets(),
    lab.hub.drivers(),
    lab.hub.kit(),
    lab.hub.links(),
  ]);
  return { carried, lab };
}

function textsIn(value: unknown): string[] {
  if (typeof value === 'string') return [value];
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(textsIn) : [];
}

it('an asset whose name has no visible character is named by its key', async () => {
  const lab = testHub();
  const driver = defineDriver({
    name: 'devices',
    feeds,
    options: z.strictObject({}),
    run: async (_options, host) => {
      host.announce({ asset_key: 'onvif:1', name: '\u200B\u202E', type: 'camera', protocol: 'onvif' });
      await aborted(host.signal);
    },
  });
  void lab.run(driver);
  await vi.advanceTimersByTimeAsync(0);
  expect(lab.hub.assets()).toMatchObject([{ name: 'onvif:1' }]);
});
