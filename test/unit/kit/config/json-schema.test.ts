/** The schema for editors accepts what the connector accepts, and is the one that is checked in. */
import { readFileSync } from 'node:fs';
import { Ajv } from 'ajv';
import formats from 'ajv-formats';
import { expect, test } from 'vitest';
import { configJsonSchema } from '../../../../src/kit/config/reference.ts';
import { documents, documentText } from '../../../../src/tools/docs.ts';
import { kit_id, probe } from './lab.ts';

const ajv = new Ajv({ strict: false });
formats.default(ajv);
const accepts = ajv.compile(JSON.parse(JSON.stringify(configJsonSchema([probe]))) as object);

test.each([
  ['the least', {}],
  ['a broker by MQTT 5', { broker: { url: 'mqtts://b', protocol: 5 } }],
  ['a driver with options', { drivers: [{ driver: 'probe', options: { port: 80 } }] }],
])('%s is accepted', (_, keys) => {
  expect(accepts({ kit_id, ...keys })).toBe(true);
});

test.each([
  ['a misspelt key', { kit_nam: 'x' }],
  ['a misspelt driver', { drivers: [{ driver: 'prob' }] }],
  ['an option of no driver', { drivers: [{ driver: 'probe', options: { prt: 80 } }] }],
  ['a word for a number', { outbox: { rows_max: 'many' } }],
])('%s is marked', (_, keys) => {
  expect(accepts({ kit_id, ...keys })).toBe(false);
});

test('the schema that is checked in is the one that the sources make', () => {
  const document = documents.find(({ file }) => file.endsWith('config.schema.json'));
  expect(document && readFileSync(document.file, 'utf8')).toBe(document && documentText(document));
  expect(document).toBeDefined();
});
