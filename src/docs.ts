/** Writes the documents that are generated from the sources: `npm run docs`. They are checked in; a test finds drift. */
import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { drivers } from '../drivers/index.ts';
import { configJsonSchema } from './config/json-schema.ts';
import { asyncApi } from './contract/asyncapi.ts';

export interface GeneratedDocument {
  readonly file: string;
  readonly build: () => object;
}

const builtIn = await Promise.all(drivers.map(async ({ load }) => load()));

export const documents: readonly GeneratedDocument[] = [
  { file: fileURLToPath(new URL('contract/asyncapi.json', import.meta.url)), build: asyncApi },
  {
    file: fileURLToPath(new URL('config.schema.json', import.meta.url)),
    build: () => configJsonSchema(builtIn),
  },
];

/** The text of the document as it is checked in. */
export function documentText({ build }: GeneratedDocument): string {
  return `${JSON.stringify(build(), undefined, 2)}\n`;
}

if (import.meta.main) {
  for (const document of documents) writeFileSync(document.file, documentText(document));
}
