/** Reports a Starlink dish: the reason of its link state, latency and loss, and, where allowed, the kit's position. */
import { noFeeds } from '../../src/contract/feeds.ts';
import { defineDriver, type DriverHost, type DriverLog, type Fix } from '../../src/toolkit/driver/driver.ts';
import { CommandRefused, DeviceUnreachable, hasCode, notSent } from '../../src/platform/errors.ts';
import { sleep } from '../../src/platform/time.ts';
import { dial } from './api/dial.ts';
import { type Dish, type DishOrder, type DishPosition, openDish } from './dish.ts';
import { openChannel } from './api/grpc.ts';
import { openWebChannel } from './api/grpc-web.ts';
import type { DishHistory, DishLocation, DishStatus } from './api/messages.ts';
import { type StarlinkOptions, starlinkOptions } from './options.ts';
import { texts } from './texts.ts';
import type { JsonObject } from '../../src/contract/json.ts';
import {
  type Command,
  type CommandContext,
  defineCommand,
  noInput,
} from '../../src/toolkit/driver/command.ts';
import type { LinkCause } from '../../src/contract/kit.ts';

/** `DishOutage.Cause` of a dish that lies flat. */
const outage_stowed = 2;

/** `DishOutage.Cause`. */
const outages: Readonly<Record<number, string>> = {
  1: 'starting up',
  [outage_stowed]: 'stowed',
  3: 'shut down because it is too hot',
  4: 'waiting for a satellite schedule',
  5: 'no satellites in view',
  6: 'obstructed',
  7: 'no signal from the satellite',
  8: 'no answer from the ground station',
  9: 'moving its motors',
  10: 'testing its cable',
  11: 'sleeping to save power',
  12: 'moving, which its plan does not allow',
};

/** `UtDisablementCode`. */
const disablements: Readonly<Record<number, string>> = {
  2: 'no active account',
  3: 'too far from the service address',
  4: 'on the ocean, which its plan does not cover',
  5: 'in a country without service',
  6: 'in a blocked country',
  7: 'data allowance used up',
  8: 'cell disabled',
  9: 'in a country without a licence',
  10: 'roaming is restricted',
  11: 'location unknown',
  12: 'account disabled',
  13: 'firmware too old',
  14: 'moving too fast for its plan',
  15: 'below the flight limits of its plan',
  16: 'in a blocked area',
};

/** Fields of `DishAlerts`. From 12 on the numbers moved between firmwares, so those are shown as numbers. */
const alerts: Readonly<Record<number, string>> = {
  1: 'motors stuck',
  2: 'too hot: shut down',
  3: 'hot: slowed down',
  4: 'not where it is registered',
  5: 'mast not upright',
  6: 'slow Ethernet: check the cable',
  7: 'roaming',
  8: 'update waiting for a restart',
  9: 'melting snow',
  10: 'power supply hot: slowed down',
  11: 'saving power',
};

const disablement_okay = 1;

/** Why the link is as it is; null when the dish works. An account that is blocked explains more than the outage it causes. */
export function reasonOf(status: DishStatus): string | null {
  const { disablement, outage, obstructed } = status;
  if (disablement > disablement_okay) {
    return `dish: service is disabled: ${disablements[disablement] ?? `code ${disablement}`}`;
  }
  if (outage !== undefined) return `dish: ${outages[outage] ?? 'outage of unknown cause'}`;
  return obstructed ? 'dish: obstructed at times' : null;
}

/** Why the dish carries nothing, as one word; null when it works. */
export function causeOf({ disablement, outage }: DishStatus): LinkCause | null {
  if (disablement > disablement_okay) return 'disabled';
  return outage === undefined ? null : (causes[outage] ?? 'device');
}

/** Of the outages that are no state of the dish itself. */
const causes: Readonly<Record<number, LinkCause>> = {
  4: 'no_satellite',
  5: 'no_satellite',
  6: 'obstructed',
  7: 'no_signal',
  8: 'no_answer',
  12: 'disabled',
};

/** Such as `roaming, melting snow`; null when there is none. */
export function alertsText(numbers: readonly number[]): string | null {
  return numbers.map((number) => alerts[number] ?? `alert ${number}`).join(', ') || null;
}

type Host = DriverHost<typeof noFeeds>;

export const starlink = defineDriver({
  name: 'starlink',
  feeds: noFeeds,
  options: starlinkOptions,
  run: runStarlink,
});

/** The dish as the last run saw it. By options of the instance. */
const contacts = new WeakMap<StarlinkOptions, DishContact>();

async function runStarlink(options: StarlinkOptions, host: Host): Promise<void> {
  const contact = contacts.get(options) ?? new DishContact();
  contacts.set(options, contact);
  // The connection must not outlive a run that failed for another reason.
  const closing = new AbortController();
  const signal = AbortSignal.any([host.signal, closing.signal]);
  try {
    contact.dish = await reach(options, contact, signal);
    await poll(contact.dish, contact, { options, host });
  } catch (error) {
    if (!host.signal.aborted) throw named(error, options);
  } finally {
    contact.dish = undefined;
    closing.abort();
  }
}

/** Connects by gRPC, else by gRPC-Web; the protocol that worked last is tried first. Throws the error of the first attempt. */
async function reach(options: StarlinkOptions, contact: DishContact, signal: AbortSignal): Promise<Dish> {
  const timeout_ms = options.timeout_s * 1_000;
  const web = openDish(
    openWebChannel({ connect: async () => dial(options, signal, options.web_port), timeout_ms, signal }),
  );
  contact.isWeb &&= await answers(web);
  if (contact.isWeb) return web;
  try {
    const dish = openDish(openChannel(await dial(options, signal), { timeout_ms, signal }));
    await dish.status();
    return dish;
  } catch (error) {
    if (signal.aborted || !(error instanceof DeviceUnreachable) || !(await answers(web))) throw error;
    contact.isWeb = true;
    return web;
  }
}

async function answers(dish: Dish): Promise<boolean> {
  return dish.status().then(
    () => true,
    () => false,
  );
}

/** Adds which dish it was: there may be two. */
function named(error: unknown, { link, host, port }: StarlinkOptions): unknown {
  if (!(error instanceof DeviceUnreachable)) return error;
  const place = `${host} port ${port}`;
  const reason = error.message.replace(`${place} over ${link}: `, '').replace(`${place}: `, '');
  const { cause } = error;
  const isUnreached = hasCode(cause, 'ETIMEDOUT', 'EHOSTUNREACH', 'ENETUNREACH');
  const words = isUnreached ? texts.unreached(reason, host, link) : reason;
  const isRefused = hasCode(cause, 'ECONNREFUSED');
  const message = texts.dish_failed(link, place, isRefused ? texts.refused : words);
  return new DeviceUnreachable(message, { cause: error });
}

interface Around {
  readonly options: StarlinkOptions;
  readonly host: Host;
}

/** Polls the dish until the signal aborts; each round sends at most three requests, one after the other. */
async function poll(dish: Dish, contact: DishContact, { options, host }: Around): Promise<void> {
  let uptime_s = 0;
  let isOffered = options.commands.length === 0;
  let hasHistory = true;
  while (!host.signal.aborted) {
    const status = await dish.status();
    contact.status = status;
    contact.read_ms = performance.now();
    if (!isOffered) host.serveGateway(dishCommands(options, contact));
    isOffered = true;
    if ((status.uptime_s ?? uptime_s) < uptime_s)
      host.log.info({ uptime_s: status.uptime_s }, texts.restarted);
    uptime_s = status.uptime_s ?? uptime_s;
    const history = await dish.history();
    if (hasHistory && !history) host.log.warn({}, texts.no_history);
    hasHistory = history !== undefined;
    const quality = history && qualityOf(history);
    host.reportLink({
      name: options.link,
      type: 'satellite',
      isp: 'Starlink',
      latency_ms: quality?.latency_ms,
      packet_loss_pct: quality?.packet_loss_pct,
      reason: reasonOf(status),
      cause: causeOf(status),
    });
    const location = options.location ? await locate({ dish, permit: contact.permit, status }, host) : 'off';
    host.reportStatus(statusFacts({ status, quality, location }));
    await sleep(options.interval_s * 1_000, host.signal);
  }
}

interface Asking {
  readonly dish: Dish;
  readonly permit: Permit;
  readonly status: DishStatus;
}

/** Asks for the position unless the dish refused recently. An old fix is not reported: the last one ages. */
async function locate({ dish, permit, status }: Asking, host: Host): Promise<Permission> {
  if (!permit.mayAsk(performance.now())) return 'refused';
  const answer = await dish.location();
  const permission = permit.received(answer, { now_ms: performance.now(), log: host.log });
  if (permission === 'refused' || !answer.location) return permission;
  const fix = fixOf(answer.location, status.gps_valid);
  if (fix) host.reportLocation(fix);
  return fix ? 'fresh' : permission;
}

/** `PositionSource` values that a receiver computes continuously; the others are configured or old. */
const fresh: ReadonlySet<number> = new Set([
  4, // GPS
  5, // STARLINK
  6, // GNC_FUSED
  8, // GNC_GPS
  9, // GNC_PNT
]);
const by_gps: ReadonlySet<number> = new Set([4, 8]);

/**
 * The position without its height: the dish does not specify whether it is above the ellipsoid or mean sea level.
 * Null when there is no fresh fix. `gps_valid` undefined: the dish does not report its receiver.
 */
export function fixOf(
  { latitude, longitude, source }: DishLocation,
  gps_valid: boolean | undefined,
): Fix | null {
  if (!fresh.has(source) || (by_gps.has(source) && gps_valid === false)) return null;
  return { latitude, longitude, altitude: null, source: 'satellite', age_ms: 0 };
}

interface Seen {
  readonly status: DishStatus;
  readonly quality: Quality | undefined;
  readonly location: Permission;
}

/** Null is not known, or none in the case of alerts. */
export function statusFacts({
  status,
  quality,
  location,
}: Seen): Readonly<Record<string, string | number | null>> {
  return {
    dish: reasonOf(status) ?? 'connected',
    latency_ms: quality?.latency_ms ?? null,
    packet_loss_pct: quality?.packet_loss_pct ?? null,
    down_mbps: inMegabits(status.downlink_bps),
    up_mbps: inMegabits(status.uplink_bps),
    obstructed_pct: tenths(status.obstructed_fraction, 100),
    alerts: alertsText(status.alerts),
    location,
    uptime_s: status.uptime_s ?? null,
    id: status.id ?? null,
    hardware: status.hardware ?? null,
    firmware: status.firmware ?? null,
  };
}

function inMegabits(bps: number | undefined): number | null {
  return tenths(bps, 1e-6);
}

function tenths(value: number | undefined, factor: number): number | null {
  return value === undefined ? null : Math.round(value * factor * 10) / 10;
}

/** A shorter window jumps, a longer one hides an outage that just began. */
export const window_s = 60;

export interface Quality {
  /** Mean of the seconds with an answer; undefined when no second had one. */
  readonly latency_ms: number | undefined;
  readonly packet_loss_pct: number | undefined;
}

/**
 * Only seconds since the dish booted count, what stands in the ring beyond is no sample. A second that lost all its pings
 * has no latency, whatever number stands there.
 */
export function qualityOf({ current, drop_rate, latency_ms }: DishHistory): Quality {
  const drops: number[] = [];
  const latencies: number[] = [];
  const length = drop_rate.length;
  for (let back = 1; back <= Math.min(window_s, length, current); back += 1) {
    const index = (current - back) % length;
    const drop = drop_rate[index] ?? Number.NaN;
    if (!(drop >= 0 && drop <= 1)) continue;
    drops.push(drop);
    const latency = latency_ms[index] ?? Number.NaN;
    if (drop < 1 && latency > 0 && latency < Number.POSITIVE_INFINITY) latencies.push(latency);
  }
  const lost = mean(drops);
  return {
    latency_ms: rounded(mean(latencies), 1),
    packet_loss_pct: rounded(lost === undefined ? undefined : lost * 100, 10),
  };
}

function mean(values: readonly number[]): number | undefined {
  if (values.length === 0) return undefined;
  return values.reduce((sum, each) => sum + each, 0) / values.length;
}

function rounded(value: number | undefined, parts: number): number | undefined {
  return value === undefined ? undefined : Math.round(value * parts) / parts;
}

/** `no fix`: allowed, without a current fix. */
export type Permission = 'off' | 'refused' | 'no fix' | 'fresh';

/** A person must change it in an app; asking every few seconds only fills the dish's log. */
export const refused_pause_ms = 10 * 60_000;

export class Permit {
  #refused_ms: number | undefined;

  /** `now_ms` is monotonic. */
  mayAsk(now_ms: number): boolean {
    return this.#refused_ms === undefined || now_ms - this.#refused_ms >= refused_pause_ms;
  }

  received(
    { refusal }: DishPosition,
    { now_ms, log }: { readonly now_ms: number; readonly log: DriverLog },
  ): Extract<Permission, 'refused' | 'no fix'> {
    const wasRefused = this.#refused_ms !== undefined;
    this.#refused_ms = refusal ? now_ms : undefined;
    if (!refusal) {
      if (wasRefused) log.info({}, texts.position_available);
      return 'no fix';
    }
    if (!wasRefused) {
      const remedy = refusal.denied ? texts.allow_position : texts.see_reason;
      log.warn({ reason: refusal.reason, remedy }, texts.position_refused);
    }
    return 'refused';
  }
}

// Commands of a dish: restart, stow, unstow. Each is sent once and completed when the dish itself shows its effect.

/** A dish starts in two to five minutes, with a new firmware in ten. */
const restart_timeout_ms = 900_000;
/** The motors need a minute. */
const stow_timeout_ms = 180_000;
const look_ms = 250;

/** The dish as the driver sees it; outlives a run, so that a command also survives the loss that it causes. */
class DishContact {
  /** Undefined while the dish is not reached. */
  dish: Dish | undefined;
  /** The newest status, and when it was read (monotonic). */
  status: DishStatus | undefined;
  read_ms = 0;
  /** It answered gRPC-Web last. */
  isWeb = false;
  /** A dish that is lost and found again is not asked each time. */
  readonly permit = new Permit();
}

/** The names end with the link, since two dishes serve one gateway. */
function dishCommands({ commands, link }: StarlinkOptions, contact: DishContact): readonly Command[] {
  const suffix = link.toLowerCase().replaceAll(/[^a-z0-9]+/gu, '_');
  return commands.map((order) =>
    defineCommand({
      name: `${order}_dish_${suffix}`,
      description: texts.orders[order](link),
      risk_level: 'high',
      timeout_ms: order === 'reboot' ? restart_timeout_ms : stow_timeout_ms,
      input: noInput,
      handle: async (_input, context) => carryOut(order, contact, context),
    }),
  );
}

async function carryOut(
  order: DishOrder,
  contact: DishContact,
  context: CommandContext,
): Promise<JsonObject> {
  const { dish, status: before } = contact;
  if (!dish || !before) throw new CommandRefused(notSent(texts.dish_absent));
  if (order === 'reboot' && before.uptime_s === undefined) throw new CommandRefused(notSent(texts.no_uptime));
  const begin_ms = performance.now();
  // A lost answer counts as accepted: a dish that goes down at once cannot answer. What follows decides.
  const refusal = await dish.order(order).catch((error: unknown) => {
    if (error instanceof DeviceUnreachable) return undefined;
    throw error;
  });
  if (refusal !== undefined) throw new CommandRefused(notSent(texts.order_refused(refusal)));
  context.progress(texts.order_accepted);
  while (!context.signal.aborted) {
    const { status, read_ms } = contact;
    // A status from before the order is no evidence.
    if (status && status !== before && isSeen(order, status, read_ms - begin_ms)) {
      return { after_s: Math.round((performance.now() - begin_ms) / 1_000) };
    }
    await sleep(look_ms, context.signal);
  }
  throw new CommandRefused(texts.effect_not_seen[order]);
}

/** `since_ms`: from the order to the status. A dish that is up for a shorter time has restarted. */
function isSeen(order: DishOrder, { uptime_s, outage }: DishStatus, since_ms: number): boolean {
  if (order === 'reboot') return uptime_s !== undefined && uptime_s * 1_000 < since_ms;
  return (outage === outage_stowed) === (order === 'stow');
}
