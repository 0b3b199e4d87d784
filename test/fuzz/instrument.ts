/**
 * Counts which branches of the project's code ran, and of the libraries that read foreign bytes for it: every such module that is
 * loaded after `instrument` gets a mark at the start of each function, branch and operand. Must run before the modules that are
 * fuzzed are imported.
 */
import { registerHooks, stripTypeScriptTypes } from 'node:module';
import { parseAst } from 'rolldown/parseAst';

const branches_max = 65_536;
const project = new URL('../..', import.meta.url).href;

interface Insertion {
  readonly at: number;
  readonly text: string;
  /** Closing texts of inner nodes stand before those of outer ones. */
  readonly rank: number;
}

/** A node of the syntax tree, as far as it is looked at. */
interface Node {
  readonly type: string;
  readonly start: number;
  readonly end: number;
}

export interface Coverage {
  /** True once for each input that reached a branch that no input before it has reached. */
  reachedMore(): boolean;
  /** From now on every branch counts as not reached. */
  forget(): void;
  readonly branches: number;
}

/** The parts of libraries that read what others wrote; all of them CommonJS. */
const libraries = /\/node_modules\/(?:net-snmp\/index|asn1-ber\/lib\/.*|mqtt-packet\/parser)\.js$/u;

/** Instruments everything of `src` and `drivers` that is loaded from now on. */
export function instrument(): Coverage {
  const hits = Buffer.alloc(branches_max);
  const seen = Buffer.alloc(branches_max);
  Reflect.set(globalThis, '__hits', hits);
  let next = 0;
  const marks = (): number => Math.min(next + 1, branches_max);
  const mark = (): string => `__hits[${(next += 1) % branches_max}]=1`;
  registerHooks({
    load(url, context, nextLoad) {
      const loaded = nextLoad(url, context);
      const { source } = loaded;
      if (source === undefined || source === null) return loaded;
      const text = (): string =>
        typeof source === 'string' ? source : Buffer.from(source as Uint8Array).toString();
      if (isOurs(url)) {
        return { ...loaded, format: 'module', source: marked(stripTypeScriptTypes(text()), mark) };
      }
      return libraries.test(url) ? { ...loaded, source: marked(text(), mark) } : loaded;
    },
  });
  return {
    reachedMore() {
      // Of the branches that there are: to compare all places would take longer than many an input.
      if (hits.compare(seen, 0, marks(), 0, marks()) === 0) return false;
      hits.copy(seen);
      return true;
    },
    forget() {
      hits.fill(0);
      seen.fill(0);
    },
    get branches() {
      return seen.reduce((sum, hit) => sum + hit, 0);
    },
  };
}

function isOurs(url: string): boolean {
  const path = url.startsWith(project) ? url.slice(project.length) : '';
  return /^(?:src|drivers)\/.*\.ts$/u.test(path);
}

function marked(source: string, mark: () => string): string {
  const insertions: Insertion[] = [];
  const wrap = (node: Node, before: string, after: string): void => {
    insertions.push({ at: node.start, text: before, rank: insertions.length });
    insertions.push({ at: node.end, text: after, rank: -insertions.length });
  };
  const expression = (node: unknown): void => {
    if (isNode(node)) wrap(node, `(${mark()},(`, '))');
  };
  const statement = (node: unknown): void => {
    if (isNode(node) && node.type !== 'BlockStatement') wrap(node, `{${mark()};`, '}');
  };
  const visit = (node: unknown): void => {
    if (Array.isArray(node)) return node.forEach(visit);
    if (!isNode(node)) return;
    const part = (name: string): unknown => Reflect.get(node, name);
    if (node.type === 'BlockStatement')
      insertions.push({ at: node.start + 1, text: `${mark()};`, rank: insertions.length });
    if (node.type === 'ArrowFunctionExpression' && !isBlock(part('body'))) expression(part('body'));
    if (node.type === 'ConditionalExpression') [part('consequent'), part('alternate')].forEach(expression);
    if (node.type === 'LogicalExpression') expression(part('right'));
    if (node.type === 'IfStatement') [part('consequent'), part('alternate')].forEach(statement);
    if (loops.has(node.type)) statement(part('body'));
    for (const value of Object.values(node)) if (typeof value === 'object') visit(value);
  };
  const tree = parseAst(source);
  visit(tree);
  // A directive such as "use strict" has to stay the first statement.
  const [first] = tree.body;
  const start = first && 'directive' in first && first.directive ? first.end : 0;
  let text = `${source.slice(0, start)}; const __hits = globalThis.__hits; `;
  let from = start;
  for (const { at, text: inserted } of insertions.sort((a, b) => a.at - b.at || a.rank - b.rank)) {
    text += source.slice(from, at) + inserted;
    from = at;
  }
  return `${text}${source.slice(from)}`;
}

const loops: ReadonlySet<string> = new Set([
  'ForStatement',
  'ForOfStatement',
  'ForInStatement',
  'WhileStatement',
]);

function isBlock(value: unknown): boolean {
  return isNode(value) && value.type === 'BlockStatement';
}

function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null && 'type' in value && 'start' in value;
}
