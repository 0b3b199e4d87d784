/** Topics, identifiers, envelopes and lanes, which the kit and the cloud must compute alike. */
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { dropReason, dropReport } from '../../../src/contract/drops.ts';
import { envelopeOf, writeEnvelope } from '../../../src/contract/envelope.ts';
import { edgeEvents, laneOfFeed, publishedFeeds } from '../../../src/contract/feeds.ts';
import { assetId, commandId } from '../../../src/contract/identity.ts';
import { kitTelemetry } from '../../../src/contract/kit.ts';
import { deathSeq, stateSeq } from '../../../src/contract/presence.ts';
import { taskDispatch } from '../../../src/contract/tasks.ts';
import type { Drop, DropReason } from '../../../src/kit/outbox/protocol.ts';
import { kit_id, task_id } from '../../support/contract-samples.ts';

describe('identifiers', () => {
  it('are UUIDs of version 5, as in the example of RFC 9562', () => {
    const dns_namespace = '6ba7b810-9dad-11d1-80b4-00c04fd430c8';
    expect(assetId(dns_namespace, 'www.example.com')).toBe('2ed6657d-e927-568b-95e1-2665a8aea6a2');
  });

  it('of equal commands differ from asset to asset', () => {
    expect(commandId(kit_id, 'a', 'arm')).toBe(assetId(assetId(kit_id, 'a'), 'arm'));
    expect(commandId(kit_id, 'b', 'arm')).not.toBe(commandId(kit_id, 'a', 'arm'));
  });
});

describe('an envelope', () => {
  const data = z.strictObject({ n: z.number() });
  const observed = { time_ms: 1_795_255_200_000, epoch: 2, seq: 0 };

  it('is written as its schema reads it', () => {
    const read = envelopeOf(data).parse(JSON.parse(writeEnvelope(observed, '{"n":1}')));
    expect(read).toEqual({ time: '2026-11-21T10:00:00.000Z', epoch: 2, seq: 0, data: { n: 1 } });
  });

  it('marks a time that is not trusted', () => {
    const text = writeEnvelope({ ...observed, time_quality: 'unsynced' }, '{"n":1}');
    expect(envelopeOf(data).parse(JSON.parse(text)).time_quality).toBe('unsynced');
  });
});

describe('lanes', () => {
  it('of camera feeds and of edges are alarms but for pictures, those of drone feeds are not but for what the vehicle warns of', () => {
    const { drone, vendorcam, onvif } = publishedFeeds;
    const all = [vendorcam, onvif, edgeEvents].flatMap((feeds) => Object.keys(feeds));
    const alarms = all.filter((feed) => feed !== 'alarm_picture');
    expect(laneOfFeed('alarm_picture')).toBe('feed');
    expect(new Set(alarms.map(laneOfFeed))).toEqual(new Set(['alarm']));
    expect(Object.keys(drone).filter((feed) => laneOfFeed(feed) === 'alarm')).toEqual(['alarm', 'failsafe']);
    expect(laneOfFeed('temperature')).toBe('feed');
  });

  it('have drops that are reported as the outbox keeps them', () => {
    const reasons: Record<DropReason, true> = {
      evicted: true,
      thinned: true,
      expired: true,
      superseded: true,
      memory_full: true,
      unreadable: true,
      too_large: true,
      discarded: true,
    };
    const drop: Drop = { epoch: 1, lane: 'feed', reason: 'evicted', rows: 2, lo: 0, hi: 9 };
    expect([...dropReason.options].sort()).toEqual(Object.keys(reasons).sort());
    expect(dropReport.parse({ drops: [drop] })).toEqual({ drops: [drop] });
  });
});

it('a will counts more than every state of its connection, and less than the birth of the next one', () => {
  const seqs = [stateSeq(1, 1), stateSeq(1, 2), stateSeq(1, 1e9), deathSeq(1), stateSeq(2, 1), deathSeq(2)];
  expect(seqs).toEqual([1, 2, 9_999_999, 10_000_000, 10_000_001, 20_000_000]);
});

it('a link may carry its name alone, and any field of it may be unknown', () => {
  const links = [
    { name: 'eth0' },
    { name: 'eth1', isp: null, latency_ms: null, usage: { today_rx_gb: null } },
  ];
  expect(kitTelemetry.parse({ wans: links })).toEqual({ wans: links });
});

it('a dispatch without payload has an empty one, and keys of later versions do not hurt', () => {
  const dispatch = {
    task_id,
    asset_id: task_id,
    command_name: 'arm',
    created_at: '2026-11-21T10:00:00Z',
    later: 1,
  };
  expect(taskDispatch.parse(dispatch)).toEqual({ ...dispatch, payload: {} });
});
