/** Finds the WAN links whose status changed between two reports. */
import type { Link, LinkStatus, LinkType } from '../../contract/kit.ts';

interface LinkEdge {
  readonly name: string;
  readonly type: LinkType | null;
  readonly status: LinkStatus;
  readonly reason: string | null;
}

export type LinkStates = ReadonlyMap<string, Pick<LinkEdge, 'type' | 'status'>>;

type Edges = { readonly states: LinkStates; readonly edges: readonly LinkEdge[] };

/** Links that are gone and still remembered, so that their return is an edge again. */
export const gone_max = 32;

/**
 * The first status of a link is no edge. A link that is not in the report any more went offline, once, and stays known.
 * The number of links in `wans` is limited by its schema.
 */
export function linkEdges(
  before: LinkStates,
  wans: readonly (Link & { readonly reason?: string | null })[],
): Edges {
  const gone = goneLinks(before, new Set(wans.map((link) => link.name)));
  const states = new Map(gone.states);
  const edges = [...gone.edges];
  for (const { name, ...now } of wans) {
    const known = before.get(name);
    const type = now.type ?? known?.type ?? null;
    const status = now.status ?? known?.status;
    if (status === undefined) continue;
    if (known && known.status !== status) edges.push({ name, type, status, reason: now.reason ?? null });
    states.set(name, { type, status });
  }
  return { states, edges };
}

function goneLinks(before: LinkStates, present: ReadonlySet<string>): Edges {
  const gone = [...before].filter(([name]) => !present.has(name));
  const edges = gone
    .filter(([, known]) => known.status !== 'offline')
    .map(([name, { type }]) => ({ name, type, status: 'offline' as const, reason: 'the interface is gone' }));
  const remembered = gone.slice(-gone_max);
  return {
    states: new Map(remembered.map(([name, { type }]) => [name, { type, status: 'offline' }])),
    edges,
  };
}
