/** The linters of the API find what is wrong: without that, a check that says nothing would prove nothing. */
import { expect, it } from 'vitest';
import type { JsonObject } from '../../../../src/contract/json.ts';
import { apiDocument } from '../../../../src/service/http/document.ts';
import { lintWithRedocly, lintWithSpectral } from '../../../lint-api.ts';
import { apiApp } from '../../../support/service/api-app.ts';

const sound = JSON.stringify(await apiDocument(apiApp(), '1.0.0'));
/** The document of the service with each first text replaced by the second. */
const broken = (...changes: readonly (readonly [string, string])[]): JsonObject => {
  for (const [from] of changes) expect(sound).toContain(from);
  return JSON.parse(changes.reduce((text, [from, to]) => text.replace(from, to), sound)) as JsonObject;
};

it('finds nothing in the document of the service', async () => {
  const document = JSON.parse(sound) as JsonObject;
  expect(await lintWithRedocly(document)).toEqual([]);
  expect(await lintWithSpectral(document, 'oas')).toEqual([]);
});

it('finds an operation without a summary', async () => {
  expect(await lintWithRedocly(broken(['"summary":"List kits",', '']))).toHaveLength(1);
});

it('finds an operation without an id, and an example that its schema refuses', async () => {
  const document = broken(['"operationId":"listKits",', ''], ['"battery":82', '"battery":"full"']);
  const findings = (await lintWithSpectral(document, 'oas')).join('\n');
  expect(findings).toContain('operation-operationId');
  expect(findings).toMatch(/^spectral \S*example/mu);
});
