/**
 * Forwards frames between vehicles and the stations behind the endpoints, as received: byte by byte, with their signatures.
 * Frames never go from one endpoint to another, nor back to where they came from.
 */
import { networkInterfaces } from 'node:os';
import type { DriverLog } from '../../../src/toolkit/driver/driver.ts';
import { plainIp } from '../../../src/platform/networks.ts';
import { SeenRecently } from '../../../src/platform/seen-recently.ts';
import { every } from '../../../src/platform/time.ts';
import { TokenBucket } from '../../../src/platform/token-bucket.ts';
import type { Link, Origin } from '../links/link.ts';
import type { Outgoing } from '../links/outgoing.ts';
import type { Route } from '../vehicles/contacts.ts';
import { type Frame, fingerprintOf } from '../wire/frame.ts';
import { type DropReason, Endpoint, type EndpointStats, texts } from './endpoint.ts';
import type { EndpointOptions } from '../options.ts';
import { targets } from '../wire/definitions-table.ts';

export interface ForwarderParts {
  readonly endpoints: readonly EndpointOptions[];
  readonly passive: boolean;
  readonly out: Pick<Outgoing, 'foreign' | 'isEcho'>;
  readonly routes: () => readonly Route[];
  readonly signal: AbortSignal;
  readonly log: Pick<DriverLog, 'info' | 'warn' | 'debug'>;
}

const setup_signing = 256;
/** Unused budget that may be sent to vehicles at once. */
const burst_s = 1;
/** Longer than a router delays a frame. */
const recent_ms = 4_000;
/** 2,000 frames a second. */
const recent_max = 4_096;
/** Age of the routes by which frames of vehicles are filtered. */
const routes_every_ms = 100;

/** The link that a frame came over; routes name the same object. */
type Source = Pick<Link, 'name'>;

export class Forwarder {
  readonly #parts: ForwarderParts;
  readonly #endpoints: readonly Endpoint[];
  /** Where frames were received. */
  readonly #recent = new SeenRecently<number, string>({ keep_ms: recent_ms, max: recent_max });
  /** The bytes that stations send to vehicles. */
  readonly #budgets: ReadonlyMap<Endpoint, TokenBucket>;
  #routes: readonly Route[] = [];
  #routes_now: readonly Route[] | undefined;
  #has_warned_ids = false;
  #has_warned_link = false;

  constructor(parts: ForwarderParts) {
    this.#parts = parts;
    const { signal, log } = parts;
    const frame = (endpoint: Endpoint, each: Frame, peer: string): void =>
      this.#fromStation(endpoint, each, peer);
    this.#endpoints = parts.endpoints.map((options) => new Endpoint(options, { signal, log, frame }));
    this.#budgets = new Map(
      this.#endpoints.map((each) => {
        const perSecond = each.options.to_vehicles_bytes_per_s;
        return [each, new TokenBucket({ perSecond, burst: perSecond * burst_s })];
      }),
    );
    if (this.#endpoints.length === 0) return;
    every(routes_every_ms, signal, () => {
      this.#routes = parts.routes();
    });
  }

  /** Resolves when the signal has aborted and every endpoint is closed. */
  get ended(): Promise<unknown> {
    return Promise.all(this.#endpoints.map(async ({ ended }) => ended));
  }

  stats(): readonly EndpointStats[] {
    return this.#endpoints.map((endpoint) => endpoint.stats());
  }

  /** Whether a link receives from an endpoint of this driver: the frames are ours, and no vehicle sent them. */
  isOwnEndpoint(peer: string): boolean {
    if (this.#endpoints.length === 0) return false;
    const colon = peer.lastIndexOf(':');
    const port = Number(peer.slice(colon + 1));
    if (!this.#endpoints.some(({ own_ports }) => own_ports.includes(port))) return false;
    const host = peer.slice(0, colon).replaceAll(/[[\]]/gu, '');
    if (!isOwnAddress(host)) return false;
    if (!this.#has_warned_link) this.#parts.log.warn({ peer }, texts.own_link);
    this.#has_warned_link = true;
    return true;
  }

  /** Forwards one frame of a link to the stations. `verified`: as far as the settings demand a signature. */
  fromLink(link: Source, frame: Frame, { peer, now_ms, verified }: Origin): void {
    if (this.#endpoints.length === 0 || this.#parts.out.isEcho(frame)) return;
    if (frame.msgid === setup_signing || this.#isStandby(link, peer, frame)) return;
    if (this.#isFromElsewhere(frame, `${link.name}|${peer}`, now_ms)) return;
    const { bytes } = frame;
    for (const endpoint of this.#endpoints) {
      const { options } = endpoint;
      if (!verified && !options.unverified) continue;
      if (this.#isForwarded(options.vehicles, { link, peer, sysid: frame.sysid })) endpoint.relay(bytes);
    }
  }

  /** Forwards a frame of an unknown message if a vehicle that is received from there has its system id: nothing else verifies it. */
  unknownFromLink(link: Source, frame: Frame, from: Origin): void {
    const { peer } = from;
    const isOfVehicle = this.#routes.some(
      (route) => route.link === link && route.peer === peer && route.sysid === frame.sysid,
    );
    if (isOfVehicle) this.fromLink(link, frame, from);
    else for (const endpoint of this.#endpoints) endpoint.drop('unknown');
  }

  /**
   * Whether the frame was received at another place shortly before: it came back through a router, or a vehicle is connected twice.
   * A sender never repeats a frame with its sequence number and checksum at two places.
   */
  #isFromElsewhere(frame: Frame, place: string, now_ms: number): boolean {
    const key = fingerprintOf(frame);
    const known = this.#recent.get(key, now_ms);
    if (known === undefined) this.#recent.note(key, place, now_ms);
    return known !== undefined && known !== place;
  }

  /** Whether the vehicle is also received over a route that is preferred now: stations get each frame once. */
  #isStandby(link: Source, peer: string, { sysid, compid }: Frame): boolean {
    for (const route of this.#routes) {
      if (route.sysid !== sysid || route.compid !== compid || route.link !== link || route.peer !== peer)
        continue;
      return !route.isActive && route.asset_key !== undefined;
    }
    return false;
  }

  #isForwarded(
    asset_keys: readonly string[] | undefined,
    { link, peer, sysid }: { readonly link: Source; readonly peer: string; readonly sysid: number },
  ): boolean {
    if (!asset_keys) return true;
    const of_system = this.#routes.filter((route) => route.sysid === sysid && route.link === link);
    const of_peer = this.#routes.filter((route) => route.link === link && route.peer === peer);
    const of_both = of_system.filter((route) => route.peer === peer);
    // A camera may have its own address, and the radio of a vehicle its own system id: it belongs to whom it serves.
    const concerned = [of_both, of_system, of_peer].find((routes) => routes.length > 0) ?? [];
    return concerned.length > 0 && concerned.every((route) => isAmong(asset_keys, route));
  }

  #fromStation(endpoint: Endpoint, frame: Frame, peer: string): void {
    const routes = this.#routesNow();
    const obstacle = this.#obstacle(endpoint, frame, { peer, routes });
    if (obstacle) {
      endpoint.drop(obstacle);
      return;
    }
    // Before the search for its vehicles, which costs more: a station that floods is dropped here.
    const { bytes } = frame;
    const budget = this.#budgets.get(endpoint);
    if (budget?.wait_ms(performance.now(), bytes.length) !== 0) {
      endpoint.drop('rate');
      return;
    }
    const reached = reachedBy(frame, routes, endpoint.options.vehicles);
    if (typeof reached === 'string') {
      endpoint.drop(reached);
      return;
    }
    budget.take(performance.now(), bytes.length);
    const command = commandOf(frame);
    if (command !== undefined) this.#parts.out.foreign(command, performance.now());
    const sent = reached.filter((route) => route.link.send(bytes, route.peer));
    if (sent.length > 0) endpoint.to_vehicles += 1;
    else endpoint.drop('link_refused');
  }

  /** The routes of this turn of the event loop: a station that floods asks for them with each frame. */
  #routesNow(): readonly Route[] {
    if (this.#routes_now) return this.#routes_now;
    const routes = this.#parts.routes();
    this.#routes_now = routes;
    setImmediate(() => {
      this.#routes_now = undefined;
    });
    return routes;
  }

  #obstacle(
    { name, options }: Endpoint,
    frame: Frame,
    { peer, routes }: { readonly peer: string; readonly routes: readonly Route[] },
  ): DropReason | undefined {
    const { passive, out, log } = this.#parts;
    const { sysid, compid } = frame;
    const isVehicles = routes.some((route) => route.sysid === sysid && route.compid === compid);
    // Remembered also when it is not forwarded: it may come back through a link. Never with the ids of a vehicle: a station that
    // sends its next frames before it would hide them from the others.
    const isReturned =
      !isVehicles && this.#isFromElsewhere(frame, `endpoint ${name}|${peer}`, performance.now());
    if (passive || options.read_only) return 'read_only';
    if (out.isEcho(frame)) {
      if (!this.#has_warned_ids) log.warn({ endpoint: name, peer }, texts.own_ids);
      this.#has_warned_ids = true;
      return 'own_ids';
    }
    if (isReturned || isVehicles) return 'looped';
    return frame.msgid === setup_signing ? 'blocked' : undefined;
  }
}

/** Returns the routes of the vehicles that a frame is for, one for each link and address; or why there are none. */
function reachedBy(
  frame: Frame,
  routes: readonly Route[],
  asset_keys: readonly string[] | undefined,
): readonly Route[] | DropReason {
  const target = targetOf(frame);
  const active = routes.filter(({ isActive }) => isActive);
  const addressed =
    target === undefined || target === 0 ? active : ownOf(active.filter(({ sysid }) => sysid === target));
  if (addressed.length === 0) return 'no_vehicle';
  const allowed = asset_keys ? addressed.filter((route) => isAmong(asset_keys, route)) : addressed;
  // A command to all systems would also reach vehicles that share the address and are not forwarded here.
  const others = target === 0 && asset_keys ? active.filter((route) => !isAmong(asset_keys, route)) : [];
  const reached = allowed.filter((route) => !others.some((other) => isSamePlace(route, other)));
  if (reached.length === 0) return 'filtered';
  return reached.filter((route, at) => reached.findIndex((each) => isSamePlace(each, route)) === at);
}

/**
 * Of vehicles with one system id, those that are where the configuration says, if there are any. Otherwise all: to drop the frames
 * would let any stranger take the vehicle from its pilot, who sees both.
 */
function ownOf(addressed: readonly Route[]): readonly Route[] {
  const own = addressed.filter(({ isNamesake }) => !isNamesake);
  return own.length > 0 ? own : addressed;
}

function isSamePlace(a: Route, b: Route): boolean {
  return a.link === b.link && a.peer === b.peer;
}

function isAmong(asset_keys: readonly string[], { asset_key }: Route): boolean {
  return asset_key !== undefined && asset_keys.includes(asset_key);
}

function isOwnAddress(host: string): boolean {
  if (host.startsWith('127.') || host === '::1' || host === 'localhost') return true;
  const own = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? []);
  return own.some(({ address }) => address === plainIp(host));
}

// Reads the system that a frame is addressed to, of any message of the dialects.

/** Offset of `target_system` in the payload, by message id. */
const offsets: ReadonlyMap<number, number> = new Map(
  targets.split(',').map((pair) => {
    const [id = 0, offset = 0] = pair.trim().split(' ').map(Number);
    return [id, offset];
  }),
);

/** Returns 0 for all systems, and undefined for a message without an address. */
function targetOf({ msgid, source, payload_at, payload_length }: Frame): number | undefined {
  const offset = offsets.get(msgid);
  if (offset === undefined) return undefined;
  // MAVLink 2 leaves out zeros at the end.
  return offset < payload_length ? (source[payload_at + offset] ?? 0) : 0;
}

const command_int = 75;
const command_long = 76;
const command_at = 28;

/** Returns the number of the command that the frame carries, if it carries one. */
function commandOf({ msgid, source, payload_at, payload_length }: Frame): number | undefined {
  if (msgid !== command_int && msgid !== command_long) return undefined;
  const byteAt = (offset: number): number =>
    offset < payload_length ? (source[payload_at + offset] ?? 0) : 0;
  return byteAt(command_at) | (byteAt(command_at + 1) << 8);
}
