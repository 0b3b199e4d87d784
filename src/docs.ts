/** Writes the documents that are generated from the sources: `npm run docs`. They are checked in; a test finds drift. */
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { drivers } from '../drivers/index.ts';
import { configJsonSchema, fileJsonSchema, optionsJsonSchema } from './config/json-schema.ts';
import { configReference } from './config/reference.ts';
import { asyncApi } from './contract/asyncapi/document.ts';
import { iconsModule } from './page-icons.ts';
import { worldModule } from './page-world.ts';
import { roomsTable } from './rooms.ts';

export interface GeneratedDocument {
  readonly file: string;
  /** An object is written as JSON, a text as it is. */
  readonly build: () => object | string;
}

const builtIn = await Promise.all(drivers.map(async ({ load }) => load()));

const readme = fileURLToPath(new URL('README.md', import.meta.url));

export const documents: readonly GeneratedDocument[] = [
  { file: fileURLToPath(new URL('contract/asyncapi.json', import.meta.url)), build: asyncApi },
  {
    file: fileURLToPath(new URL('config/config.schema.json', import.meta.url)),
    build: () => configJsonSchema(builtIn),
  },
  {
    file: fileURLToPath(new URL('config/README.md', import.meta.url)),
    build: () =>
      configReference(
        fileJsonSchema(),
        new Map(builtIn.map((driver) => [driver.name, optionsJsonSchema(driver)])),
      ),
  },
  { file: fileURLToPath(new URL('page/views/parts/icons.js', import.meta.url)), build: iconsModule },
  { file: fileURLToPath(new URL('page/views/map/world.js', import.meta.url)), build: worldModule },
  { file: readme, build: () => withRooms(readFileSync(readme, 'utf8')) },
];

/** The table of rooms stands between two marks. */
function withRooms(text: string): string {
  return text.replace(/(?<=<!-- rooms -->\n).*?(?=\n<!-- end of rooms -->)/s, roomsTable());
}

/** The text of the document as it is checked in. */
export function documentText({ build }: GeneratedDocument): string {
  const content = build();
  return typeof content === 'string' ? content : `${JSON.stringify(content, undefined, 2)}\n`;
}

if (import.meta.main) {
  for (const document of documents) writeFileSync(document.file, documentText(document));
}
