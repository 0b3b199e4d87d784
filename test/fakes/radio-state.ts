/** What a fake radio is and does behind its ubus: Wi-Fi, stations, files, and uci with one change at a time that waits for its confirmation. */

export interface FakeStation {
  mac: string;
  signal?: number;
  noise?: number;
  inactive: number;
  /** Only heard while the radio is on this channel. */
  channel?: number;
  rx?: Record<string, unknown>;
  tx?: Record<string, unknown>;
}

/** MHz by channel. */
const channels: readonly (readonly [number, number, boolean])[] = [
  [1, 2412, false],
  [6, 2437, false],
  [36, 5180, false],
  [40, 5200, false],
  [44, 5220, false],
  [52, 5260, true],
];

type Settings = Record<string, string>;
type Result = readonly unknown[];

export class RadioState {
  mac: string;
  mode = 'Mesh Point';
  ssid = 'field';
  hostname = 'mast';
  noise: number = -95;
  uptime_s = 5_000;
  isMeshRider = false;
  isRebooting = false;
  stations: FakeStation[] = [
    { mac: '02:00:00:AA:BB:02', signal: -61, noise: -95, inactive: 40, ...usualRates() },
  ];
  settings: Settings = { channel: '36', htmode: 'HT20', txpower: '20' };
  readonly files = new Map<string, string>([
    ['/proc/stat', 'cpu  100 0 100 800 0 0 0 0 0 0\n'],
    ['/sys/class/leds/green:status/trigger', 'none timer [heartbeat] default-on\n'],
  ]);
  /** What has been written, in order. */
  readonly written: string[] = [];
  /** Whether a change of the channel has any effect. */
  isObedient = true;
  /** By session: what is staged there belongs to it alone. */
  readonly #staged = new Map<string, Record<string, string | null>>();
  #pending: { readonly old: Settings; readonly timer: NodeJS.Timeout } | undefined;
  #now: Settings = { ...this.settings };

  constructor(mac: string) {
    this.mac = mac;
    this.files.set('/sys/class/net/wlan0/address', `${mac.toLowerCase()}\n`);
  }

  get channel(): number {
    return Number(this.#now['channel']);
  }

  get isPending(): boolean {
    return this.#pending !== undefined;
  }

  stop(): void {
    clearTimeout(this.#pending?.timer);
  }

  call(sid: string, name: string, args: Readonly<Record<string, unknown>>): Result | undefined {
    if (name.startsWith('uci ')) return this.#uci(sid, name, args);
    if (name.startsWith('file ')) return this.#file(name, args);
    if (name.startsWith('iwinfo ') && name !== 'iwinfo devices' && args['device'] !== 'wlan0') return [4];
    switch (name) {
      case 'system board':
        return [0, this.#board()];
      case 'system info':
        return [
          0,
          { uptime: this.uptime_s, load: [655, 0, 0], memory: { total: 1000, free: 1, available: 600 } },
        ];
      case 'system reboot':
        this.isRebooting = true;
        return [0];
      case 'message-system chswitch':
        this.#now = { ...this.#now, channel: args['frequency'] === 5200 ? '40' : this.#now['channel']! };
        return [0];
      default:
        return this.#iwinfo(name);
    }
  }

  #board(): object {
    return {
      hostname: this.hostname,
      model: 'Wi-Fi board',
      board_name: 'vendor,board',
      kernel: '6.6.73',
      release: { distribution: 'OpenWrt', version: '24.10.0' },
      ...(this.isMeshRider ? { sub_model: 'RM-915-2J-XM' } : {}),
    };
  }

  #iwinfo(name: string): Result | undefined {
    switch (name) {
      case 'iwinfo devices':
        return [0, { devices: ['wlan0'] }];
      case 'iwinfo info':
        return [0, this.#info()];
      case 'iwinfo assoclist':
        return [
          0,
          { results: this.stations.filter(({ channel }) => (channel ?? this.channel) === this.channel) },
        ];
      case 'iwinfo survey':
        return [0, { results: [{ mhz: this.#mhz(), noise: this.noise, active_time: 1000, busy_time: 250 }] }];
      case 'iwinfo freqlist':
        return [0, { results: channels.map(([channel, mhz, restricted]) => ({ channel, mhz, restricted })) }];
      case 'iwinfo txpowerlist':
        return [
          0,
          {
            results: [
              { dbm: 10, mw: 10 },
              { dbm: 20, mw: 100 },
            ],
          },
        ];
      case 'iwinfo scan':
        return [
          0,
          {
            results: [
              { ssid: 'other', bssid: '02:00:00:00:00:99', mode: 'Master', channel: 40, signal: -70 },
            ],
          },
        ];
      default:
        return undefined;
    }
  }

  #info(): object {
    return {
      mode: this.mode,
      ssid: this.ssid,
      bssid: this.mac,
      channel: this.channel,
      frequency: this.#mhz(),
      txpower: Number(this.#now['txpower'] ?? 17),
      signal: -60,
      noise: this.noise,
      bitrate: 72_200,
      quality: 49,
      quality_max: 70,
      htmode: this.#now['htmode'],
      htmodelist: ['HT20', 'HT40', 'VHT20', 'VHT80'],
      hardware: { name: 'Generic' },
    };
  }

  #mhz(): number {
    return channels.find(([channel]) => channel === this.channel)?.[1] ?? 0;
  }

  #file(name: string, { path, data }: Readonly<Record<string, unknown>>): Result {
    const known = this.files.get(String(path));
    if (known === undefined) return [4];
    if (name === 'file read') return [0, { data: known }];
    this.written.push(String(data));
    this.files.set(String(path), known.replaceAll(/[[\]]/gu, '').replace(String(data), `[${String(data)}]`));
    return [0];
  }

  #uci(sid: string, name: string, args: Readonly<Record<string, unknown>>): Result {
    const staged = this.#staged.get(sid) ?? {};
    switch (name) {
      case 'uci get': {
        const radio0 = { '.type': 'wifi-device', '.name': 'radio0', ...this.settings };
        const mesh0 = { '.type': 'wifi-iface', device: 'radio0', ifname: 'wlan0', key: 'never-to-be-told' };
        return [0, { values: { radio0, mesh0 } }];
      }
      case 'uci set':
        if (args['section'] !== 'radio0') return [4];
        this.#staged.set(sid, { ...staged, ...(args['values'] as Record<string, string>) });
        return [0];
      case 'uci delete':
        this.#staged.set(sid, { ...staged, [String(args['option'])]: null });
        return [0];
      case 'uci revert':
        this.#staged.delete(sid);
        return [0];
      case 'uci apply':
        return this.#apply(sid, Number(args['timeout']));
      case 'uci confirm':
        return this.#confirm();
      case 'uci rollback':
        return this.#rollback();
      default:
        return [3];
    }
  }

  #apply(sid: string, timeout_s: number): Result {
    if (this.#pending) return [6];
    const old = { ...this.settings };
    for (const [option, value] of Object.entries(this.#staged.get(sid) ?? {})) {
      if (value === null) delete this.settings[option];
      else this.settings[option] = value;
    }
    this.#staged.delete(sid);
    if (this.isObedient) this.#now = { ...this.settings };
    this.#pending = { old, timer: setTimeout(() => this.#rollback(), timeout_s * 1_000) };
    return [0];
  }

  #confirm(): Result {
    if (!this.#pending) return [5];
    clearTimeout(this.#pending.timer);
    this.#pending = undefined;
    return [0];
  }

  #rollback(): Result {
    if (!this.#pending) return [5];
    clearTimeout(this.#pending.timer);
    this.settings = this.#pending.old;
    this.#now = { ...this.settings };
    this.#pending = undefined;
    return [0];
  }
}

export function usualRates() {
  return {
    rx: { drop_misc: 3, packets: 10, bytes: 1_000, rate: 65_000, mcs: 6 },
    tx: { failed: 1, retries: 12, packets: 20, bytes: 2_000, rate: 72_200, mcs: 7 },
  };
}
