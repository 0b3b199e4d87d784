/** What a simulated radio is and does behind its ubus: Wi-Fi, stations, files, and its settings. */
import { z } from 'zod';

export interface SimStation {
  mac: string;
  signal?: number;
  noise?: number;
  inactive: number;
  /** Only heard while the radio is on this channel. */
  channel?: number;
  rx?: Readonly<Record<string, unknown>>;
  tx?: Readonly<Record<string, unknown>>;
}

/** Number, MHz, whether it may not be sent on. */
const channels: readonly (readonly [number, number, boolean])[] = [
  [1, 2412, false],
  [6, 2437, false],
  [36, 5180, false],
  [40, 5200, false],
  [44, 5220, false],
  [52, 5260, true],
];
const powers = [
  { dbm: 10, mw: 10 },
  { dbm: 20, mw: 100 },
];

export class SimWifi {
  mac: string;
  mode = 'Mesh Point';
  ssid = 'field';
  hostname = 'mast';
  noise = -95;
  uptime_s = 5_000;
  isMeshRider = false;
  /** A restart was requested. */
  isRebooting = false;
  stations: SimStation[] = [
    { mac: '02:00:00:AA:BB:02', signal: -61, noise: -95, inactive: 40, ...usualRates() },
  ];
  readonly settings = new SimSettings();
  readonly files = new Map<string, string>([
    ['/proc/stat', 'cpu  100 0 100 800 0 0 0 0 0 0\n'],
    ['/sys/class/leds/green:status/trigger', 'none timer [heartbeat] default-on\n'],
  ]);
  /** What has been written, in order. */
  readonly written: string[] = [];

  constructor(mac: string) {
    this.mac = mac;
    this.files.set('/sys/class/net/wlan0/address', `${mac.toLowerCase()}\n`);
  }

  get channel(): number {
    return Number(this.settings.active['channel']);
  }

  /** Undefined: the object or method does not exist. */
  call(sid: string, object: string, method: string, args: Args): SimResult | undefined {
    switch (object) {
      case 'uci':
        return this.settings.call(sid, method, args);
      case 'file':
        return this.#file(method, args);
      case 'iwinfo':
        return method !== 'devices' && args['device'] !== 'wlan0' ? [4] : this.#iwinfo(method);
      case 'system':
        return this.#system(method);
      case 'message-system':
        if (args['frequency'] === 5_200) {
          this.settings.active = { ...this.settings.active, channel: '40' };
        }
        return [0];
      default:
        return undefined;
    }
  }

  #system(method: string): SimResult | undefined {
    const memory = { total: 1_000, free: 1, available: 600 };
    switch (method) {
      case 'board':
        return [0, this.#board()];
      case 'info':
        return [0, { uptime: this.uptime_s, load: [655, 0, 0], memory }];
      case 'reboot':
        this.isRebooting = true;
        return [0];
      default:
        return undefined;
    }
  }

  #board() {
    return {
      hostname: this.hostname,
      model: 'Wi-Fi board',
      board_name: 'vendor,board',
      kernel: '6.6.73',
      release: { distribution: 'OpenWrt', version: '24.10.0' },
      ...(this.isMeshRider ? { sub_model: 'RM-915-2J-XM' } : {}),
    };
  }

  #iwinfo(method: string): SimResult | undefined {
    switch (method) {
      case 'devices':
        return [0, { devices: ['wlan0'] }];
      case 'info':
        return [0, this.#info()];
      case 'assoclist':
        return results(this.stations.filter(({ channel }) => (channel ?? this.channel) === this.channel));
      case 'survey':
        return results([{ mhz: this.#mhz(), noise: this.noise, active_time: 1_000, busy_time: 250 }]);
      case 'freqlist':
        return results(channels.map(([channel, mhz, restricted]) => ({ channel, mhz, restricted })));
      case 'txpowerlist':
        return results(powers);
      case 'scan':
        return results([
          { ssid: 'other', bssid: '02:00:00:00:00:99', mode: 'Master', channel: 40, signal: -70 },
        ]);
      default:
        return undefined;
    }
  }

  #info() {
    const { txpower = '17', htmode } = this.settings.active;
    return {
      mode: this.mode,
      ssid: this.ssid,
      bssid: this.mac,
      channel: this.channel,
      frequency: this.#mhz(),
      txpower: Number(txpower),
      signal: -60,
      noise: this.noise,
      bitrate: 72_200,
      quality: 49,
      quality_max: 70,
      htmode,
      htmodelist: ['HT20', 'HT40', 'VHT20', 'VHT80'],
      hardware: { name: 'Generic' },
    };
  }

  #mhz(): number {
    return channels.find(([channel]) => channel === this.channel)?.[1] ?? 0;
  }

  #file(method: string, { path, data }: Args): SimResult {
    const known = this.files.get(String(path));
    if (known === undefined) return [4];
    if (method === 'read') return [0, { data: known }];
    const chosen = String(data);
    this.written.push(chosen);
    this.files.set(String(path), known.replaceAll(/[[\]]/gu, '').replace(chosen, `[${chosen}]`));
    return [0];
  }
}

function results(rows: readonly unknown[]): SimResult {
  return [0, { results: rows }];
}

export function usualRates() {
  return {
    rx: { drop_misc: 3, packets: 10, bytes: 1_000, rate: 65_000, mcs: 6 },
    tx: { failed: 1, retries: 12, packets: 20, bytes: 2_000, rate: 72_200, mcs: 7 },
  };
}

// uci of a simulated radio: settings staged by session, and one change at a time that rolls back unless it is confirmed.

type Settings = Readonly<Record<string, string>>;

const values = z.record(z.string(), z.string()).catch({});

export class SimSettings {
  /** What is written. */
  saved: Settings = { channel: '36', htmode: 'HT20', txpower: '20' };
  /** What the Wi-Fi works with. */
  active: Settings = { ...this.saved };
  /** Whether a change has any effect on the Wi-Fi. */
  isObedient = true;
  /** By session: what is staged there belongs to it alone; null is deleted. */
  readonly #staged = new Map<string, Readonly<Record<string, string | null>>>();
  #pending: { readonly old: Settings; readonly timer: NodeJS.Timeout } | undefined;

  get isPending(): boolean {
    return this.#pending !== undefined;
  }

  /** Ends the wait for a confirmation, with the power of the radio. */
  stop(): void {
    clearTimeout(this.#pending?.timer);
  }

  call(sid: string, method: string, args: Args): SimResult {
    const staged = this.#staged.get(sid) ?? {};
    switch (method) {
      case 'get':
        return [0, { values: this.#sections() }];
      case 'set':
        if (args['section'] !== 'radio0') return [4];
        this.#staged.set(sid, { ...staged, ...values.parse(args['values']) });
        return [0];
      case 'delete':
        this.#staged.set(sid, { ...staged, [String(args['option'])]: null });
        return [0];
      case 'revert':
        this.#staged.delete(sid);
        return [0];
      case 'apply':
        return this.#apply(sid, Number(args['timeout']));
      case 'confirm':
        return this.#confirm();
      case 'rollback':
        return this.#rollback();
      default:
        return [3];
    }
  }

  #sections() {
    const radio0 = { '.type': 'wifi-device', '.name': 'radio0', ...this.saved };
    const mesh0 = { '.type': 'wifi-iface', device: 'radio0', ifname: 'wlan0', key: 'never-to-be-told' };
    return { radio0, mesh0 };
  }

  #apply(sid: string, timeout_s: number): SimResult {
    if (this.#pending) return [6];
    const old = this.saved;
    const wanted: Readonly<Record<string, string | null>> = { ...old, ...this.#staged.get(sid) };
    this.saved = Object.fromEntries(
      Object.entries(wanted).flatMap(([option, value]) => (value === null ? [] : [[option, value]])),
    );
    this.#staged.delete(sid);
    if (this.isObedient) this.active = this.saved;
    this.#pending = { old, timer: setTimeout(() => this.#rollback(), timeout_s * 1_000) };
    return [0];
  }

  #confirm(): SimResult {
    if (!this.#pending) return [5];
    clearTimeout(this.#pending.timer);
    this.#pending = undefined;
    return [0];
  }

  #rollback(): SimResult {
    if (!this.#pending) return [5];
    clearTimeout(this.#pending.timer);
    this.saved = this.#pending.old;
    this.active = this.saved;
    this.#pending = undefined;
    return [0];
  }
}

// The shapes of ubus over JSON-RPC, as uhttpd answers them.

/** Status first, then the body where there is one. */
export type SimResult = readonly unknown[];
export type SimReply = { readonly result: unknown } | { readonly error: SimError };
export interface SimError {
  readonly code: number;
  readonly message: string;
}

/** Arguments of a call. */
export type Args = Readonly<Record<string, unknown>>;

/** All of them come with HTTP status 200. */
export const sim_errors = {
  parse: { code: -32_700, message: 'Parse error' },
  no_object: { code: -32_000, message: 'Object not found' },
  denied: { code: -32_002, message: 'Access denied' },
  timeout: { code: -32_003, message: 'ubus request timed out' },
} as const;

export const no_session = '0'.repeat(32);

export const simRequest = z.looseObject({
  id: z.unknown(),
  method: z.string(),
  params: z.array(z.unknown()).optional(),
});
export type SimRequest = z.output<typeof simRequest>;

/** Session, object, method, arguments: with fewer of them a call is no call. */
export const callParams = z
  .tuple([z.string(), z.string(), z.string(), z.record(z.string(), z.unknown())])
  .rest(z.unknown());
