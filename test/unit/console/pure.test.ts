/** The parts of the page that only compute: ages, places, names, forms and the tree. The browser's modules run here as they are. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { telemetrySection } from '../../../src/kit/config/telemetry.ts';
import { payloadFaults } from '../../../src/cloud/api/payload.ts';
import type { JsonObject } from '../../../src/contract/json.ts';
import type { Field, LiveAsset, Now, ServerFrame } from '../../../src/console/types.d.ts';
import { project, bearingText, roundDown } from '../../../src/console/world/geo.ts';
import { freshness, assetState, kit_old_ms } from '../../../src/console/world/age.ts';
import { plain, fieldText } from '../../../src/console/world/text.ts';
import { fieldsOf, readFields } from '../../../src/console/views/command/form.ts';
import { assetTree, drainsIn, emptyWorld, takeFrame } from '../../../src/console/world/world.ts';
import { repeatOf } from '../../../src/console/world/payload.ts';
import { crowdsOf } from '../../../src/console/views/map/overlay.ts';
import { lineThrough } from '../../../src/console/views/parts/spark.ts';
import { csvText } from '../../../src/console/views/activity/activity-screen.ts';

interface Place {
  readonly lat: number;
  readonly lon: number;
}

const time_ms = Date.parse('2026-11-21T10:00:00.000Z');
const now = (state: 'live' | 'lost' = 'live', online = true): Now =>
  ({ world: { kit: { online } }, link: { state, since_ms: 0 }, time_ms, isInStep: true }) as unknown as Now;
const asset = (about: Partial<LiveAsset>): LiveAsset =>
  ({
    id: 'a',
    name: 'a',
    type: 'drone',
    status: 'online',
    protocol: 'mavlink',
    parent_id: null,
    ...about,
  }) as LiveAsset;

describe('how long a queue will last', () => {
  const queue = (s: number, waiting_rows: number | null): ServerFrame =>
    ({
      type: 'queue',
      queue: { as_of: new Date(time_ms + s * 1_000).toISOString(), waiting_rows },
    }) as unknown as ServerFrame;

  // Seconds and what was waiting then.
  it.each<[string, string, number | undefined]>([
    ['one report', '0:100', undefined],
    ['the same report twice', '0:100 0:100', undefined],
    ['two reports that are too close', '0:100 2:50', undefined],
    ['a queue that shrinks', '0:100 10:80', 40_000],
    ['a queue that shrinks, over all its reports', '0:100 5:95 10:80', 40_000],
    ['a queue that stands', '0:100 10:100', undefined],
    ['a queue that grows', '0:100 10:120', undefined],
    ['a queue that shrinks again after it grew', '0:100 10:120 20:60', 10_000],
    ['a queue that is empty', '0:100 10:0', undefined],
    ['a kit that does not say', '0:100 10:null', undefined],
    ['reports of long ago', '-500:100 -490:80', undefined],
  ])('%s', (_, reports, expected) => {
    const world = emptyWorld();
    for (const report of reports.split(' ')) {
      const [s, rows] = report.split(':');
      takeFrame(world, queue(Number(s), rows === 'null' ? null : Number(rows)));
    }
    expect(drainsIn(world, time_ms + 20_000)).toBe(expected);
  });
});

describe('ages', () => {
  it.each([
    ['2026-11-21T09:59:50.000Z', true, { age_ms: 10_000, isOld: false }],
    ['2026-11-21T09:59:29.000Z', true, { age_ms: 31_000, isOld: true }],
    ['2026-11-21T09:59:50.000Z', false, { age_ms: 10_000, isOld: true }],
    [null, true, { age_ms: null, isOld: true }],
    ['rubbish', true, { age_ms: null, isOld: true }],
  ])('judges %s, reachable: %s', (time, isReachable, expected) => {
    expect(freshness(time, 30_000, now(), isReachable)).toEqual(expected);
  });

  it.each([
    ['live', true, {}, 'online'],
    ['lost', true, {}, 'was online'],
    ['live', false, {}, 'was online'],
    ['live', false, { protocol: 'partner' }, 'online'],
    ['live', true, { status: 'offline' }, 'offline'],
  ] as const)('with the page link %s and the kit online: %s, %j is %s', (link, online, about, word) => {
    expect(assetState(asset(about), now(link, online))).toBe(word);
  });
});

it('a kit that has said all within its usual time is not called old', () => {
  const { floor_s } = telemetrySection.parse({});
  expect(kit_old_ms).toBeGreaterThan(floor_s * 1_000);
});

describe('places', () => {
  const center = fc.record({
    lat: fc.double({ min: -80, max: 80, noNaN: true }),
    lon: fc.double({ min: -180, max: 180, noNaN: true }),
  });

  it('keeps the distances of a great circle, at any meridian', () => {
    fc.assert(
      fc.property(
        center,
        fc.double({ min: -0.15, max: 0.15, noNaN: true }),
        fc.double({ min: -0.15, max: 0.15, noNaN: true }),
        (from, dLat, dLon) => {
          const to = { lat: from.lat + dLat, lon: ((from.lon + dLon + 540) % 360) - 180 };
          expect(Math.hypot(...project(from, to))).toBeCloseTo(greatCircle(from, to), 1);
        },
      ),
    );
  });

  it.each([
    [{ lat: 47.001, lon: 8 }, '111\u00a0m 000°'],
    [{ lat: 47, lon: 8.1 }, '7.6\u00a0km 090°'],
    [{ lat: 46.9, lon: 7.9 }, '13\u00a0km 214°'],
    [{ lat: 47, lon: 8 }, '0\u00a0m'],
  ])('reads %j aloud as "%s"', (to, text) => {
    expect(bearingText({ lat: 47, lon: 8 }, to)).toBe(text);
  });

  it('rounds down to 1, 2 or 5 times a power of ten', () => {
    fc.assert(
      fc.property(fc.double({ min: 0.01, max: 1e7, noNaN: true }), (m) => {
        const round = roundDown(m);
        expect(round).toBeLessThanOrEqual(m * (1 + 1e-12));
        expect(round * 2.51).toBeGreaterThan(m);
      }),
    );
  });
});

/** The haversine formula. */
function greatCircle(a: Place, b: Place): number {
  const rad = Math.PI / 180;
  const h =
    Math.sin(((b.lat - a.lat) * rad) / 2) ** 2 +
    Math.cos(a.lat * rad) * Math.cos(b.lat * rad) * Math.sin(((b.lon - a.lon) * rad) / 2) ** 2;
  return 2 * 6_371_008.8 * Math.asin(Math.sqrt(h));
}

describe('names and values', () => {
  it('shows what would hide or reorder text', () => {
    expect(plain('exe\u202egpj.\u200b\u0007')).toBe('exe\ufffdgpj.\ufffd\ufffd');
  });

  it('never writes more than 200 characters, and never half of one', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', maxLength: 400 }), (text) => {
        const shown = plain(text);
        expect([shown.length <= 200, shown.isWellFormed()]).toEqual([true, true]);
      }),
    );
  });

  it.each([
    ['remaining_pct', 71, '71 %'],
    ['voltage', 15.81234, '15.81 V'],
    ['lat', 47.12345678, '47.123457'],
    ['current', null, 'not reported'],
    ['armed', false, 'no'],
    ['types', [], 'none'],
    ['batteries', [{ id: 0, voltage: 15.8, current: null }], 'id 0, voltage 15.8 V, current not reported'],
  ])('writes %s %j as "%s"', (name, value, text) => {
    expect(fieldText(name, value)).toBe(text);
  });
});

describe('forms', () => {
  const number = fc.record({
    type: fc.constantFrom('number', 'integer'),
    minimum: fc.integer({ min: -9, max: 0 }),
    maximum: fc.integer({ min: 1, max: 9 }),
  });
  const property = fc.oneof(
    number,
    fc.constant({ type: 'boolean' }),
    fc.constant({ type: 'string', enum: ['up', 'down'] }),
    fc.constant({ type: 'string', maxLength: 4 }),
  );
  const schema = fc.dictionary(fc.constantFrom('a', 'b', 'c'), property, { minKeys: 1 }).chain((properties) =>
    fc.record({
      type: fc.constant('object'),
      properties: fc.constant(properties),
      required: fc.subarray(Object.keys(properties)),
      additionalProperties: fc.constant(false),
    }),
  ) as fc.Arbitrary<JsonObject>;
  const text = fc.constantFrom(...'|up|down|true|false|0|1|-3|2,5|12|1e1|x|hello| 4 '.split('|'));

  it('sends nothing that the service would refuse for what the form checks', () => {
    fc.assert(
      fc.property(schema, fc.dictionary(fc.constantFrom('a', 'b', 'c'), text), (input_schema, texts) => {
        const fields = fieldsOf(input_schema) ?? [];
        // A choice and a switch can only be set to what they offer.
        const offered = ({ name, kind, choices }: Field): boolean =>
          (kind !== 'choice' || ['', ...choices.map(({ value }) => value)].includes(texts[name] ?? '')) &&
          (kind !== 'boolean' || ['', 'true', 'false'].includes(texts[name] ?? ''));
        fc.pre(fields.length > 0 && fields.every(offered));
        const { payload, faults } = readFields(fields, (name) => texts[name] ?? '');
        expect(faults.size > 0 || payloadFaults(input_schema, payload).length === 0).toBe(true);
      }),
    );
  });

  it('takes a comma for a point, as phones offer it', () => {
    const fields = fieldsOf({ type: 'object', properties: { alt_m: { type: 'number' } } }) ?? [];
    expect(readFields(fields, () => '12,5').payload).toEqual({ alt_m: 12.5 });
    expect(fields[0]?.label).toBe('Altitude, m');
  });

  it.each<[JsonObject]>([
    [{ type: 'object', oneOf: [] }],
    [{ type: 'object', properties: { a: { type: 'array' } } }],
    [{ type: 'object', properties: { a: { type: 'string', pattern: '^(a+)+$' } } }],
    [{ type: 'object', properties: { a: { type: 'string', enum: [1] } } }],
    [{ type: 'array' }],
  ])('makes no form of %j', (input_schema) => {
    expect(fieldsOf(input_schema)).toBeUndefined();
  });
});

describe('the tree of assets', () => {
  it('shows each asset once, whatever the parents say, also in a circle', () => {
    const id = fc.constantFrom('a', 'b', 'c', 'd');
    fc.assert(
      fc.property(fc.dictionary(id, fc.option(fc.oneof(id, fc.constant('gone')))), (parents) => {
        const world = emptyWorld();
        for (const [key, parent_id] of Object.entries(parents))
          world.assets.set(key, asset({ id: key, name: key, parent_id }));
        const shown = assetTree(world, () => true).map(({ asset: each }) => each.id);
        expect(shown.toSorted()).toEqual(Object.keys(parents).toSorted());
      }),
    );
  });

  it('puts a child below its parent', () => {
    const world = emptyWorld();
    world.assets.set('cam', asset({ id: 'cam', type: 'camera', parent_id: 'd' }));
    world.assets.set('d', asset({ id: 'd' }));
    expect(assetTree(world, () => true).map(({ asset: { id }, depth }) => [id, depth])).toEqual([
      ['d', 0],
      ['cam', 1],
    ]);
  });
});

describe('A button that is held', () => {
  it.each([
    [undefined, 1_700],
    [1_000, 850],
    [2_000, 1_700],
    [10_000, 1_700],
    [200, 300],
  ])('sends again in time for movements of %s ms', (move_ms, repeat_ms) => {
    const input_schema = { type: 'object', ...(move_ms !== undefined && { 'x-kit-move-ms': move_ms }) };
    expect(repeatOf({ input_schema })).toBe(repeat_ms);
  });
});

describe('Rows as CSV', () => {
  it('quote every field, and let no spreadsheet run a text as a formula', () => {
    const rows = [
      ['time', 'a "name", with a comma'],
      ['=1+1', '@x'],
      ['-3', 'two\nlines'],
      ['a;=1', 'b\n"+1', '＝1', 'c; d;"-e"'],
    ];
    expect(csvText(rows)).toBe(
      `"time","a ""name"", with a comma"\r\n"'=1+1","'@x"\r\n"'-3","two\nlines"\r\n"a;'=1","b\n""'+1","'＝1","c; d;""'-e"""\r\n`,
    );
  });
});

describe('changes of links', () => {
  it('are kept for remembered links when there is no room for others', () => {
    const world = emptyWorld();
    const report = (name: string, status: string, minutes: number): void =>
      takeFrame(world, {
        type: 'feed',
        asset_id: 'gateway',
        feed: 'link_status',
        message: { time: new Date(minutes * 60_000).toISOString(), data: { name, status } },
      } as unknown as ServerFrame);
    for (let i = 0; i < 70; i += 1) report(`eth${i}`, 'online', i);
    expect(world.linkEdges.size).toBe(64);
    report('eth3', 'offline', 100);
    expect(world.linkEdges.get('eth3')).toMatchObject({ status: 'offline', time_ms: 100 * 60_000 });
    expect(world.linkEdges.has('eth69')).toBe(false);
  });
});

it('draws marks that touch smaller, and counts those that one mark hides', () => {
  expect(
    crowdsOf([
      [100, 100],
      [17, 10],
      [10, 10],
      [12, 13],
      [100, 119],
      [121, 100],
    ]),
  ).toEqual([
    { isTight: true, covered: [] },
    { isTight: true, covered: [3] },
    { isTight: true, covered: [3] },
    { isTight: true, covered: [2, 1] },
    { isTight: true, covered: [] },
    { isTight: false, covered: [] },
  ]);
  expect(crowdsOf([])).toEqual([]);
});

it.each([
  ['neighbours as a line', [[0, 1] as const, [2.04, 3] as const], 'M0.0 1.0L2.0 3.0'],
  ['a value without neighbours as a dot', [[5, 6] as const], 'M5.0 6.0h0'],
  ['nothing of no value', [], ''],
])('draws %s', (_, points, path) => {
  expect(lineThrough(points)).toBe(path);
});
