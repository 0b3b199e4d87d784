/** Bundles the page for the package: a few minified modules instead of a hundred small ones, which compress badly. */
import { cp } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { type Plugin, rolldown } from 'rolldown';

/** Where the sources of the page stand below the root. */
export const page_dir = 'src/page';
/** Data of the base map: a separate file, as in the sources. */
const world = { name: 'world', test: /\/map\/world\.js$/ };
/** Libraries that the service adds under these names. */
const libraries: ReadonlySet<string> = new Set(['preact.js', 'htm.js', 'maplibre-gl.js', 'pmtiles.js']);
/** Served as they are. */
const plain_files = ['index.html', 'styles'];

/** Writes the page of `root` to the new directory `out`, in the form that the service reads from `src/page`. */
export async function bundlePage(root: string, out: string): Promise<void> {
  const build = await rolldown({
    cwd: root,
    input: { main: join(root, page_dir, 'main.js') },
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
    codeSplitting: { groups: [world] },
  });
  await build.close();
  for (const name of plain_files) await cp(join(root, page_dir, name), join(out, name), { recursive: true });
}

/** All modules are written side by side, so that the libraries lie beside each. */
function withoutLibraries(): Plugin {
  return {
    name: 'without-libraries',
    resolveId: (source) => {
      const name = basename(source);
      return libraries.has(name) ? { id: `./${name}`, external: true } : null;
    },
  };
}
