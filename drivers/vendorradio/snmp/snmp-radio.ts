/** A radio over SNMP: the common minimum of facts. Read only, without commands. */
import type { DeviceName } from '../../../src/toolkit/device/device-name.ts';
import { readSecretFile } from '../../../src/toolkit/device/secret-file.ts';
import type { DriverLog } from '../../../src/toolkit/driver/driver.ts';
import { credentialsHash, type LoginGuard } from '../../../src/toolkit/device/login-guard.ts';
import { DeviceUnreachable } from '../../../src/platform/errors.ts';
import type { Limits } from '../limits.ts';
import { oid_names, type OidName, portOf, type SnmpRadio, type VendorradioOptions } from '../options.ts';
import { dbmOf, type Reading, type Station, unknown_link, unknown_station } from '../reading.ts';
import { openSnmp, type SnmpLogin, SnmpRefused, type SnmpSession, type SnmpValue } from './snmp-session.ts';
import type { Known, RadioSource } from '../source.ts';
import { texts } from '../texts.ts';

interface SnmpParts {
  readonly radio: SnmpRadio;
  readonly name: DeviceName;
  readonly options: VendorradioOptions;
  readonly limits: Limits;
  readonly log: DriverLog;
  readonly guard: LoginGuard;
}

/** Of the table of interfaces. */
interface Row {
  readonly index: string;
  readonly name: string | null;
  readonly type: SnmpValue | undefined;
}

interface Found {
  readonly session: SnmpSession;
  /** Hash. */
  readonly credentials: string;
  readonly preset: Preset;
  /** The interface that is counted; undefined where none counts what goes over the air. */
  readonly counted: Row | undefined;
  readonly figures: Readonly<Partial<Record<OidName, Scaled>>>;
}

export function snmpSource({ radio, name, options, limits, log, guard }: SnmpParts): RadioSource {
  let found: Found | undefined;
  let last: Reading | undefined;
  let isClosed = false;
  let isWarned = false;
  const leave = (): void => {
    found?.session.close();
    found = undefined;
    last = undefined;
  };
  return {
    poll_ms: options.snmp_poll_s * 1_000,
    async connect() {
      leave();
      const login = await loginOf(radio);
      if (login.version !== '3' && !isWarned) {
        const text = login.community === 'public' ? texts.snmp_public : texts.snmp_clear;
        log.warn({ radio: radio.name, version: login.version }, text);
        isWarned = true;
      }
      if (isClosed) throw new DeviceUnreachable(texts.connector_stopping);
      const credentials = credentialsOf(login);
      guard.admit(credentials);
      const session = openSnmp(radio.host, portOf(radio), login, { limits, name });
      try {
        const { known, ...about } = await describe(session, radio);
        await guard.accept(credentials);
        if (isClosed) throw new DeviceUnreachable(texts.connector_stopping);
        found = { session, credentials, ...about };
        return known;
      } catch (error) {
        session.close();
        throw error instanceof SnmpRefused ? await guard.refuse(credentials, error.message) : error;
      }
    },
    async poll() {
      const about = found;
      if (!about) throw new DeviceUnreachable(texts.not_identified);
      try {
        const now = await read(about);
        const newer = stands(now, last) ? await newerOf(about) : undefined;
        last = newer ? undefined : now;
        if (!newer) return now;
        if (found === about) found = { ...about, counted: newer };
        return { ...now, link: { ...now.link, tx_bytes: null, rx_bytes: null } };
      } catch (error) {
        // It accepted them a moment ago: an agent that starts may not have read its users yet.
        throw error instanceof SnmpRefused ? await guard.refuse(about.credentials, error.message) : error;
      }
    },
    farewell: async () => undefined,
    close() {
      isClosed = true;
      leave();
    },
  };
}

function credentialsOf(login: SnmpLogin): string {
  if (login.version !== '3') return credentialsHash('', login.community);
  const { username, auth, priv } = login;
  return credentialsHash(username, JSON.stringify([auth, priv]));
}

async function loginOf(radio: SnmpRadio): Promise<SnmpLogin> {
  const { version, username = '', auth_password_file, priv_password_file } = radio;
  if (version !== '3') {
    return { version, community: await readSecretFile('community_file', radio.community_file ?? '') };
  }
  const auth = auth_password_file && {
    protocol: radio.auth_protocol,
    key: await readSecretFile('auth_password_file', auth_password_file),
  };
  const priv = priv_password_file && {
    protocol: radio.priv_protocol,
    key: await readSecretFile('priv_password_file', priv_password_file),
  };
  return { version, username, auth: auth || undefined, priv: priv || undefined };
}

async function describe(session: SnmpSession, radio: SnmpRadio) {
  const about = await session.get([oid.sysDescr, oid.sysObjectID, oid.sysName, airos_probe, airfiber_probe]);
  if (about.size === 0) throw new DeviceUnreachable(texts.snmp_nothing_readable);
  const preset = presetOf(radio.preset, about);
  const { counted, mac } = await interfaceOf(session, radio, preset);
  const figures: Partial<Record<OidName, Scaled>> = { ...preset.oids };
  for (const name of oid_names) {
    const own = radio.oids[name];
    if (own !== undefined) figures[name] = typeof own === 'string' ? { oid: own, scale: 1 } : own;
  }
  const known: Known = {
    identity: {
      mac,
      hostname: textOf(about.get(oid.sysName)),
      vendor: preset.vendor,
      model: null,
      firmware: textOf(about.get(oid.sysDescr)),
      serial: null,
    },
    commands: [],
  };
  return { known, preset, counted, figures };
}

/** ifType values of IANA. */
const if_type = { ethernet: 6, wifi: 71 } as const;

async function interfaceOf(session: SnmpSession, { device, identity }: SnmpRadio, preset: Preset) {
  const addresses = await session.column(oid.ifPhysAddress);
  const rows = await rowsOf(session);
  const macOf = ({ index }: Row): string | undefined => macOfBytes(addresses.get(index));
  if (rows.length === 0) throw new DeviceUnreachable(texts.snmp_no_interfaces);
  const first = (type: number) => rows.find((row) => row.type === type && macOf(row) !== undefined);
  const row =
    device === undefined
      ? (first(if_type.wifi) ?? first(if_type.ethernet))
      : rows.find(({ name }) => name === device);
  if (!row) {
    // Temporary: agents answer before their interfaces are up.
    throw new DeviceUnreachable(
      device === undefined
        ? texts.snmp_no_interface
        : texts.snmp_no_such_interface(device, rows.map(({ name }) => name).join(', ')),
    );
  }
  const mac = identity ?? macOf(row);
  if (mac === undefined) throw new DeviceUnreachable(texts.snmp_no_mac(row.name ?? 'its interface'));
  if (device !== undefined || preset.counts === undefined) return { counted: latest(rows, row), mac };
  // The address stays that of the row: an entry is bound to it.
  const air = rows.find(({ name }) => name === preset.counts);
  return { counted: air && latest(rows, air), mac };
}

async function rowsOf(session: SnmpSession): Promise<readonly Row[]> {
  const names = await session.column(oid.ifDescr);
  const types = await session.column(oid.ifType);
  return [...names].map(([index, name]) => ({ index, name: textOf(name), type: types.get(index) }));
}

/**
 * An interface that is made anew, as Wi-Fi with each change of its settings, is a new row; some agents keep the old one, whose counters
 * stand (openwrt/packages#2397, monitoring-plugins/monitoring-plugins#1323).
 */
function latest(rows: readonly Row[], { name, type }: Row): Row | undefined {
  return rows.findLast((row) => row.name === name && row.type === type);
}

/** Whether the counters of the interface stand, or are gone. */
function stands({ link: now }: Reading, last: Reading | undefined): boolean {
  if (!last) return false;
  return now.rx_bytes === last.link.rx_bytes && now.tx_bytes === last.link.tx_bytes;
}

/** The row of the interface where it is another one by now. */
async function newerOf({ session, counted }: Found): Promise<Row | undefined> {
  const newer = counted && latest(await rowsOf(session), counted);
  return newer?.index === counted?.index ? undefined : newer;
}

async function read({ session, preset, counted, figures }: Found): Promise<Reading> {
  const index = counted?.index;
  const wide = { rx: `${oid.ifHCInOctets}.${index}`, tx: `${oid.ifHCOutOctets}.${index}` };
  const narrow = { rx: `${oid.ifInOctets}.${index}`, tx: `${oid.ifOutOctets}.${index}` };
  const counters = [...(session.hasCounter64 ? Object.values(wide) : []), ...Object.values(narrow)];
  const values = await session.get([
    oid.hrSystemUptime,
    ...(index === undefined ? [] : counters),
    ...Object.values(figures).map((each) => each.oid),
  ]);
  const bytes = (way: 'rx' | 'tx'): number | null =>
    counterOf(values.get(wide[way])) ?? counterOf(values.get(narrow[way]));
  const loads = [...(await session.column(oid.hrProcessorLoad)).values()].filter(
    (each) => typeof each === 'number',
  );
  const figure = (name: OidName): number | null => {
    const scaled = figures[name];
    const value = scaled && numberOf(values.get(scaled.oid));
    return scaled && value !== undefined && value !== null ? value * scaled.scale : null;
  };
  const ticks = numberOf(values.get(oid.hrSystemUptime));
  return {
    at_mono_ms: performance.now(),
    source: 'snmp',
    protocol: null,
    link: {
      ...unknown_link,
      rssi: dbmOf(figure('rssi')),
      remote_rssi: dbmOf(figure('remote_rssi')),
      noise: dbmOf(figure('noise')),
      freq_mhz: above0(figure('freq_mhz')),
      bandwidth_mhz: above0(figure('bandwidth_mhz')),
      txpower_dbm: figure('txpower_dbm'),
      quality_pct: percentOf(figure('quality_pct')),
      tx_rate_bps: above0(figure('tx_rate_bps')),
      rx_rate_bps: above0(figure('rx_rate_bps')),
      tx_bytes: bytes('tx'),
      rx_bytes: bytes('rx'),
      isNarrow: !values.has(wide.rx) || !values.has(wide.tx),
    },
    stations: await stations(session, preset),
    health: {
      uptime_s: ticks === null ? null : Math.floor(ticks / 100),
      cpu_pct:
        loads.length === 0 ? null : percentOf(loads.reduce((sum, load) => sum + load, 0) / loads.length),
      cpu_ticks: null,
      mem_pct: null,
      temperature_c: figure('temperature_c'),
      voltage: above0(figure('voltage')),
    },
    position: null,
  };
}

async function stations(
  session: SnmpSession,
  { stations: table }: Preset,
): Promise<readonly Station[] | undefined> {
  if (!table) return undefined;
  const macs = table.mac === undefined ? undefined : await session.column(table.mac);
  const rssi = await session.column(table.rssi);
  const noise = table.noise === undefined ? new Map<string, SnmpValue>() : await session.column(table.noise);
  const tx = await session.column(table.tx_rate_bps);
  const rx = await session.column(table.rx_rate_bps);
  return [...(macs ?? rssi).keys()].flatMap((row) => {
    const mac = macs ? macOfBytes(macs.get(row)) : macOfIndex(row);
    if (mac === undefined) return [];
    return [
      {
        ...unknown_station,
        mac,
        rssi: dbmOf(numberOf(rssi.get(row))),
        noise: dbmOf(numberOf(noise.get(row))),
        tx_rate_bps: above0(numberOf(tx.get(row))),
        rx_rate_bps: above0(numberOf(rx.get(row))),
        hops: 'direct' as const,
      },
    ];
  });
}

function textOf(value: SnmpValue | undefined): string | null {
  const text = Buffer.isBuffer(value) ? value.toString('utf8') : value;
  return typeof text === 'string' && text.trim() !== '' ? text.trim().slice(0, 200) : null;
}

/** Some agents write numbers as texts. */
function numberOf(value: SnmpValue | undefined): number | null {
  if (typeof value === 'number') return value;
  const text = textOf(value);
  const read = text === null ? NaN : Number(text);
  return Number.isFinite(read) ? read : null;
}

/** Some agents write counters of 32 bits as signed numbers. */
function counterOf(value: SnmpValue | undefined): number | null {
  const count = numberOf(value);
  return count !== null && count < 0 ? count + 2 ** 32 : count;
}

/** Six bytes, or a text with colons, as some agents write. */
function macOfBytes(value: SnmpValue | undefined): string | undefined {
  if (!Buffer.isBuffer(value)) return undefined;
  const text =
    value.length === 6 ? value.toString('hex').replaceAll(/(..)(?!$)/gu, '$1:') : value.toString('latin1');
  const mac = text.toLowerCase();
  return /^(?:[0-9a-f]{2}:){5}[0-9a-f]{2}$/u.test(mac) && mac !== '00:00:00:00:00:00' ? mac : undefined;
}

/** Of a row whose index begins with the six bytes of an address. */
function macOfIndex(row: string): string | undefined {
  const numbers = row.split('.').slice(0, 6).map(Number);
  return numbers.length === 6 && numbers.every((each) => each <= 255)
    ? macOfBytes(Buffer.from(numbers))
    : undefined;
}

function above0(value: number | null): number | null {
  return value !== null && value > 0 ? value : null;
}

function percentOf(value: number | null): number | null {
  return value !== null && value >= 0 && value <= 100 ? value : null;
}

// OIDs of each fact, by vendor. The standard ones are RFC 3418, RFC 2863 and RFC 2790.

export const oid = {
  sysDescr: '1.3.6.1.2.1.1.1.0',
  sysObjectID: '1.3.6.1.2.1.1.2.0',
  sysName: '1.3.6.1.2.1.1.5.0',
  /** Age of the system; sysUpTime is that of the agent. */
  hrSystemUptime: '1.3.6.1.2.1.25.1.1.0',
  hrProcessorLoad: '1.3.6.1.2.1.25.3.3.1.2',
  ifDescr: '1.3.6.1.2.1.2.2.1.2',
  ifType: '1.3.6.1.2.1.2.2.1.3',
  ifPhysAddress: '1.3.6.1.2.1.2.2.1.6',
  /** Of 32 bits; all that agents of version 1 have, and some others. */
  ifInOctets: '1.3.6.1.2.1.2.2.1.10',
  ifOutOctets: '1.3.6.1.2.1.2.2.1.16',
  ifHCInOctets: '1.3.6.1.2.1.31.1.1.1.6',
  ifHCOutOctets: '1.3.6.1.2.1.31.1.1.1.10',
} as const;

export interface Scaled {
  readonly oid: string;
  readonly scale: number;
}

interface StationTable {
  /** Left out: the address is the index of the row. */
  readonly mac?: string;
  readonly rssi: string;
  readonly noise?: string;
  readonly tx_rate_bps: string;
  readonly rx_rate_bps: string;
}

export interface Preset {
  readonly vendor: string | null;
  readonly oids: Readonly<Partial<Record<OidName, Scaled>>>;
  /** Columns of a table of stations. */
  readonly stations: StationTable | undefined;
  /**
   * Name of the interface to the air, where its type does not show it; null where none counts what goes there. Another
   * port counts the other way round: what it receives is what the radio sends.
   */
  readonly counts?: string | null;
}

const ubnt = '1.3.6.1.4.1.41112.1.4';
const airfiber = '1.3.6.1.4.1.41112.1.3';
const mikrotik = '1.3.6.1.4.1.14988.1';
const plain = (text: string): Scaled => ({ oid: text, scale: 1 });

const generic: Preset = { vendor: null, oids: {}, stations: undefined };

const presets: Readonly<Record<Exclude<SnmpRadio['preset'], 'auto'>, Preset>> = {
  generic,
  /** Its snmpd has no wireless MIB, only status and throughput. */
  openwrt: generic,
  airos: {
    vendor: 'Ubiquiti',
    oids: {
      rssi: plain(`${ubnt}.5.1.5.1`),
      noise: plain(`${ubnt}.5.1.8.1`),
      quality_pct: plain(`${ubnt}.5.1.7.1`),
      tx_rate_bps: plain(`${ubnt}.5.1.9.1`),
      rx_rate_bps: plain(`${ubnt}.5.1.10.1`),
      bandwidth_mhz: plain(`${ubnt}.5.1.14.1`),
      freq_mhz: plain(`${ubnt}.1.1.4.1`),
    },
    stations: {
      mac: `${ubnt}.7.1.1`,
      rssi: `${ubnt}.7.1.3`,
      noise: `${ubnt}.7.1.4`,
      tx_rate_bps: `${ubnt}.7.1.11`,
      rx_rate_bps: `${ubnt}.7.1.12`,
    },
    // All its interfaces are of type Ethernet.
    counts: 'ath0',
  },
  airfiber: {
    vendor: 'Ubiquiti',
    oids: {
      rssi: plain(`${airfiber}.2.1.11.1`),
      remote_rssi: plain(`${airfiber}.2.1.19.1`),
      tx_rate_bps: plain(`${airfiber}.2.1.6.1`),
      rx_rate_bps: plain(`${airfiber}.2.1.5.1`),
      temperature_c: plain(`${airfiber}.2.1.8.1`),
    },
    stations: undefined,
    // Its interfaces see its management alone.
    counts: null,
  },
  mikrotik: {
    vendor: 'MikroTik',
    oids: {},
    stations: {
      rssi: `${mikrotik}.1.1.2.1.3`,
      tx_rate_bps: `${mikrotik}.1.1.2.1.8`,
      rx_rate_bps: `${mikrotik}.1.1.2.1.9`,
    },
  },
};

const airos_probe = `${ubnt}.1.1.4.1`;
const airfiber_probe = `${airfiber}.2.1.11.1`;

/** Ubiquiti's identify themselves as net-snmp or with frogfoot's old number on some models, so their own trees are checked too. */
function presetOf(chosen: SnmpRadio['preset'], about: ReadonlyMap<string, SnmpValue>): Preset {
  if (chosen !== 'auto') return presets[chosen];
  const object_id = textOf(about.get(oid.sysObjectID)) ?? '';
  if (about.has(airfiber_probe)) return presets.airfiber;
  if (about.has(airos_probe) || object_id.startsWith('1.3.6.1.4.1.41112')) return presets.airos;
  return object_id.startsWith(mikrotik) ? presets.mikrotik : presets.generic;
}
