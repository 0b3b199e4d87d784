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

export function readGrants(raw: unknown): Grants {
  const { ubus = {}, file = {}, uci = {} } = acls.parse(raw ?? {});
  return {
    isEmpty: Object.keys(ubus).length === 0,
    mayCall: ({ object, method }) => allows(ubus, object, method),
    mayFile: (path, how) => allows(ubus, 'file', how) && allows(file, path, how),
    mayUci: (config, how) => allows(uci, config, how),
  };
}

function allows(granted: Readonly<Record<string, readonly string[]>>, name: string, right: string): boolean {
  return Object.entries(granted).some(
    ([pattern, names]) => isMatch(pattern, name) && names.some((each) => isMatch(each, right)),
  );
}

/** rpcd compares with fnmatch(3), where a star matches slashes too. */
function isMatch(pattern: string, name: string): boolean {
  if (pattern === name || pattern === '*') return true;
  if (!pattern.includes('*') && !pattern.includes('?')) return false;
  const source = pattern
    .replaceAll(/[.+^${}()|[\]\\]/gu, String.raw`\$&`)
    .replaceAll('*', '.*')
    .replaceAll('?', '.');
  return new RegExp(`^${source}$`, 'u').test(name);
}
