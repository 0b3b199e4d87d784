/** Reads the page from where it is written: its own files, and the two libraries that its modules import. */
import { readdir, readFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { constants, gzip } from 'node:zlib';
import type { PageFiles } from './server/page.ts';

const types: Readonly<Record<string, string>> = {
  css: 'text/css; charset=utf-8',
  html: 'text/html; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
};
/** Served beside the page's own modules, under the names by which those import them. */
const libraries: Readonly<Record<string, string>> = { 'preact.js': 'preact', 'htm.js': 'htm' };
const first_file = 'index.html';
/** Below this a compressed answer is no smaller on the wire. */
const worth_compressing_bytes = 512;

/** Reads and compresses the page, about 100 kB, as `startService` takes it. Nothing is built: the browser gets the modules as they are. */
export async function loadPage(): Promise<PageFiles> {
  const texts = new Map(await readTexts());
  const index = texts.get(first_file) ?? '';
  texts.delete(first_file);
  const paths = [...texts].map(([name, text]) => [`/page/${name}`, text] as const);
  const files = [['/', withPreloads(index, [...texts.keys()])] as const, ...paths];
  return new Map(await Promise.all(files.map(async ([path, text]) => [path, await pack(path, text)] as const)));
}

/** Lets the browser ask for all modules at once, where it would find them one by one from import to import. */
function withPreloads(index: string, names: readonly string[]): string {
  const links = names
    .filter((name) => name.endsWith('.js'))
    .map((name) => `    <link rel="modulepreload" href="/page/${name}" />\n`);
  return index.replace('  </head>', `${links.join('')}  </head>`);
}

async function readTexts(): Promise<readonly (readonly [name: string, text: string])[]> {
  const dir = new URL('page/', import.meta.url);
  const names = (await readdir(dir)).filter((name) => types[extensionOf(name)] !== undefined);
  const own = names.map(async (name) => [name, await readFile(new URL(name, dir), 'utf8')] as const);
  const others = Object.entries(libraries).map(async ([name, library]) => {
    const text = await readFile(new URL(import.meta.resolve(library)), 'utf8');
    // Their source maps are not served.
    return [name, text.replace(/\n\/\/# sourceMappingURL=.*\s*$/u, '\n')] as const;
  });
  return Promise.all([...own, ...others]);
}

async function pack(path: string, text: string) {
  const body = Buffer.from(text);
  const type = types[path === '/' ? 'html' : extensionOf(path)] ?? 'application/octet-stream';
  if (body.length < worth_compressing_bytes) return { type, body };
  const packed = await promisify(gzip)(body, { level: constants.Z_BEST_COMPRESSION });
  return { type, body, gzip: Buffer.from(packed) };
}

function extensionOf(name: string): string {
  return name.slice(name.lastIndexOf('.') + 1);
}
