/**
 * Finds folders of a room that import each other in a circle: part of `npm run check`. In each folder the nodes are its files and
 * its sub-folders, a sub-folder with all that is below it; types count as values do.
 */
import { globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { rooms } from './rooms.ts';

/** By node, what it imports. */
type Graph = Map<string, Set<string>>;

/** The end of an import or an export from a relative path, and `await import()`; the formatter keeps them in this form. */
const imported = /^(?:import|export|\}).*?'(\.[^']+)';$|\bimport\('(\.[^']+)'\)/gmu;

/** Returns each circle as a line such as `src/mqtt: a.ts > b > a.ts`. `root`: the repository. */
function circlesIn(root: string, room: string): readonly string[] {
  const graphs = new Map<string, Graph>();
  for (const file of globSync(`${room}/**/*.ts`, { cwd: root }).toSorted()) {
    for (const [, from, late] of readFileSync(join(root, file), 'utf8').matchAll(imported)) {
      const target = join(dirname(file), from ?? late ?? '');
      if (target.startsWith(`${room}/`)) addImport(graphs, file.split('/'), target.split('/'));
    }
  }
  return [...graphs].flatMap(([folder, graph]) => {
    const circle = circleOf(graph);
    return circle ? [`${folder}: ${circle.join(' > ')}`] : [];
  });
}

/** Adds it to the graph of the folder where the two paths part. */
function addImport(graphs: Map<string, Graph>, from: readonly string[], to: readonly string[]): void {
  const at = from.findIndex((part, index) => part !== to[index]);
  const [node, other] = [from[at], to[at]];
  if (node === undefined || other === undefined) return;
  const folder = from.slice(0, at).join('/');
  const graph = graphs.get(folder) ?? new Map<string, Set<string>>();
  graphs.set(folder, graph.set(node, (graph.get(node) ?? new Set()).add(other)));
}

/** Takes away what imports nothing that is left: what remains leads into a circle. */
function circleOf(graph: Graph): readonly string[] | undefined {
  const left = new Map(graph);
  const next = (node: string): string | undefined =>
    [...(left.get(node) ?? [])].find((each) => left.has(each));
  for (let before = -1; before !== left.size;) {
    before = left.size;
    for (const node of left.keys()) if (next(node) === undefined) left.delete(node);
  }
  const path: string[] = [];
  let [node] = left.keys();
  for (; node !== undefined && !path.includes(node); node = next(node)) path.push(node);
  return node === undefined ? undefined : [...path.slice(path.indexOf(node)), node];
}

if (import.meta.main) {
  const root = join(import.meta.dirname, '../..');
  const folders = rooms.flatMap(({ folder }) => globSync(`${folder}/`, { cwd: root }));
  const circles = folders.flatMap((room) => circlesIn(root, room.replace(/\/$/u, '')));
  for (const circle of circles) process.stderr.write(`import circle in ${circle}\n`);
  process.stdout.write(`Folders: ${circles.length} import circles in ${folders.length} rooms.\n`);
  process.exitCode = circles.length > 0 ? 1 : 0;
}
