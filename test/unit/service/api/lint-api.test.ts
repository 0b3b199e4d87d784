/** The linters of the API find what is wrong: without that, a check that says nothing would prove nothing. */
import { expect, it } from 'vitest';
import type { JsonObject } from '../../../../src/contract/json.ts';
import { apiDocument } from '../../../../src/service/http/document.ts';
import { lintWithRedocly, lintWithSpectral } from '../../../lint-api.ts';
import { apiApp } from '../../../support/service/api-app.ts';

const sound = JSON.stringify(await apiDocument(apiApp(), '1.0.0'));
const broken = (from: string, to: string): JsonObject => {
  expect(sound).toContain(from);
  return JSON.parse(sound.replace(from, to)) as JsonObject;
};

it('finds nothing in the document of the service', async () => {
  const document = JSON.parse(sound) as JsonObject;
  expect(await lintWithRedocly(document)).toEqual([]);
  expect(await lintWithSpectral(document, 'oas')).toEqual([]);
});

it('finds an operation without a summary and without an id', async () => {
  expect(await lintWithRedocly(broken('"summary":"List kits",', ''))).toHaveLength(1);
  const findings = await lintWithSpectral(broken('"operationId":"listKits",', ''), 'oas');
  expect(findings.join('\n')).toContain('operation-operationId');
});

it('finds an example that its schema refuses', async () => {
  const findings = await lintWithSpectral(broken('"battery":82', '"battery":"full"'), 'oas');
  expect(findings.join('\n')).toContain('example');
});
