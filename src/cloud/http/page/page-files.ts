/** Loads the page for serving: its files and two libraries, compressed, under a path that changes with their content. */
import { createHash } from 'node:crypto';
import { readdir, readFile, stat } from 'node:fs/promises';
import { stripTypeScriptTypes } from 'node:module';
import { posix } from 'node:path';
import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';
import type { OpenAPIHono } from '@hono/zod-openapi';
import type { Context } from 'hono';
import type { Env } from '../context.ts';

const types: Readonly<Record<string, string>> = {
  css: 'text/css; charset=utf-8',
  html: 'text/html; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
};
/** Served beside the page's own modules, under the names by which those import them. */
const libraries: Readonly<Record<string, string>> = {
  'preact.js': import.meta.resolve('preact'),
  'htm.js': import.meta.resolve('htm'),
};
/**
 * Libraries and data of the map, 3.3 MB: read and compressed when a map is first opened. What the library of tiles gives to
 * scripts is made an export.
 */
const mapLibraries: Readonly<Record<string, { readonly url: string; readonly exports?: string }>> = {
  'maplibre-gl.js': { url: import.meta.resolve('maplibre-gl') },
  'maplibre-gl-worker.js': { url: import.meta.resolve('maplibre-gl/dist/maplibre-gl-worker.mjs') },
  'pmtiles.js': {
    url: new URL('../pmtiles.js', import.meta.resolve('pmtiles')).href,
    exports: 'export const { FileSource, PMTiles, Protocol, TileType } = pmtiles;',
  },
  'world.bin': { url: new URL('../../../console/views/map/world.bin', import.meta.url).href },
  'cities.bin': { url: new URL('../../../kit/geo/cities.bin', import.meta.url).href },
};
/** The sources, or the bundle of them in the package. */
const page_dir = new URL('../../../console/', import.meta.url);
const first_file = 'index.html';
const first_module = 'main.js';
/** All style sheets that the first file links but the last, in one: small files compress worse than their sum. */
const first_styles = 'styles.css';
/** Brotli's best costs seconds on a gateway and saves a few percent. */
const brotli = {
  [constants.BROTLI_PARAM_QUALITY]: 9,
  /** The whole of each file, where the default takes 4 MB for any. */
  [constants.BROTLI_PARAM_LGWIN]: 16,
};
const hash_chars = 16;

const encodings = ['br', 'gzip', 'identity'] as const;
export type Encoding = (typeof encodings)[number];

export interface PageFile {
  readonly type: string;
  /** By encoding. */
  readonly bodies: Readonly<Record<Encoding, Buffer<ArrayBuffer>>>;
  readonly hash: string;
}

export interface Page {
  /** Names the content of all files: what stands below `/page/{version}/` never changes. */
  readonly version: string;
  readonly index: PageFile;
  readonly files: ReadonlyMap<string, PageFile>;
  /** The file of a library that is loaded at its first request; undefined: there is none of this name. */
  readonly library: (name: string) => Promise<PageFile> | undefined;
}

/** Returns the page, loaded at the first request. Rejects when a file is missing. */
export type PageSource = () => Promise<Page>;

/** Loads the page at its first request: many kits serve programs only and never need it. */
export function pageOnDemand(dir = page_dir): PageSource {
  let page: Promise<Page> | undefined;
  return async () => {
    page ??= loadPage(dir);
    return page;
  };
}

/** Reads and compresses the page; about 100 kB. */
export async function loadPage(dir = page_dir): Promise<Page> {
  const texts = new Map(Object.entries(await readTexts(dir)));
  const index = joinStyles(texts.get(first_file) ?? '', texts);
  texts.delete(first_file);
  // The address of a library names its content too: it changes with its version.
  const version = hashOf(
    [...texts, ...Object.values(mapLibraries).map(({ url }) => url), await sizesOfLibraries()]
      .flat()
      .join('\0'),
  );
  const files = new Map<string, PageFile>();
  // Sequential: compression of each file needs its own memory.
  for (const [name, text] of texts) files.set(name, await compress(name, text));
  const linked = withPreloads(index, firstModules(texts)).replaceAll('"./', `"/page/${version}/`);
  return { version, index: await compress(first_file, linked), files, library: librariesOnDemand() };
}

async function sizesOfLibraries(): Promise<string> {
  const sizes = Object.values(mapLibraries).map(async ({ url }) => (await stat(new URL(url))).size);
  return (await Promise.all(sizes)).join(' ');
}

function librariesOnDemand(): Page['library'] {
  const loaded = new Map<string, Promise<PageFile>>();
  return (name) => {
    const library = Object.hasOwn(mapLibraries, name) ? mapLibraries[name] : undefined;
    if (!library) return undefined;
    const known = loaded.get(name) ?? loadLibrary(name, library);
    loaded.set(name, known);
    return known;
  };
}

async function loadLibrary(
  name: string,
  { url, exports = '' }: { readonly url: string; readonly exports?: string },
): Promise<PageFile> {
  const bytes = await readFile(new URL(url));
  return compress(name, name.endsWith('.bin') ? bytes : `${withoutSourceMap(bytes.toString())}${exports}`);
}

/** Puts the style sheets that the first file links into one, in their order, and links that. The last one stays separate: others are inserted before it. */
function joinStyles(index: string, texts: Map<string, string>): string {
  const link = /^ *<link rel="stylesheet" href="\.\/([^"]+)" \/>\n/gmu;
  const names = [...index.matchAll(link)].map(([, name = '']) => name).slice(0, -1);
  texts.set(first_styles, names.map((name) => texts.get(name) ?? '').join(''));
  for (const name of names) texts.delete(name);
  return index.replace(link, (line, name: string) => {
    if (name === names[0]) return line.replace(name, first_styles);
    return names.includes(name) ? '' : line;
  });
}

/** Lets the browser request the modules of the first screen at once, where it would find them one by one from import to import. */
function withPreloads(index: string, names: readonly string[]): string {
  const links = names.map((name) => `    <link rel="modulepreload" href="./${name}" />\n`);
  return index.replace('  </head>', `${links.join('')}  </head>`);
}

/** As it is written in the sources, and as the bundler of the package minifies it. */
const static_import = /\bimport\s*(?:[\w$\s{},*]+?\bfrom\s*)?["'](\.[^"']+)["']/gu;

/** The modules that the first one imports, directly or not. What is imported by `import()` is fetched when it is needed. */
function firstModules(texts: ReadonlyMap<string, string>): readonly string[] {
  const found = new Set<string>();
  const add = (name: string): void => {
    const text = texts.get(name);
    if (text === undefined || found.has(name)) return;
    found.add(name);
    for (const [, specifier = ''] of text.matchAll(static_import)) {
      add(posix.join(posix.dirname(name), specifier));
    }
  };
  add(first_module);
  return [...found];
}

async function readTexts(dir: URL): Promise<Record<string, string>> {
  const names = (await readdir(dir, { recursive: true }))
    .filter((name) => types[extensionOf(name)] !== undefined || /(?<!\.d)\.ts$/u.test(name))
    .sort();
  const own = names.map(async (name) => {
    const text = await readFile(new URL(name, dir), 'utf8');
    if (name.endsWith('.html')) return [name, text] as const;
    if (!name.endsWith('.ts')) return [name, withoutComments(text)] as const;
    return [name.replace(/\.ts$/u, '.js'), withoutComments(asJavaScript(name, text))] as const;
  });
  const others = Object.entries(libraries).map(async ([name, url]) => {
    return [name, withoutSourceMap(await readFile(new URL(url), 'utf8'))] as const;
  });
  return Object.fromEntries(await Promise.all([...own, ...others]));
}

/**
 * A module of the sources without its types, which imports what is served; the package has JavaScript already. The numbers of the
 * lines stay.
 */
function asJavaScript(name: string, text: string): string {
  const root = '../'.repeat(name.split('/').length - 1) || './';
  return stripTypeScriptTypes(text).replace(
    /(?<=\b(?:from |import\())'([^'\n]+)'/gu,
    (_, module: string) => `'${module.startsWith('.') ? module.replace(/\.ts$/u, '') : root + module}.js'`,
  );
}

/** Source maps of libraries are not served. */
function withoutSourceMap(text: string): string {
  return text.replace(/\n\/\/# sourceMappingURL=.*\s*$/u, '\n');
}

/**
 * Leaves out comments that begin a line, and the indentation: a third of the bytes. The numbers of the lines stay for the browser's
 * tools. htm trims the white space of templates itself; other texts of the page have no lines.
 */
function withoutComments(text: string): string {
  return text
    .replace(/^[ \t]*(?:\/\*(?:(?!\*\/)[^])*\*\/|\/\/.*)$/gmu, (comment) => comment.replace(/[^\n]+/gu, ''))
    .replace(/^[ \t]+/gmu, '');
}

async function compress(name: string, text: string | Buffer): Promise<PageFile> {
  return fileOf(types[extensionOf(name)] ?? 'application/octet-stream', text);
}

/** Compresses a content once, for every client that will ask for it. */
export async function fileOf(type: string, text: string | Buffer): Promise<PageFile> {
  const identity = Buffer.from(text);
  const [br, gz] = await Promise.all([
    promisify(brotliCompress)(identity, { params: brotli }),
    promisify(gzip)(identity, { level: constants.Z_BEST_COMPRESSION }),
  ]);
  const bodies = { identity, br: Buffer.from(br), gzip: Buffer.from(gz) };
  return { type, bodies, hash: hashOf(text) };
}

/** The smallest form that the client takes, by its `Accept-Encoding`. Browsers take Brotli on https only. */
export function chooseEncoding(accepted: string | undefined): Encoding {
  const taken = new Set(
    (accepted ?? '')
      .split(',')
      .map((part) => part.trim().toLowerCase())
      .filter((part) => !/;\s*q=0(?:\.0*)?$/u.test(part))
      .map((part) => part.split(';')[0]?.trim()),
  );
  return encodings.find((encoding) => taken.has(encoding)) ?? 'identity';
}

function hashOf(text: string | Buffer): string {
  return createHash('sha256').update(text).digest('base64url').slice(0, hash_chars);
}

function extensionOf(name: string): string {
  return name.slice(name.lastIndexOf('.') + 1);
}

/** Serves the page: its first file at `/`, and the others under an address that changes with their content. */
export function servePage(app: OpenAPIHono<Env>, page: PageSource): void {
  app.get('/', async (c) => answerFile(c, (await page()).index, 'no-cache'));
  app.get('/page/:version/:name{.+}', async (c) => {
    const { version, files, library } = await page();
    const name = c.req.param('name');
    const file = c.req.param('version') === version ? (files.get(name) ?? (await library(name))) : undefined;
    return file ? answerFile(c, file, 'public, max-age=31536000, immutable') : c.notFound();
  });
}

/** Answers with the smallest form of the file that the client takes. */
export function answerFile(c: Context<Env>, { type, bodies, hash }: PageFile, caching: string): Response {
  const tag = `"${hash}"`;
  c.header('ETag', tag);
  c.header('Cache-Control', caching);
  c.header('Vary', 'Accept-Encoding');
  if (c.req.header('if-none-match') === tag) return c.body(null, 304);
  const encoding = chooseEncoding(c.req.header('accept-encoding'));
  c.header('Content-Type', type);
  if (encoding !== 'identity') c.header('Content-Encoding', encoding);
  return c.body(bodies[encoding]);
}
