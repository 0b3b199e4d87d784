/** The driver of MAVLink drones and vehicles: ArduPilot and PX4, over several UDP, TCP and serial links. */
import { droneFeeds } from '../../src/contract/drone-feeds.ts';
import { DeviceReports } from '../../src/toolkit/device/device-reports.ts';
import {
  defineDriver,
  type DeviceReport,
  type DriverHost,
  type DriverLog,
} from '../../src/toolkit/driver/driver.ts';
import { CommandRefused, messageOf } from '../../src/platform/errors.ts';
import { aborted, every } from '../../src/platform/time.ts';
import { Forwarder } from './forward/forwarder.ts';
import { VehicleRegistry } from './vehicles/vehicle-registry.ts';
import { type Link, openLink } from './links/link.ts';
import {
  addressOf,
  type CommandName,
  type MavlinkOptions,
  mavlinkOptions,
  openLinks,
  safety_names,
} from './options.ts';
import { Outgoing, sendHeartbeats } from './links/outgoing.ts';
import { texts } from './links/texts.ts';
import { openSigning, type StoredSigning } from './wire/signing.ts';
import { texts as signing_texts } from './wire/texts.ts';
import { VehicleLogs } from './logs/vehicle-logs.ts';
import { endpointFacts, statusFacts, withForeignBytes } from './status-facts.ts';
import type { Command } from '../../src/toolkit/driver/command.ts';
import { notSent } from './commands/admission.ts';
import { armCommand, gotoCommand, plainCommands } from './commands/commands.ts';
import { flightCommands } from './commands/flight-commands.ts';
import { parameterCommands } from './commands/parameters.ts';
import { logCommands } from './logs/commands.ts';
import { orbitCommand } from './commands/orbit.ts';
import { settingCommands } from './commands/settings.ts';
import { texts as command_texts } from './commands/texts.ts';
import { storageCommands } from './missions/commands.ts';
import { heldToFence } from './missions/fence.ts';
import { missionFlightCommands } from './missions/flight.ts';
import type { Commanded } from './vehicles/addressee.ts';
import { untargeted } from './reports/kind.ts';
import type { Contact } from './vehicles/contact.ts';

/** Returns the commands that are enabled for this vehicle. */
export function vehicleCommands(
  commanded: Commanded,
  options: MavlinkOptions,
  enabled: readonly CommandName[],
  { autopilot, kind, isTelemetryOnly }: Pick<Contact, 'autopilot' | 'isTelemetryOnly' | 'kind'>,
): readonly Command[] {
  if (isTelemetryOnly) return [];
  const bounded = { ...commanded, task_age_max_ms: options.task_age_max_s * 1_000 };
  const vehicle = { ...bounded, againstFence: heldToFence(bounded) };
  const all = [
    armCommand(vehicle, options),
    ...plainCommands(vehicle, { autopilot, kind }),
    gotoCommand(vehicle, options, kind),
    ...flightCommands(vehicle, options, kind),
    ...orbitCommand(vehicle, options, { autopilot, kind }),
    ...storageCommands(vehicle, options),
    ...missionFlightCommands(vehicle, options, kind),
    ...settingCommands(vehicle, options, { autopilot, kind }),
    ...parameterCommands(vehicle),
    ...logCommands(vehicle),
  ];
  const lacks = lackedBy({ autopilot, kind });
  return all
    .filter(({ name }) => !lacks.has(name) && enabled.some((each) => each === name))
    .map((command) => unlessShared(command, commanded));
}

/**
 * Another vehicle may receive what is sent to this one: that is refused, except for what makes both safer. Where they have one
 * address, either one may have shown its effect.
 */
function unlessShared(command: Command, { conflict, mixture }: Commanded): Command {
  const read: Command['read'] = (payload) => {
    const { run, ...read } = command.read(payload);
    const is_safety = read.is_safety || safety_names.has(command.name);
    // It makes no vehicle safer for which it is not meant.
    const isForBoth = is_safety && command.name !== 'emergency_stop';
    const runKnowing: typeof run = async (context) => {
      const obstacle = isForBoth ? undefined : conflict();
      if (obstacle !== undefined) throw notSent(obstacle);
      const result = await run(context);
      const doubt = mixture();
      if (doubt !== undefined) throw new CommandRefused(command_texts.unknown_outcome(doubt));
      return result;
    };
    return { ...read, is_safety, run: runKnowing };
  };
  return { ...command, read };
}

const airborne_only: readonly CommandName[] = ['takeoff', 'land', 'set_altitude'];
const targets: readonly CommandName[] = ['goto_waypoint', 'reposition', 'set_altitude', 'set_speed'];
const missions: readonly CommandName[] = ['upload_mission', 'start_mission', 'resume_mission'];
const modes: readonly CommandName[] = ['hold', 'land', 'pause_mission'];

/**
 * What a vehicle of this kind can never carry out. Of one whose modes and altitude frames are not known, as of a generic autopilot
 * or a balloon, what brings it home and stops its motors stays: MAVLink defines that for all.
 */
function lackedBy({ autopilot, kind }: Pick<Contact, 'autopilot' | 'kind'>): ReadonlySet<string> {
  const isKnown = areModesKnown({ autopilot, kind });
  const is_ardusub = autopilot === 'ardupilot' && kind === 'sub';
  const names: readonly CommandName[] = [
    ...(is_ardusub ? (['return_home'] as const) : (['surface'] as const)),
    ...(kind === 'rover' || kind === 'sub' ? airborne_only : []),
    ...(isKnown && !untargeted.has(kind) ? [] : [...targets, ...missions]),
    // It accepts a takeoff and does nothing, and has no mode for missions.
    ...(kind === 'blimp' ? (['takeoff', 'pause_mission'] as const) : []),
    ...(isKnown ? [] : [...airborne_only, ...modes]),
    ...(autopilot === 'other' ? (['download_log'] as const) : []),
  ];
  return new Set(names);
}

function areModesKnown({ autopilot, kind }: Pick<Contact, 'autopilot' | 'kind'>): boolean {
  return autopilot !== 'other' && kind !== 'other' && (kind !== 'blimp' || autopilot === 'ardupilot');
}

export const mavlink = defineDriver({
  name: 'mavlink',
  feeds: droneFeeds,
  options: mavlinkOptions,
  cautions: (options) => openLinks(options).map(({ name, place }) => texts.open_link(name, place)),
  run: async (options, host) => runMavlink(options, host, noteOpenLinks(options, host.log)),
});

/** Interval of the checks for due requests, silence and link changes. */
const tick_ms = 100;
/** What `kit-connector status` shows of a vehicle is at most this old. */
const status_every_ms = 1_000;

type Host = DriverHost<typeof droneFeeds>;

async function runMavlink(options: MavlinkOptions, host: Host, open: OpenFacts): Promise<void> {
  const { signal, log } = host;
  const signing = options.signing && (await openSigning(options.signing, { signal, log }));
  if (signal.aborted) return;
  const { system_id: sysid, component_id: compid, passive, role } = options;
  const out = new Outgoing({ sysid, compid, passive, signing });
  const registry = new VehicleRegistry({
    host,
    options,
    out,
    commandsFor: vehicleCommands,
    logsFor: (vehicle) =>
      new VehicleLogs({
        ...vehicle,
        signal: AbortSignal.any([signal, vehicle.signal]),
        host,
        options: options.flight_logs,
      }),
  });
  const { endpoints } = options;
  const forwarder = new Forwarder({ endpoints, passive, out, signal, log, routes: () => registry.routes });
  const factsOfEndpoints = endpointFacts();
  let has_failed = false;
  const report = (): void => {
    if (signal.aborted) return;
    const facts = {
      ...factsOf(links, registry, signing, open),
      ...factsOfEndpoints(forwarder.stats(), performance.now()),
    };
    host.reportStatus(facts, reports.all.map(withForeignBytes(options.links, links)).map(withRefusal));
  };
  const withRefusal = (device: DeviceReport): DeviceReport => {
    const link = links.find(({ name }) => name === device.name);
    const weakness = link && registry.refusalAt(link, performance.now());
    return weakness === undefined ? device : { ...device, weakness };
  };
  // The first states come while the links are opened.
  const reports = new DeviceReports(() => void Promise.resolve().then(report));
  const links = options.links.map((link_options) => {
    const tried = addressOf(link_options);
    const device = { name: link_options.name ?? tried, tried, asset_key: () => undefined };
    let logState: ReturnType<typeof linkLog> | undefined;
    const link: Link = openLink(
      link_options,
      {
        frame: (frame, peer, now_ms) => {
          if (forwarder.isOwnEndpoint(peer)) return;
          forwarder.fromLink(link, frame, { peer, now_ms, verified: true });
          registry.frame(link, frame, peer, now_ms);
        },
        unknown:
          endpoints.length > 0
            ? (frame, from) => {
                if (!forwarder.isOwnEndpoint(from.peer)) forwarder.unknownFromLink(link, frame, from);
              }
            : undefined,
        rejected: (frame, peer, now_ms) => {
          if (!forwarder.isOwnEndpoint(peer))
            forwarder.fromLink(link, frame, { peer, now_ms, verified: false });
        },
        state: (up, reason) => {
          logState ??= linkLog(log, link.name);
          logState(up, reason);
        },
        session: (state) => reports.take(device, state),
        mismatched: (problem, { sysid }) => {
          log.warn({ link: link.name, system_id: sysid }, texts.signature[problem]);
        },
        failed: (thrown) => {
          if (!has_failed) log.error({ err: thrown, reason: messageOf(thrown) }, texts.frame_failed);
          has_failed = true;
        },
      },
      { signal, signing },
    );
    return link;
  });
  every(tick_ms, signal, () => registry.tick(performance.now()));
  every(status_every_ms, signal, report);
  if (!passive) sendHeartbeats(links, { out, role, signal });
  await aborted(signal);
  await Promise.all([...links.map(async (link) => link.ended), forwarder.ended]);
  await signing?.close();
}

/** Of the status: the links over which a stranger can pass for a vehicle. */
type OpenFacts = Readonly<Record<string, string>>;

/** Logs the links over which a stranger can pass for a vehicle, and returns them as facts of the status. */
function noteOpenLinks(options: MavlinkOptions, log: DriverLog): OpenFacts {
  const open = openLinks(options);
  for (const { name, place } of open) log.warn({ link: name, place }, texts.open);
  return open.length > 0 ? { unsigned: texts.open_links(open.map(({ name }) => name)) } : {};
}

function factsOf(
  links: readonly Link[],
  registry: VehicleRegistry,
  signing: StoredSigning | undefined,
  open: OpenFacts,
): ReturnType<typeof statusFacts> {
  const days = signing?.ahead_days() ?? 0;
  const rivals = links.filter((link) => registry.hasRival(link, performance.now()));
  return {
    ...open,
    ...statusFacts(links, {
      vehicles: registry.vehicles,
      radioOf: (link) => registry.radioOf(link),
      streamsOf: (vehicle) => registry.streamsOf(vehicle),
    }),
    ...(days > 0 ? { 'signing clock': signing_texts.clock_ahead_days(days) } : {}),
    ...(rivals.length > 0 ? { 'own ids': texts.own_ids(rivals.map(({ name }) => name)) } : {}),
  };
}

// Logs when a link opens, when it is lost, and how long each state lasted: one line for each change, not for each attempt.

/** Returns the function to call with each state report of the named link. */
export function linkLog(
  log: Pick<DriverLog, 'debug' | 'info' | 'warn'>,
  link: string,
): (up: boolean, reason: string | null | undefined) => void {
  let opened = false;
  let last: { readonly up: boolean; readonly since_ms: number } | undefined;
  return (up, reason) => {
    const before = last;
    if (before?.up === up) {
      if (!up) log.debug({ link, reason }, texts.still_down);
      return;
    }
    last = { up, since_ms: performance.now() };
    const wasOpen = opened;
    opened ||= up;
    const held_s = before && (last.since_ms - before.since_ms) / 1_000;
    if (up) log.info({ link, ...(before && { down_s: held_s }) }, wasOpen ? texts.reopened : texts.opened);
    else
      log.warn({ link, reason, ...(before && { up_s: held_s }) }, wasOpen ? texts.lost : texts.open_failed);
  };
}
