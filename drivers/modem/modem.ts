/** Reports cellular modems from ModemManager over D-Bus: their link, its operator, and the reason of a missing connection. */
import { type CellularModem, noFeeds } from '../../src/contract/feeds.ts';
import { defineDriver, type DriverHost, type DriverLog, type Fix } from '../../src/toolkit/driver/driver.ts';
import { CommandRefused, DeviceUnreachable, notSent } from '../../src/platform/errors.ts';
import { day_ms, sleep } from '../../src/platform/time.ts';
import { type Bus, type BusSignal, daemon, openBus } from '../../src/toolkit/device/dbus/bus.ts';
import { cellularOf } from './cellular.ts';
import { Radio, refusalOf } from './dbus/radio.ts';
import { interfacesOf, ispOf, linksOf } from './links.ts';
import { mm_path, readLocation, readModems } from './dbus/manager.ts';
import { type ModemOptions, modemOptions } from './options.ts';
import { mm, type Modem } from './dbus/properties.ts';
import { texts } from './texts.ts';
import { isAbroad, reasonOf, technologyOf } from './words.ts';
import { z } from 'zod';
import type { JsonObject } from '../../src/contract/json.ts';
import { orderOnce } from '../../src/toolkit/device/dbus/order-once.ts';
import { type Command, type CommandContext, defineCommand } from '../../src/toolkit/driver/command.ts';

/** By options of the instance: a reset continues while the driver reconnects. */
const lists = new WeakMap<ModemOptions, ModemList>();

/** Offers the commands that are allowed for the modems that are there, again when there are others. */
class OfferedCommands {
  readonly #options: ModemOptions;
  readonly #host: DriverHost<typeof noFeeds>;
  readonly #list: ModemList;
  #offered = '';

  constructor(options: ModemOptions, host: DriverHost<typeof noFeeds>) {
    this.#options = options;
    this.#host = host;
    this.#list = lists.get(options) ?? { bus: undefined, modems: [] };
    lists.set(options, this.#list);
    host.signal.addEventListener('abort', () => (this.#list.bus = undefined), { once: true });
  }

  update(bus: Bus, modems: readonly Modem[]): void {
    this.#list.bus = bus;
    this.#list.modems = modems;
    if (!this.#options.commands.includes('reset')) return;
    const commands = resetCommands(this.#list, this.#options.interfaces);
    const schemas = JSON.stringify(commands.map(({ input_schema }) => input_schema));
    if (schemas === this.#offered) return;
    this.#offered = schemas;
    this.#host.serveGateway(commands);
  }
}

/** Modems are back after 20 to 60 s; a slow one with a SIM that is asked again takes two minutes. */
const reset_timeout_ms = 180_000;
const look_ms = 250;

/** What ModemManager lists now; outlives a run of the driver, so that a reset also survives its restart. */
interface ModemList {
  /** Undefined while ModemManager is not reached. */
  bus: Bus | undefined;
  modems: readonly Modem[];
}

/** The command for the modems that are listed, by the names of their interfaces; none while there are none. */
function resetCommands(list: ModemList, interfaces: Readonly<Record<string, string>>): Command[] {
  const [first, ...others] = new Set(list.modems.flatMap((modem) => interfacesOf(modem, interfaces)));
  if (first === undefined) return [];
  const input = z.strictObject({ interface: z.enum([first, ...others]).describe(texts.reset_interface) });
  const reset = defineCommand({
    name: 'reset_modem',
    description: texts.reset,
    risk_level: 'high',
    timeout_ms: reset_timeout_ms,
    input,
    handle: async (payload, context) => {
      const modem = list.modems.find((each) => interfacesOf(each, interfaces).includes(payload.interface));
      if (!modem || !list.bus) throw new CommandRefused(notSent(texts.modem_absent(payload.interface)));
      return resetModem({ list, bus: list.bus, modem, name: payload.interface }, context);
    },
  });
  return [reset];
}

interface Resetting {
  readonly list: ModemList;
  readonly bus: Bus;
  readonly modem: Modem;
  readonly name: string;
}

async function resetModem(
  { list, bus, modem, name }: Resetting,
  context: CommandContext,
): Promise<JsonObject> {
  const begin_ms = performance.now();
  const isBack = returnOf(modem, list);
  const call = { destination: mm, path: modem.path, interface: `${mm}.Modem`, member: 'Reset' };
  const reply = await orderOnce(bus, call);
  const refusal = reply.ok ? undefined : refusalOf(reply);
  // A modem that did not answer ModemManager any more may be restarting.
  if (!reply.ok && refusal !== 'silent') {
    const { reason } = reply;
    const sentence = refusal === 'forbidden' ? texts.reset_forbidden(reason) : texts.reset_refused(reason);
    throw new CommandRefused(notSent(sentence));
  }
  context.progress(texts.resetting);
  while (!context.signal.aborted) {
    if (isBack()) {
      return { interface: name, away_s: Math.round((performance.now() - begin_ms) / 1_000) };
    }
    await sleep(look_ms, context.signal);
  }
  throw new CommandRefused(texts.modem_not_back);
}

/**
 * Whether the modem is listed again, looked at now and then: as another object, or as the same once it was gone, since ModemManager counts
 * from 0 when it restarts. Without an IMEI, as for a failed modem, a modem counts that was not listed before.
 */
function returnOf(reset: Modem, list: ModemList): () => boolean {
  const identity = imeiOf(reset);
  const bus = list.bus;
  const others = list.modems.filter(({ path }) => path !== reset.path);
  const isOther = (each: Modem): boolean =>
    identity === undefined
      ? others.some((other) => other.path === each.path || (imeiOf(other) ?? '') === imeiOf(each))
      : imeiOf(each) !== identity;
  let wasGone = false;
  return () => {
    wasGone ||= list.bus !== bus || list.modems.every(({ path }) => path !== reset.path);
    if (list.bus === undefined) return false;
    return list.modems.some((each) => !isOther(each) && (wasGone || each.path !== reset.path));
  };
}

function imeiOf({ modem }: Modem): string | undefined {
  return modem.EquipmentIdentifier;
}

type Host = DriverHost<typeof noFeeds>;

/** Links that are still reported after their modem was removed; a gateway has fewer. */
const known_links_max = 32;

/** A modem that appears or disappears sends a burst of signals; one read after the burst is enough. */
const settle_ms = 250;

export const modem = defineDriver({ name: 'modem', feeds: noFeeds, options: modemOptions, run: runModem });

async function runModem(options: ModemOptions, host: Host): Promise<void> {
  const closing = new AbortController();
  const signal = AbortSignal.any([host.signal, closing.signal]);
  const news = { waking: new AbortController() };
  const owner = { name: '', changed: new AbortController() };
  const onSignal = ({ sender, member, body }: BusSignal): void => {
    const isOwner = member === 'NameOwnerChanged' && sender === daemon.destination && body[0] === mm;
    if (isOwner) owner.changed.abort();
    else if (sender === owner.name) news.waking.abort();
  };
  try {
    const bus = await openBus({
      address: options.bus,
      timeout_ms: options.timeout_s * 1_000,
      signal,
      onSignal,
    });
    // Subscribes before it asks for the owner, so that no change is missed.
    await bus.listen(`type='signal',sender='${daemon.destination}',member='NameOwnerChanged',arg0='${mm}'`);
    await bus.listen(`type='signal',sender='${mm}',path_namespace='${mm_path}'`);
    owner.name = await ownerOf(bus);
    await watch({ bus, news, gone: owner.changed.signal, options }, host);
  } catch (error) {
    if (!host.signal.aborted) throw error;
  } finally {
    closing.abort();
  }
}

/** Returns the unique name of ModemManager without starting it. Throws `DeviceUnreachable`. */
async function ownerOf(bus: Bus): Promise<string> {
  const reply = await bus.call({ ...daemon, member: 'GetNameOwner', signature: 's', body: [mm] });
  if (reply.ok && typeof reply.value === 'string') return reply.value;
  throw new DeviceUnreachable(texts.manager_missing);
}

interface Watched {
  readonly bus: Bus;
  /** Aborts when something has changed; replaced before each reading. */
  readonly news: { waking: AbortController };
  /** Aborts when ModemManager has stopped or restarted. */
  readonly gone: AbortSignal;
  readonly options: ModemOptions;
}

/** Reads everything after each change, and now and then in case a change was missed. */
async function watch({ bus, news, gone, options }: Watched, host: Host): Promise<void> {
  const pause_ms = (options.location ? options.location_interval_s : options.interval_s) * 1_000;
  const positions = new Positions(host.log);
  const radio = new Radio(options.signal_interval_s, host.log);
  const news_of_cells = new CellularNews();
  let known: ReadonlyMap<string, string | undefined> = new Map();
  const offered = new OfferedCommands(options, host);
  // Marks the driver as running: without a modem nothing else is reported.
  host.reportLocation(null);
  const ending = AbortSignal.any([host.signal, gone, bus.lost]);
  ending.addEventListener('abort', () => news.waking.abort(), { once: true });
  while (!ending.aborted) {
    news.waking = new AbortController();
    const modems = await readModems(bus);
    offered.update(bus, modems);
    known = reportLinks({ known, modems }, options, host);
    host.reportStatus(statusFacts(modems, options.interfaces));
    // The modems themselves are asked last: a modem that does not answer must not delay what ModemManager knows.
    const cellular = cellularOf(await radio.read(bus, modems), options.interfaces);
    if (news_of_cells.isDue(cellular)) {
      host.publishGateway('cellular', { modems: [...cellular], timestamp: new Date().toISOString() });
    }
    const fix = options.location ? await positions.read(bus, modems) : undefined;
    if (fix) host.reportLocation(fix);
    await sleep(pause_ms, news.waking.signal);
    await sleep(settle_ms, ending);
  }
  if (host.signal.aborted) return;
  if (gone.aborted) throw new DeviceUnreachable(texts.manager_ended);
  bus.lost.throwIfAborted();
}

interface Listed {
  /** The IMEI of the modem that had each link last. */
  readonly known: ReadonlyMap<string, string | undefined>;
  readonly modems: readonly Modem[];
}

/** Reports the links of the modems, and those that no modem has any more. Returns all of them. */
function reportLinks({ known, modems }: Listed, options: ModemOptions, host: Host): Listed['known'] {
  const links = linksOf(modems, options.interfaces);
  for (const [name, imei] of known) {
    if (links.has(name)) continue;
    const reason = reasonOfAbsence({ name, imei, modems }, options);
    host.reportLink({ name, type: 'cellular', reason, cause: 'removed' });
  }
  for (const knowledge of links.values()) host.reportLink(knowledge);
  const owned = modems.flatMap((modem) =>
    interfacesOf(modem, options.interfaces).map((name) => [name, imeiOf(modem) ?? known.get(name)] as const),
  );
  return new Map([...known, ...owned].slice(0, known_links_max));
}

interface Absent {
  readonly name: string;
  readonly imei: string | undefined;
  readonly modems: readonly Modem[];
}

/**
 * Why no modem has the link. The kernel gives a modem that comes back another name while the old one is in use
 * (https://github.com/siemens/meta-iot2050/issues/460, https://github.com/NixOS/nixpkgs/issues/22533), and a multiplexed connection has an
 * interface of its own (https://github.com/openwrt/packages/issues/23550).
 */
function reasonOfAbsence({ name, imei, modems }: Absent, { interfaces }: ModemOptions): string {
  const found = imei === undefined ? undefined : modems.find((each) => imeiOf(each) === imei);
  const now = found && interfacesOf(found, interfaces)[0];
  if (now === undefined) return texts.unplugged;
  return found?.modem.Ports.some(([port]) => port === name) ? texts.multiplexed(now) : texts.renamed(now);
}

/** Signal figures change all the time; a message is due at once when anything else did. */
const cellular_floor_ms = 55_000;

class CellularNews {
  #published: { readonly text: string; readonly at_ms: number } | undefined;

  /** With the first report of modems, with each change of what is no figure, and now and then. */
  isDue(modems: readonly CellularModem[]): boolean {
    if (modems.length === 0 && !this.#published) return false;
    const text = JSON.stringify(modems, (key, value: unknown) => (figures.has(key) ? undefined : value));
    const now_ms = performance.now();
    const isDue = text !== this.#published?.text || now_ms - this.#published.at_ms >= cellular_floor_ms;
    if (isDue) this.#published = { text, at_ms: now_ms };
    return isDue;
  }
}

const figures: ReadonlySet<string> = new Set(['signal_pct', 'rssi_dbm', 'rsrp_dbm', 'rsrq_db', 'snr_db']);

/** Digits of an IMEI that are shown: enough to distinguish two modems, too few to track one. */
const imei_digits = 4;

/** One line for each modem, by its interface: `wwan0: connected, 4G, 70 %, Telia, RM520N-GL, IMEI ...4321`. */
export function statusFacts(
  modems: readonly Modem[],
  interfaces: Readonly<Record<string, string>>,
): Readonly<Record<string, string | number>> {
  const lines = modems.map((modem) => {
    const name = interfacesOf(modem, interfaces)[0] ?? `modem ${modem.path.split('/').at(-1) ?? ''}`;
    return [name, lineOf(modem)] as const;
  });
  return { modems: modems.length, ...Object.fromEntries(lines) };
}

function lineOf(read: Modem): string {
  const { modem, network, sim } = read;
  const isp = ispOf(read);
  const quality = modem.SignalQuality?.[0];
  const imei = modem.EquipmentIdentifier;
  return [
    reasonOf(read)?.replace('modem: ', '') ?? 'connected',
    technologyOf(read),
    quality === undefined ? undefined : `${quality} %`,
    isp,
    isAbroad(network.RegistrationState) ? sim.OperatorName && `SIM of ${sim.OperatorName}` : undefined,
    modem.Model,
    imei === undefined ? undefined : `IMEI ...${imei.slice(-imei_digits)}`,
  ]
    .filter((part) => part !== undefined && part !== null)
    .join(', ');
}

// Reads the position from the modem whose satellite receiver is on, and reports once when there is none to read.

class Positions {
  readonly #log: DriverLog;
  /** By object path of the modem; removed with it. */
  #fixes: ReadonlyMap<string, Fixes> = new Map();
  /** The reason that was logged last. */
  #logged: string | undefined;

  constructor(log: DriverLog) {
    this.#log = log;
  }

  /** Reads a new fix from the first modem that has one. Throws `DeviceUnreachable`. */
  async read(bus: Bus, modems: readonly Modem[]): Promise<Fix | undefined> {
    this.#fixes = new Map(modems.map(({ path }) => [path, this.#fixes.get(path) ?? new Fixes()]));
    const receivers = modems.filter(({ location }) => hasGps(location.Enabled));
    if (modems.length > 0) this.#logChange(receivers.length > 0 ? undefined : texts.receivers_off);
    for (const { path } of receivers) {
      const answer = await readLocation(bus, path, gps_raw_source);
      if ('refused' in answer) {
        this.#logChange(answer.refused);
        continue;
      }
      const fix = this.#fixes.get(path)?.read(answer.value, Date.now());
      if (fix) return fix;
    }
    return undefined;
  }

  #logChange(reason: string | undefined): void {
    if (reason === this.#logged) return;
    this.#logged = reason;
    const remedy = texts.switch_receiver_on;
    if (reason === undefined) this.#log.info({}, texts.position_available);
    else this.#log.warn({ reason, remedy }, texts.position_unavailable);
  }
}

function hasGps(enabled = 0): boolean {
  return Math.floor(enabled / gps_raw_source) % 2 === 1;
}

/** `MMModemLocationSource`: coordinates from satellites. Cell ids are not a position. */
const gps_raw_source = 2;

const gpsRaw = z.looseObject({
  'utc-time': z.string().max(32),
  latitude: z.number().min(-90).max(90),
  longitude: z.number().min(-180).max(180),
});

/** The receiver reports only the time of day: a time slightly in the future means now, any other one before midnight. */
const ahead_max_ms = 60_000;
/** Age of a first fix at least: only its change shows that it is not one of another day. */
const first_age_min_ms = 60_000;

/** One for each modem. */
export class Fixes {
  #last: string | undefined;

  /**
   * Returns the fix with its age; undefined when there is none or it was read before. The first fix is never fresh, since ModemManager
   * keeps the last one of a receiver that sees nothing; later ones are dated by when they changed, which needs no correct clock. The altitude is left out: it is above mean sea level.
   */
  read(raw: unknown, time_ms: number): Fix | undefined {
    const fix = gpsRaw.safeParse(raw).data;
    if (!fix || (fix.latitude === 0 && fix.longitude === 0)) return undefined;
    const { latitude, longitude } = fix;
    const text = `${fix['utc-time']} ${latitude} ${longitude}`;
    if (text === this.#last) return undefined;
    const age_ms = this.#last === undefined ? ageOf(fix['utc-time'], time_ms) : 0;
    if (age_ms === undefined) return undefined;
    this.#last = text;
    return { latitude, longitude, altitude: null, source: 'cellular', age_ms };
  }
}

/** From `HHMMSS.ss`; undefined when that is no time. */
function ageOf(utc_time: string, time_ms: number): number | undefined {
  const [, hours, minutes, seconds] = /^(\d{2})(\d{2})(\d{2}(?:\.\d+)?)$/u.exec(utc_time) ?? [];
  if (hours === undefined) return undefined;
  const of_day_ms = (Number(hours) * 3_600 + Number(minutes) * 60 + Number(seconds)) * 1_000;
  const age_ms = (((time_ms - of_day_ms) % day_ms) + day_ms) % day_ms;
  return Math.max(age_ms > day_ms - ahead_max_ms ? 0 : age_ms, first_age_min_ms);
}
