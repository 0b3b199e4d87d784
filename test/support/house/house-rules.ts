/** The rules of src/README.md about files, as functions of a tree, so that a test can break each of them. */

/** Paths from the root of the repository, with `/`, and the text of each file. */
export type Tree = ReadonlyMap<string, string>;

/** "About 20": with the README and the texts of a room. */
const folder_files_max = 21;
const driver_root_files_max = 12;
/** Codes of the operating system are ids as they are. */
const text_id = /^([a-z][a-z0-9_]*|E[A-Z]+)$/u;
/** Names that stand for others in a page, or for what must not be. */
const placeholders: ReadonlySet<string> = new Set(['NAME.ts', 'utils.ts']);

const isSource = (path: string): boolean =>
  /^(src|drivers)\/.*\.(ts|js|mjs)$/u.test(path) && !path.endsWith('.d.ts');
const folderOf = (path: string): string => path.slice(0, path.lastIndexOf('/'));
const nameOf = (path: string): string => path.slice(path.lastIndexOf('/') + 1);

/** Files beside each other, by folder. */
function folders(tree: Tree): ReadonlyMap<string, readonly string[]> {
  return Map.groupBy(tree.keys(), folderOf);
}

export function fullFolders(tree: Tree): string[] {
  return [...folders(tree)]
    .filter(([folder, files]) => folder !== '' && files.length > folder_files_max)
    .map(([folder, files]) => `${folder}: ${files.length} files`);
}

/** A driver has `NAME.ts`, `options.ts` and `README.md` at its root, and folders once it has more than 12 files. */
export function untidyDrivers(tree: Tree): string[] {
  const roots = [...folders(tree)].filter(([folder]) => /^drivers\/[^/]+$/u.test(folder));
  return roots.flatMap(([folder, files]) => {
    const needed = [`${nameOf(folder)}.ts`, 'options.ts', 'README.md'];
    const missing = needed
      .filter((name) => !tree.has(`${folder}/${name}`))
      .map((name) => `${folder}/${name}`);
    return files.length > driver_root_files_max ? [...missing, `${folder}: ${files.length} files`] : missing;
  });
}

/** Folders of unit tests whose subject has no folder of the same name. */
export function strayTests(tree: Tree): string[] {
  const known = new Set(
    [...tree.keys()].filter((path) => !path.startsWith('test/unit/')).flatMap((path) => ancestors(path)),
  );
  return [...folders(tree).keys()]
    .filter((folder) => folder.startsWith('test/unit/'))
    .filter((folder) => {
      const subject = folder.slice('test/unit/'.length);
      return ![`src/${subject}`, subject, `test/${subject}`].some((place) => known.has(place));
    });
}

function ancestors(path: string): string[] {
  const folder = folderOf(path);
  return folder === '' ? [] : [folder, ...ancestors(folder)];
}

export function barrels(tree: Tree): string[] {
  return sources(tree, (text) => /^export (\*|\{[^}]*\}) from /mu.test(text));
}

export function collections(tree: Tree): string[] {
  return [...tree.keys()].filter(
    (path) => isSource(path) && /^(utils?|helpers?|misc|common)\./u.test(nameOf(path)),
  );
}

/** Bodies kept as a list of the pieces in which they came: whoever sends them chooses how many those are. */
export function keptPieces(tree: Tree): string[] {
  return sources(tree, (text) => text.includes('Buffer.concat(chunks)')).filter(
    (path) => !path.includes('/sim/'),
  );
}

/** Ids of sentences that are not in snake_case. */
export function oddTextIds(tree: Tree): string[] {
  return [...tree].flatMap(([path, text]) => {
    if (!isSource(path) || nameOf(path) !== 'texts.ts') return [];
    const ids = [...text.matchAll(/^ {2}['"]?([^\s'"`:(]+)['"]?(?:: |\()/gmu)].map(([, id = '']) => id);
    return ids.filter((id) => !text_id.test(id)).map((id) => `${path}: ${id}`);
  });
}

/**
 * Places that a page names and that do not exist: files (`hub/host.ts`, relative to src, or `drivers/...`) and folders (`hub/`), and
 * functions in the form `name` (`file.ts`) or `Class.method` (`file.ts`), which the file has to define.
 */
export function wrongPlaces(page: string, tree: Tree): string[] {
  const pages = page.replaceAll(/\s+/gu, ' ');
  const known = new Set(
    [...tree.keys()].flatMap((path) => [path, ...ancestors(path).map((folder) => `${folder}/`)]),
  );
  const find = (place: string): string | undefined =>
    [`src/${place}`, place].find((path) => known.has(path)) ??
    // A row of the table names what stands in its room.
    (/^[^/]+\/?$/u.test(place) ? [...known].find((path) => path.endsWith(`/${place}`)) : undefined);
  const places = [...pages.matchAll(/`((?:[\w.-]+\/)*[\w.-]+(?:\.(?:ts|mjs|js)|\/))`/gu)].map(
    ([, place = '']) => place,
  );
  const functions = [...pages.matchAll(/`([\w.]+)` \(`([\w./-]+\.ts)`\)/gu)];
  return [
    ...places.filter((place) => !placeholders.has(place) && find(place) === undefined),
    ...functions
      .filter(([, name = '', file = '']) => !defines(tree.get(find(file) ?? '') ?? '', name))
      .map(([, name, file]) => `${name} in ${file}`),
  ];
}

/** `Class.method`, or a function or class of the module. */
function defines(text: string, name: string): boolean {
  const [outer = '', method] = name.split('.');
  const isOuter = new RegExp(`^export (async )?(function|class|const) ${outer}\\b`, 'mu').test(text);
  return isOuter && (method === undefined || new RegExp(`^ {2}(async )?${method}\\(`, 'mu').test(text));
}

function sources(tree: Tree, isWrong: (text: string) => boolean): string[] {
  return [...tree].filter(([path, text]) => isSource(path) && isWrong(text)).map(([path]) => path);
}
