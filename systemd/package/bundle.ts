/** Bundles the sources: names and lines are kept, so that a stack trace in the journal can be read. */
import { cp, readFile } from 'node:fs/promises';
import { isBuiltin } from 'node:module';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { type Plugin, rolldown } from 'rolldown';
import { z } from 'zod';
import { bundlePage, page_dir } from './page.ts';

/** Not bundled: native modules. */
const external_packages = ['better-sqlite3', 'koffi', '@serialport/bindings-cpp'];
/** Served to browsers from their own files, whatever the daemon itself is made of. */
const served_packages = ['preact', 'htm'];
/** Served too, as the bundles that they come as: what they need is in them. */
export const served_bundles: readonly string[] = ['maplibre-gl', 'pmtiles'];
/** Made from libraries under the LGPL: a separate file under a stable name, so that anybody can replace it. */
const definitions = { name: 'mavlink-definitions', test: /\/mavlink\/wire\/definitions-table\.ts$/ };
export const definitions_file = `${definitions.name}.mjs`;
export const definitions_sources: readonly string[] = ['node-mavlink', 'mavlink-mappings'];

/** Libraries that need their own directory in the package, with their dependencies. */
export const separate_packages: readonly string[] = [...external_packages, ...served_packages];

/** Node.js has it: readable-stream is made from this module. */
const same_as_built_in: Readonly<Record<string, string>> = { 'readable-stream': 'node:stream' };
/** Loaded by libraries at their start for functions that nothing here calls: they would only cost memory. */
const never_called: readonly RegExp[] = [
  // MQTT.js connects over WebSockets and through proxies; its client gets sockets of our own.
  /\/mqtt\/build\/lib\/connect\/index\.js$/,
  // Its timers of browsers, the threads of pino, and what writes XML beside xml2js.
  /\/node_modules\/(?:worker-timers|thread-stream|xmlbuilder)\//,
];

const file_url = /new URL\(\s*'([^']+)',\s*import\.meta\.url\s*\)/g;

/** For the editor, the compiler and developers; nothing reads them at run time. */
const type_files = /\.d\.ts$|\/tsconfig\.json$|\/README\.md$/;
/** For a trial from the sources: a gateway has real devices. */
const demo_module = /\/cli\/demo\/command\.ts$/;

/**
 * Writes the daemon of `root` to `out`, all files side by side, and answers the directories of the libraries in it,
 * relative to `root`. Rejects when a source names a file beside itself that is not there.
 */
export async function bundle(root: string, out: string): Promise<readonly string[]> {
  const assets = new Set<string>();
  const build = await rolldown({
    cwd: root,
    input: { 'kit-connector': 'src/kit-connector.mjs' },
    platform: 'node',
    external: external_packages,
    plugins: [
      besideItself(root, assets),
      withoutDemo(),
      withoutUnused(),
      withoutDebug(),
      builtInWithoutFacade(),
      latinOnly(),
    ],
    onLog: (level, log, handle) => {
      // A library that uses eval does so in a branch for browsers.
      if (level === 'warn' && log.code !== 'EVAL') throw new Error(`the bundler warns: ${log.message}`);
      handle(level, log);
    },
  });
  const { output } = await build.write({
    dir: out,
    format: 'esm',
    minify: false,
    keepNames: true,
    // V8 keeps the sources in memory; the terms of the libraries are in the copyright file of the package.
    comments: false,
    entryFileNames: '[name].mjs',
    chunkFileNames: ({ name }) => (name === definitions.name ? definitions_file : '[name]-[hash].mjs'),
    codeSplitting: { groups: [definitions, { name: 'built-in', test: new RegExp(`^${built_in_prefix}`) }] },
  });
  await build.close();
  for (const asset of assets) {
    if (asset === resolve(root, page_dir)) {
      await bundlePage(root, join(out, basename(asset)));
      continue;
    }
    await cp(asset, join(out, basename(asset)), {
      recursive: true,
      filter: (path) => !type_files.test(path),
    });
  }
  const modules = output.flatMap((file) => (file.type === 'chunk' ? file.moduleIds : []));
  return [...new Set(modules.flatMap((id) => packageDirectory(relative(root, id))))].toSorted();
}

/** `node_modules/a/node_modules/@b/c/lib/d.js` belongs to `node_modules/a/node_modules/@b/c`. */
function packageDirectory(path: string): readonly string[] {
  const found = /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(path);
  return found ? [found[0]] : [];
}

/**
 * Scripts of worker threads and data files are named relative to the source that uses them. In the bundle all lie in
 * one directory: a script becomes a separate entry there, any other file or directory is copied.
 */
function besideItself(root: string, assets: Set<string>): Plugin {
  return {
    name: 'files-beside-the-source',
    transform(code, id) {
      if (!id.startsWith(root) || id.includes('node_modules')) return null;
      // The wrapper in /usr/bin names the runtime; a first line that names another would only mislead.
      return code.replace(/^#!.*/, '').replaceAll(file_url, (_, path: string) => {
        const target = resolve(dirname(id), path);
        if (!/\.m?[jt]s$/.test(target)) {
          assets.add(target);
          return `new URL('./${basename(target)}${path.endsWith('/') ? '/' : ''}', import.meta.url)`;
        }
        const fileName = `${relative(root, target)
          .replace(/^src\//, '')
          .replaceAll('/', '-')
          .replace(/\.m?[jt]s$/, '')}.mjs`;
        this.emitFile({ type: 'chunk', id: target, fileName });
        return `new URL('./${fileName}', import.meta.url)`;
      });
    },
  };
}

/** The subcommand is not added, so that nothing names the demo and the simulators any more. */
function withoutDemo(): Plugin {
  return {
    name: 'without-demo',
    load: (id) => (demo_module.test(id) ? 'export function addDemo() {}\n' : null),
  };
}

/** What is read of a module that is never called is undefined, so that a call of it throws. */
function withoutUnused(): Plugin {
  return {
    name: 'without-unused',
    async resolveId(source, importer) {
      const built_in = same_as_built_in[source];
      if (built_in === undefined) return null;
      return this.resolve(built_in, importer, { kind: 'import-statement' });
    },
    load: (id) => (never_called.some((each) => each.test(id)) ? 'module.exports = {};\n' : null),
  };
}

/** What src/mqtt/no-debug.ts does in a run from the sources. */
function withoutDebug(): Plugin {
  return {
    name: 'without-debug',
    load(id) {
      if (id.endsWith('/src/mqtt/no-debug.ts')) return 'export {};\n';
      const isDebug = id.endsWith('/node_modules/debug/src/index.js');
      return isDebug ? 'const silent = () => undefined;\nmodule.exports = () => silent;\n' : null;
    },
  };
}

const built_in_prefix = 'built-in:';

/**
 * An `import` of a built-in module reads all its exports, and with `node:http` and `node:crypto` that loads fetch, streams
 * of the web and WebCrypto, which nothing here uses: 8 MB for each thread. As CommonJS only what is used is read.
 */
function builtInWithoutFacade(): Plugin {
  return {
    name: 'built-in-without-facade',
    resolveId(source, _, { kind }) {
      if (kind !== 'import-statement' || !isBuiltin(source) || source.endsWith('module')) return null;
      return { id: `${built_in_prefix}${source.replace(/^node:/, '')}`, moduleSideEffects: false };
    },
    load(id) {
      if (!id.startsWith(built_in_prefix)) return null;
      const name = id.slice(built_in_prefix.length);
      return `module.exports = process.getBuiltinModule('node:${name}');`;
    },
  };
}

const other_than_latin = /[\u0100-\uffff]/g;
/** Where an escape would mean something else: behind a backslash, or in a template that is taken raw. */
const not_to_escape = /\\[\u0100-\uffff]|String\.raw`[^`]*[\u0100-\uffff]/;

/** V8 keeps a file in two bytes for each character if one of them is not Latin; as escapes these cost nothing. */
function latinOnly(): Plugin {
  return {
    name: 'latin-only',
    renderChunk(code, { fileName }) {
      const [found] = not_to_escape.exec(code) ?? [];
      if (found !== undefined) throw new Error(`${fileName}: ${found} cannot be written with an escape`);
      const escape = (unit: string): string => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
      return code.replaceAll(other_than_latin, escape);
    },
  };
}

const packageFile = z.looseObject({ name: z.string(), description: z.string(), license: z.string() });

/** The `package.json` beside the bundle, from which the daemon reads its version. */
export async function versionedPackageFile(root: string, version: string): Promise<string> {
  const text = await readFile(join(root, 'package.json'), 'utf8');
  const { name, description, license } = packageFile.parse(JSON.parse(text));
  return `${JSON.stringify({ name, description, license, type: 'module', version }, null, 2)}\n`;
}
