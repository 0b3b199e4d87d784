/** What `tail` and `npm start` show of a message. Colours are written as tags. */
import { describe, expect, it } from 'vitest';
import { messageFacts } from '../../../../src/cli/terminal/tail-screen.ts';
import { texts } from '../../../../src/cli/texts.ts';
import type { JsonObject } from '../../../../src/contract/json.ts';

const facts = (feed: string, data: JsonObject): readonly string[] =>
  messageFacts(feed, data, (colour, text) => (colour === 'dim' ? text : `<${colour}>${text}`));

describe('The facts of a message', () => {
  it.each<[string, string, JsonObject, readonly string[]]>([
    [
      'an asset are its state, type, device and reason',
      'asset',
      {
        type: 'camera',
        vendor: 'Acme',
        model: 'dome',
        firmware: null,
        status: 'offline',
        status_reason: 'no answer',
      },
      ['<bad>offline', 'camera', 'Acme dome', 'no answer'],
    ],
    [
      'an asset that does not deliver everything are what it lacks, in the words of the device',
      'asset',
      {
        type: 'camera',
        status: 'online',
        health: { events: { state: 'fails', reason: 'no room' }, still: { state: 'works', reason: null } },
      },
      ['<warn>degraded', 'camera', 'no events: no room'],
    ],
    ['a change of state are the state', 'asset_status', { status: 'online' }, ['<good>online']],
    ['the list of assets are their number', 'roster', { assets: ['a', 'b'] }, [texts.assets(2)]],
    [
      'a failed task are its command and its error',
      'task',
      { command_name: 'arm', status: 'failed', result: { error: 'not armable', code: 4 } },
      ['arm', '<bad>failed', 'not armable'],
    ],
    [
      'a completed task are its command and its result',
      'task',
      { command_name: 'get_params', status: 'completed', result: { count: 3 } },
      ['get_params', '<good>completed', 'count=3'],
    ],
    [
      'a running task are its command and its state',
      'task',
      { command_name: 'arm', status: 'running', result: {} },
      ['arm', '<warn>running'],
    ],
  ])('of %s', (_, feed, data, expected) => {
    expect(facts(feed, data)).toEqual(expected);
  });

  it('of drops are their rows by reason, over all epochs', () => {
    const drops = [
      { epoch: 1, lane: 'feed', reason: 'evicted', rows: 4, lo: 1, hi: 4 },
      { epoch: 2, lane: 'kit', reason: 'evicted', rows: 2, lo: 1, hi: 9 },
      { epoch: 2, lane: 'feed', reason: 'expired', rows: 1, lo: 5, hi: 5 },
    ];
    const shown = facts('drops', { drops });
    expect(shown).toEqual(['<warn>6 evicted, 1 expired']);
  });

  it('of telemetry are those that the kit knows, rounded', () => {
    const shown = facts('telemetry', {
      wans: [
        { name: 'eth0', status: 'online', latency_ms: 12.6 },
        { name: 'wwan0', status: 'offline', latency_ms: null },
      ],
      battery: null,
      location: { latitude: 47.123456, longitude: 8.5, source: 'satellite', stale: false },
      clients: [],
    });
    expect(shown).toEqual([
      'eth0 <good>online 13 ms, wwan0 <bad>offline',
      '47.12346, 8.50000',
      texts.clients(0),
    ]);
  });

  it('of a reading are its fields, without the time and what is unknown, lists of objects by their length', () => {
    const data = {
      timestamp: '2026-11-21T10:00:00.000Z',
      lat: 52.1,
      fix: null,
      name: '',
      tags: ['a', 'b'],
      objects: [{ kind: 'person' }, { kind: 'car' }],
      more: { a: 1 },
    };
    expect(facts('gps', data)).toEqual(['lat=52.1 tags=a,b objects=2 more={"a":1}']);
  });

  it.each(['asset', 'asset_status', 'roster', 'task', 'drops', 'telemetry'])(
    'of %s that cannot be read are its fields',
    (feed) => {
      expect(facts(feed, { assets: 7, status: 'unheard of', wans: 1, drops: 2 })).toEqual([
        'assets=7 status=unheard of wans=1 drops=2',
      ]);
    },
  );
});
