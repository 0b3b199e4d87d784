/** Lints the OpenAPI and AsyncAPI documents of the service with Redocly: `npm run check`. Offline; any finding fails. */
import { createConfig, lintFromString } from '@redocly/openapi-core';
import type { JsonObject } from '../src/contract/json.ts';
import { socketDocument } from '../src/cloud/api/socket-document.ts';
import { apiDocument } from '../src/cloud/http/document.ts';
import { apiApp } from './support/service/api-app.ts';

/** Lints with the recommended rules of Redocly. Returns a line for each finding. */
async function lintWithRedocly(document: JsonObject): Promise<readonly string[]> {
  const config = await createConfig({
    extends: ['recommended'],
    rules: { 'operation-4xx-response': 'error', 'no-unused-components': 'error' },
  });
  const problems = await lintFromString({ source: JSON.stringify(document), config });
  return problems.map(
    ({ ruleId, message, location: [first] }) => `redocly ${ruleId} ${first?.pointer ?? ''}: ${message}`,
  );
}

const document = await apiDocument(apiApp(), '0.0.0');
const findings = [...(await lintWithRedocly(document)), ...(await lintWithRedocly(socketDocument('0.0.0')))];
for (const finding of findings) process.stderr.write(`${finding}\n`);
process.stdout.write(`Redocly: ${findings.length} findings in the OpenAPI and AsyncAPI documents.\n`);
process.exitCode = findings.length > 0 ? 1 : 0;
