/** Reports cellular modems from ModemManager over D-Bus: their link, its operator, and the reason of a missing connection. */
import { type CellularModem, noFeeds } from '../../src/contract/feeds.ts';
import { defineDriver, type DriverHost } from '../../src/toolkit/driver/driver.ts';
import { DeviceUnreachable } from '../../src/platform/errors.ts';
import { sleep } from '../../src/platform/time.ts';
import { type Bus, type BusSignal, daemon, openBus } from '../../src/toolkit/device/dbus/bus.ts';
import { cellularOf } from './cellular.ts';
import { Radio } from './dbus/radio.ts';
import { linksOf, interfacesOf, isAbroad, ispOf } from './links.ts';
import { mm_path, readModems } from './dbus/manager.ts';
import { OfferedCommands } from './offered-commands.ts';
import { type ModemOptions, modemOptions } from './options.ts';
import { Positions } from './position/positions.ts';
import { mm, type Modem } from './dbus/properties.ts';
import { texts } from './texts.ts';
import { reasonOf, technologyOf } from './words.ts';

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
  const known = new Set<string>();
  const offered = new OfferedCommands(options, host);
  // Marks the driver as running: without a modem nothing else is reported.
  host.reportLocation(null);
  const ending = AbortSignal.any([host.signal, gone, bus.lost]);
  ending.addEventListener('abort', () => news.waking.abort(), { once: true });
  while (!ending.aborted) {
    news.waking = new AbortController();
    const modems = await readModems(bus);
    const links = linksOf(modems, options.interfaces);
    offered.update(bus, modems);
    for (const name of known) {
      if (!links.has(name))
        host.reportLink({ name, type: 'cellular', reason: texts.unplugged, cause: 'removed' });
    }
    for (const [name, knowledge] of links) {
      if (known.size < known_links_max) known.add(name);
      host.reportLink(knowledge);
    }
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
