/** What `kit-connector status` shows beside the driver: vehicles, and how well each link works. */
import type { Link } from './link.ts';
import type { LinkStats } from './link-stats.ts';
import type { Vehicle } from './vehicle.ts';

export function statusFacts(
  links: readonly Link[],
  vehicles: readonly Vehicle[],
): Readonly<Record<string, string | number>> {
  return {
    vehicles: vehicles.length,
    online: vehicles.filter(({ online }) => online).length,
    conflicts: vehicles.filter(({ conflict }) => conflict !== undefined).length,
    ...Object.fromEntries(links.map((link) => [link.name, linkText(link.stats())])),
  };
}

/** Such as `up, 4211 frames, 0.3 % lost`. */
function linkText({ up, frames, components, bad_signatures, unsigned }: LinkStats): string {
  const received = components.reduce((sum, each) => sum + each.received, 0);
  const lost = components.reduce((sum, each) => sum + each.lost, 0);
  const loss_pct = received + lost === 0 ? 0 : (100 * lost) / (received + lost);
  const refused = bad_signatures + unsigned;
  const ignored = refused > 0 ? `, ${refused} not signed with our key` : '';
  return `${up ? 'up' : 'down'}, ${frames} frames, ${loss_pct.toFixed(1)} % lost${ignored}`;
}
