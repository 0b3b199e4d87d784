/** Rights of a login, read from the `acls` of the login's reply, so that no call is tried to find out. */
import { z } from 'zod';
import type { Call } from './ubus-wire.ts';

export interface Grants {
  readonly isEmpty: boolean;
  readonly mayCall: (call: Pick<Call, 'object' | 'method'>) => boolean;
  /** Of the object `file`: whether this path may be read or written. */
  readonly mayFile: (path: string, how: 'read' | 'write') => boolean;
  /** Whether this uci configuration may be read or changed. */
  readonly mayUci: (config: string, how: 'read' | 'write') => boolean;
}

/** Pattern to the allowed names. */
const rights = z.record(z.string(), z.array(z.string())).catch({});
const acls = z.looseObject({ ubus: rights, file: rights, uci: rights }).partial().catch({});

/** A pattern of names, and one of the rights that it grants. */
type Right = readonly [pattern: string, right: string];

/** Of each kind of object. A radio with all of LuCI has some 600; the others of a hostile one count for nothing. */
const rights_max = 2_048;
/** Of a pattern; what it is compared with is shorter. */
const pattern_chars_max = 64;

export function readGrants(raw: unknown): Grants {
  const { ubus = {}, file = {}, uci = {} } = acls.parse(raw ?? {});
  const of = { ubus: rightsIn(ubus), file: rightsIn(file), uci: rightsIn(uci) };
  return {
    isEmpty: Object.keys(ubus).length === 0,
    mayCall: ({ object, method }) => allows(of.ubus, object, method),
    mayFile: (path, how) => allows(of.ubus, 'file', how) && allows(of.file, path, how),
    mayUci: (config, how) => allows(of.uci, config, how),
  };
}

function rightsIn(granted: Readonly<Record<string, readonly string[]>>): readonly Right[] {
  const found: Right[] = [];
  for (const [pattern, names] of Object.entries(granted)) {
    for (const name of names) {
      if (found.length === rights_max) return found;
      if (Math.max(pattern.length, name.length) <= pattern_chars_max) found.push([pattern, name]);
    }
  }
  return found;
}

function allows(rights: readonly Right[], name: string, wanted: string): boolean {
  return rights.some(([pattern, right]) => isMatch(right, wanted) && isMatch(pattern, name));
}

/**
 * rpcd compares with fnmatch(3), where a star matches slashes too. Without a regular expression: the pattern is the radio's, and one
 * of thirty stars would take years.
 */
export function isMatch(pattern: string, name: string): boolean {
  let [at, of_name] = [0, 0];
  // The last star, and up to where it reaches.
  let [star, reach] = [-1, 0];
  while (of_name < name.length) {
    const sign = pattern[at];
    if (sign === '*') {
      star = at;
      reach = of_name;
      at += 1;
    } else if (sign !== undefined && (sign === '?' || sign === name[of_name])) {
      at += 1;
      of_name += 1;
    } else if (star >= 0) {
      reach += 1;
      at = star + 1;
      of_name = reach;
    } else return false;
  }
  return /^\**$/u.test(pattern.slice(at));
}
