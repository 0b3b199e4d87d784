/** What the service lets through to a kit as the payload of a command. */
import { expect, it } from 'vitest';
import { isReadable, payloadFaults } from '../../../../src/cloud/api/payload.ts';

const goto = {
  type: 'object',
  properties: {
    lat: { type: 'number', minimum: -90, maximum: 90 },
    speed: { type: 'integer', minimum: 1, maximum: 64 },
    mode: { type: 'string', enum: ['GUIDED', 'RTL'] },
  },
  required: ['lat'],
  additionalProperties: false,
};

it.each([
  [{ lat: 1 }, []],
  [{ lat: 1, speed: 64, mode: 'RTL' }, []],
  [{}, ['#/payload/lat']],
  [{ lat: 91 }, ['#/payload/lat']],
  [{ lat: 'north' }, ['#/payload/lat']],
  [{ lat: 1, speed: 1.5 }, ['#/payload/speed']],
  [{ lat: 1, mode: 'FLY' }, ['#/payload/mode']],
  [{ lat: 1, hight: 5 }, ['#/payload']],
])('names the place of each fault in %j', (payload, pointers) => {
  expect(payloadFaults(goto, payload).map(({ pointer }) => pointer)).toEqual(pointers);
});

it('takes no payload for a command without one', () => {
  expect(payloadFaults({}, {})).toEqual([]);
  expect(payloadFaults({}, { 'm/s~': 1 })).toMatchObject([{ pointer: '#/payload/m~1s~0' }]);
});

it('reads a schema with annotations and with an object of any content', () => {
  const schema = {
    type: 'object',
    properties: {
      speed: { type: 'number', minimum: 0, maximum: 1, 'x-kit-unit': 'm/s' },
      plan: { type: 'object', propertyNames: { type: 'string' }, additionalProperties: {} },
    },
    required: ['speed'],
    additionalProperties: false,
    'x-kit-move-ms': 1_000,
  };
  const pointersOf = (payload: object) => payloadFaults(schema, { ...payload }).map(({ pointer }) => pointer);
  expect(isReadable(schema)).toBe(true);
  expect(pointersOf({ speed: 1, plan: { items: [{ deep: null }] } })).toEqual([]);
  expect(pointersOf({ speed: 1.5 })).toEqual(['#/payload/speed']);
  expect(pointersOf({ speed: 1, plan: 3 })).toEqual(['#/payload/plan']);
  expect(pointersOf({})).toEqual(['#/payload/speed']);
});

it('reads lists of plain values with a maximum', () => {
  const names = { type: 'array', items: { type: 'string', maxLength: 16 }, minItems: 1, maxItems: 2 };
  const schema = { type: 'object', properties: { names }, additionalProperties: false };
  const pointersOf = (list: unknown[]) =>
    payloadFaults(schema, { names: list as string[] }).map(({ pointer }) => pointer);
  expect(isReadable(schema)).toBe(true);
  expect(pointersOf(['WPNAV_SPEED'])).toEqual([]);
  expect(pointersOf([])).toEqual(['#/payload/names']);
  expect(pointersOf(['a', 'b', 'c'])).toEqual(['#/payload/names']);
  expect(pointersOf(['a', 7])).toEqual(['#/payload/names/1']);
});

it.each([
  [{ type: 'object', properties: { names: { type: 'array', items: { type: 'string' } } } }],
  [{ type: 'object', properties: { name: { type: 'string', pattern: '^(a+)+$' } } }],
  [{ type: 'object', properties: {}, not: {} }],
  [{ $ref: 'http://example.com/schema' }],
  [{ type: 'object', properties: { deep: { type: 'object', properties: { more: {} } } } }],
  [{ type: 'object', properties: [] }],
])('leaves a schema that could be slow or is not understood to the kit: %j', (schema) => {
  expect(isReadable(schema)).toBe(false);
  expect(payloadFaults(schema, { name: `${'a'.repeat(40)}!` })).toEqual([]);
});
