/** Facts of the endpoints for `kit-connector status`: stations, rates since the last report, and drops by reason. */
import type { EndpointStats } from './tally.ts';

/** Stations shown for one endpoint; more would not fit a line. */
const peers_shown_max = 4;

/** Returns a function that formats the endpoints, with rates since its last call. */
export function endpointFacts(): (
  all: readonly EndpointStats[],
  now_ms: number,
) => Readonly<Record<string, string>> {
  const before = new Map<string, { readonly stats: EndpointStats; readonly at_ms: number }>();
  return (all, now_ms) =>
    Object.fromEntries(
      all.map((stats) => {
        const last = before.get(stats.name);
        before.set(stats.name, { stats, at_ms: now_ms });
        const seconds = last ? (now_ms - last.at_ms) / 1_000 : 0;
        const rate = (count: number, earlier: number | undefined): string =>
          seconds > 0 ? `${((count - (earlier ?? 0)) / seconds).toFixed(1)}/s` : '?/s';
        const { up, peers, to_stations, to_vehicles } = stats;
        const shown = peers.slice(0, peers_shown_max).join(', ');
        const more = peers.length > peers_shown_max ? ` and ${peers.length - peers_shown_max} more` : '';
        const text = [
          up ? 'up' : 'down',
          `stations: ${peers.length === 0 ? 'none' : `${shown}${more}`}`,
          `to them ${to_stations} (${rate(to_stations, last?.stats.to_stations)})`,
          `to vehicles ${to_vehicles} (${rate(to_vehicles, last?.stats.to_vehicles)})`,
          ...droppedText(stats),
        ].join(', ');
        return [`endpoint ${stats.name}`, text];
      }),
    );
}

function droppedText({ dropped, refused_clients }: EndpointStats): readonly string[] {
  // Frames without a station are no loss.
  const lost = Object.entries(dropped).filter(([reason, count]) => count > 0 && reason !== 'no_peer');
  const reasons = lost.map(([reason, count]) => `${reason} ${count}`).join(', ');
  return [
    ...(lost.length > 0 ? [`dropped: ${reasons}`] : []),
    ...(refused_clients > 0 ? [`${refused_clients} connections refused`] : []),
  ];
}
