/** Topics are built and read in one place: what one side writes, the other reads, and nothing else is read. */
import { describe, expect, it } from 'vitest';
import {
  type Channel,
  channelKind,
  channelOf,
  channels,
  type Down,
  downFilter,
  downFilters,
  downTopic,
  parseDown,
  parseUp,
  readChannel,
  upTopic,
} from '../../../src/contract/topics.ts';

const kit_id = '0f8c1a52-6d1e-4b7a-9c3d-1f2e3d4c5b6a';
const asset_id = '1b671a64-40d5-591e-99b0-da01ff1f3341';

describe('A channel of a kit', () => {
  it.each<Channel>([
    { kind: 'state' },
    { kind: 'telemetry' },
    { kind: 'batch' },
    { kind: 'drops' },
    { kind: 'roster' },
    { kind: 'asset', asset_id },
    { kind: 'commands', asset_id },
    { kind: 'partner', asset_id },
    { kind: 'feed', asset_id, feed: 'gps' },
    { kind: 'event', asset_id, feed: 'motion' },
    { kind: 'task', task_id: asset_id },
    { kind: 'file', file_id: asset_id },
  ])('is read as it was written: %j', (channel) => {
    const text = channelOf(channel);
    expect(readChannel(text)).toEqual(channel);
    expect(parseUp(upTopic(kit_id, text))).toEqual({ kit_id, channel: text });
    expect(channelKind(text)).toBe(channel.kind === 'commands' ? 'asset' : channel.kind);
  });

  it.each([
    '',
    'unknown',
    'asset',
    `asset/${asset_id}/other`,
    `asset/${asset_id}/commands/more`,
    `feed/${asset_id}`,
    `feed/${asset_id}/gps/more`,
    `task/${asset_id}/more`,
    `partner/${asset_id}/more`,
    `file/${asset_id}/more`,
    'state/more',
  ])('that the contract does not know is not read: %j', (text) => {
    expect(readChannel(text)).toBeUndefined();
  });

  it.each([`k2/${kit_id}/up/state`, `k1/${kit_id}/down/task/1`, `k1/${kit_id}/up`, 'k1//up/state', 'k1', ''])(
    'has no kit in the topic %j',
    (topic) => {
      expect(parseUp(topic)).toBeUndefined();
    },
  );
});

describe('A topic for a kit', () => {
  const messages: readonly Down[] = [
    { kind: 'task', task_id: asset_id },
    { kind: 'cancel', task_id: asset_id },
    { kind: 'partner', asset_id },
    { kind: 'file', file_id: asset_id },
    { kind: 'ack' },
    { kind: 'sync' },
    { kind: 'config' },
    { kind: 'whep' },
  ];

  it.each(messages)('is read as it was written, by this kit alone: %j', (down) => {
    const topic = downTopic(kit_id, down);
    expect(parseDown(kit_id, topic)).toEqual(down);
    expect(parseDown(asset_id, topic)).toBeUndefined();
  });

  it.each(messages)('is among those that the kit subscribes to: %j', (down) => {
    const topic = downTopic(kit_id, down);
    const fits = (filter: string): boolean =>
      filter.endsWith('/#') ? topic.startsWith(filter.slice(0, -1)) : topic === filter;
    expect(downFilters(kit_id).filter(fits)).toHaveLength(1);
    expect(fits(downFilter(kit_id))).toBe(true);
  });

  it.each(['task', 'task/', `task/${asset_id}/start`, `task/${asset_id}/cancel/more`, 'partner', 'partner/'])(
    'that the contract does not know is not read: %s',
    (path) => {
      expect(parseDown(kit_id, `k1/${kit_id}/down/${path}`)).toBeUndefined();
    },
  );

  it.each([`partner/${asset_id}/more`, 'ack/more', 'sync/', 'other', ''])('nor is %j', (path) => {
    expect(parseDown(kit_id, `k1/${kit_id}/down/${path}`)).toBeUndefined();
  });
});

it('the name of each channel begins with its kind', () => {
  expect(channels.commands(asset_id)).toBe(`${channels.asset(asset_id)}/commands`);
  expect(channels.feed(asset_id, 'gps')).toBe(`feed/${asset_id}/gps`);
});
