/** Bundles the sources: names and lines are kept, so that a stack trace in the journal can be read. */
import { cp, readFile } from 'node:fs/promises';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { type Plugin, rolldown } from 'rolldown';
import { z } from 'zod';

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

const file_url = /new URL\(\s*'([^']+)',\s*import\.meta\.url\s*\)/g;

/** For the editor, the compiler and developers; nothing reads them at run time. */
const type_files = /\.d\.ts$|\/tsconfig\.json$|\/README\.md$/;
/** For a trial from the sources: a gateway has real devices. */
const demo_module = /\/cli\/demo\/command\.ts$/;

/**
 * Writes the daemon of `root` to `out`, all files side by side, and answers the directories of the libraries in it,
 * relative to `root`. Rejects when a source names a file beside itself that is not there. `more`: further entries, by name.
 */
export async function bundle(
  root: string,
  out: string,
  more: Readonly<Record<string, string>> = {},
): Promise<readonly string[]> {
  const assets = new Set<string>();
  const build = await rolldown({
    cwd: root,
    input: { 'kit-connector': 'src/kit-connector.mjs', ...more },
    platform: 'node',
    external: external_packages,
    plugins: [besideItself(root, assets), withoutDemo()],
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
    // The terms of the libraries are in the copyright file of the package.
    comments: false,
    entryFileNames: '[name].mjs',
    chunkFileNames: ({ name }) => (name === definitions.name ? definitions_file : '[name]-[hash].mjs'),
    codeSplitting: { groups: [definitions] },
  });
  await build.close();
  for (const asset of assets) {
    if (asset === resolve(root, page_dir)) {
      await bundlePage(root, join(out, basename(asset)));
      continue;
    }
    await cp(asset, join(out, basename(asset)), {
      recursive: true,
      // The help is what people read.
      filter: (path) => basename(asset) === 'help' || !type_files.test(path),
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

const packageFile = z.looseObject({ name: z.string(), description: z.string(), license: z.string() });

/** The `package.json` beside the bundle, from which the daemon reads its version. */
export async function versionedPackageFile(root: string, version: string): Promise<string> {
  const text = await readFile(join(root, 'package.json'), 'utf8');
  const { name, description, license } = packageFile.parse(JSON.parse(text));
  return `${JSON.stringify({ name, description, license, type: 'module', version }, null, 2)}\n`;
}

/** Where the sources of the page stand below the root. */
export const page_dir = 'src/console';
/** Data of the base map: a separate file, as in the sources. */
const world = { name: 'world', test: /\/map\/world\.ts$/ };
/** What most screens import is in the first view already: one file of it, not one for each module or two. */
const shared = { name: 'shared', minShareCount: 7 };
/** Libraries that the service adds under these names. */
const libraries: ReadonlySet<string> = new Set(['preact', 'htm', 'maplibre-gl', 'pmtiles']);
/** Served as they are. */
const plain_files = ['index.html', 'styles'];

/** Writes the page of `root` to the new directory `out`, in the form that the service reads from `src/console`. */
export async function bundlePage(root: string, out: string): Promise<void> {
  const build = await rolldown({
    cwd: root,
    input: { main: join(root, page_dir, 'main.ts') },
    platform: 'browser',
    plugins: [withoutLibraries()],
    onLog: (level, log, handle) => {
      if (level === 'warn') throw new Error(`the bundler warns about the page: ${log.message}`);
      handle(level, log);
    },
  });
  await build.write({
    dir: out,
    format: 'esm',
    minify: true,
    comments: false,
    entryFileNames: '[name].js',
    chunkFileNames: '[name].js',
    codeSplitting: { groups: [world, shared] },
  });
  await build.close();
  for (const name of plain_files) await cp(join(root, page_dir, name), join(out, name), { recursive: true });
}

/** All modules are written side by side, so that the libraries lie beside each. */
function withoutLibraries(): Plugin {
  return {
    name: 'without-libraries',
    resolveId: (name) => (libraries.has(name) ? { id: `./${name}.js`, external: true } : null),
  };
}
