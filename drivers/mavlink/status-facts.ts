/** Facts of the driver for `kit-connector status`: vehicles, quality of each link, report of its radio. */
import type { Link } from './links/link.ts';
import type { ComponentStats, LinkStats } from './links/link-tally.ts';
import type { Messages } from './wire/messages.ts';
import { texts as command_texts } from './commands/texts.ts';
import { texts } from './texts.ts';
import type { Vehicle } from './vehicles/vehicle.ts';
import type { DeviceReport } from '../../src/toolkit/driver/driver.ts';
import { type LinkOptions, addressOf } from './options.ts';
import { texts as link_texts } from './links/texts.ts';
import type { EndpointStats } from './forward/endpoint.ts';

/** Components shown for one link; more would not fit a line. */
const components_shown_max = 8;
/** The status of a driver has at most 32 facts, links and endpoints included. */
const vehicles_shown_max = 10;
const unknown_rssi = 255;

export interface Observed {
  readonly vehicles: readonly Vehicle[];
  /** Returns the latest radio report of a link; undefined when none is recent. */
  readonly radioOf: (link: Link) => Messages['RADIO_STATUS'] | undefined;
  /** Returns the streams of its cameras. */
  readonly streamsOf: (vehicle: Vehicle) => readonly string[];
}

export function statusFacts(
  links: readonly Link[],
  { vehicles, radioOf, streamsOf }: Observed,
): Readonly<Record<string, string | number>> {
  return {
    vehicles: vehicles.length,
    online: vehicles.filter(({ online }) => online).length,
    conflicts: vehicles.filter(({ conflict, namesake }) => (conflict ?? namesake) !== undefined).length,
    ...vehicleFacts(vehicles, streamsOf),
    ...Object.fromEntries(links.flatMap((link) => linkFacts(link, radioOf(link)))),
  };
}

/** Mode, arming and battery of each vehicle; online vehicles come first. */
function vehicleFacts(
  vehicles: readonly Vehicle[],
  streamsOf: Observed['streamsOf'],
): Readonly<Record<string, string>> {
  const sorted = vehicles.toSorted((a, b) => Number(b.online) - Number(a.online));
  const now_ms = performance.now();
  const shown = sorted.slice(0, vehicles_shown_max).map((vehicle) => {
    const text = vehicle.online
      ? [vehicleText(vehicle.report(now_ms)), ...streamsOf(vehicle)].join(', ')
      : texts.offline(vehicle.offline_ms);
    return [texts.vehicle(vehicle.name, vehicle.active.sysid), text] as const;
  });
  return Object.fromEntries(shown);
}

/** Formats a vehicle, such as `GUIDED, armed, airborne, battery 76 %`. */
function vehicleText({ situation, charge, alarms, log }: ReturnType<Vehicle['report']>): string {
  const { mode, armed, airborne, pre_arm_check, pre_arm_reasons } = situation;
  const { remaining_pct = null, voltage = null } = charge ?? {};
  return [
    mode ?? texts.mode_unknown,
    texts.armed(armed),
    ...(armed === true && airborne === true ? [texts.airborne] : []),
    ...(armed === false && pre_arm_check === false ? [command_texts.pre_arm_failed(pre_arm_reasons)] : []),
    ...(remaining_pct === null && voltage === null ? [] : [texts.battery(remaining_pct, voltage)]),
    ...(log === undefined ? [] : [log]),
    ...alarms.map((alarm) => texts.alarm(alarm)),
  ].join(', ');
}

function linkFacts(
  link: Link,
  radio: Messages['RADIO_STATUS'] | undefined,
): readonly (readonly [key: string, text: string])[] {
  const stats = link.stats();
  const losses = componentLosses(stats.components);
  return [
    [link.name, linkText(stats)],
    ...(losses === '' ? [] : [[`${link.name} loss`, losses] as const]),
    ...(radio ? [[`${link.name} radio`, radioText(radio)] as const] : []),
  ];
}

/** Formats a link, such as `up, 4211 frames, 0.3 % lost`. */
function linkText({
  up,
  frames,
  components,
  bad_signatures,
  unsigned,
  repeated,
  budget,
  over_budget,
}: LinkStats): string {
  const refused = bad_signatures + unsigned;
  const foreign = refused > 0 ? `, ${refused} not signed with our key` : '';
  const ignored = repeated > 0 ? `${foreign}, ${repeated} with old signatures` : foreign;
  const sent = budget
    ? `, sent ${budget.bytes_per_s} of ${budget.bytes_per_s_max} bytes/s, ${over_budget} frames above it`
    : '';
  return `${up ? 'up' : 'down'}, ${frames} frames, ${lossText(components)} lost${ignored}${sent}`;
}

/** Formats losses by system and component, the worst first: `1/1 0.3 %, 1/100 0.0 %`. */
export function componentLosses(components: readonly ComponentStats[]): string {
  const by_sender = Map.groupBy(components, ({ sysid, compid }) => `${sysid}/${compid}`);
  const worst = [...by_sender].toSorted(([, a], [, b]) => lossOf(b) - lossOf(a));
  const shown = worst.slice(0, components_shown_max).map(([sender, all]) => `${sender} ${lossText(all)}`);
  const more = worst.length - shown.length;
  return [...shown, ...(more > 0 ? [`and ${more} more`] : [])].join(', ');
}

function lossText(components: readonly ComponentStats[]): string {
  return `${(100 * lossOf(components)).toFixed(1)} %`;
}

function lossOf(components: readonly ComponentStats[]): number {
  const received = components.reduce((sum, each) => sum + each.received, 0);
  const lost = components.reduce((sum, each) => sum + each.lost, 0);
  return received + lost === 0 ? 0 : lost / (received + lost);
}

/** Formats a radio report in the radio's own scale: `here 180 noise 40, remote 170 noise 45, 3 errors`. */
export function radioText({ rssi, noise, remrssi, remnoise, rxerrors }: Messages['RADIO_STATUS']): string {
  const shown = (value: number): string => (value === unknown_rssi ? '?' : String(value));
  const here = `here ${shown(rssi)} noise ${shown(noise)}`;
  return `${here}, remote ${shown(remrssi)} noise ${shown(remnoise)}, ${rxerrors} errors`;
}

// Names a link that is open and receives bytes, but none of MAVLink: another baud rate, or another device.

/** Longer than any frame: a link that is opened in the middle of one skips less. */
const foreign_bytes_min = 300;

/** Returns a function that replaces the report of such a link. */
export function withForeignBytes(
  options: readonly LinkOptions[],
  links: readonly Pick<Link, 'name' | 'stats'>[],
): (report: DeviceReport) => DeviceReport {
  const foreign = new Map(
    links.flatMap(({ name, stats }) => {
      const { up, frames, bytes_skipped } = stats();
      if (!up || frames > 0 || bytes_skipped < foreign_bytes_min) return [];
      const link = options.find((each) => (each.name ?? addressOf(each)) === name);
      return [[name, link_texts.foreign_bytes[link?.kind === 'serial' ? 'serial' : 'network']] as const];
    }),
  );
  return (report) => {
    const reason = foreign.get(report.name);
    return reason === undefined || report.reason !== null ? report : { ...report, state: 'offline', reason };
  };
}

// Facts of the endpoints for `kit-connector status`: stations, rates since the last report, and drops by reason.

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
