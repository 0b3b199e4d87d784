/** Options of the mavlink driver. */
import { z } from 'zod';
import { latitude, longitude } from '../../src/contract/assets.ts';
import { Networks, plainIp } from '../../src/platform/networks.ts';

// Options of the links to vehicles, one schema for each kind.

const port = z.int().min(1).max(65_535);
const host = z.string().min(1).max(253);
const name = z
  .string()
  .min(1)
  .max(64)
  .optional()
  .describe('shown in logs and status; the address when omitted');

/** Least that carries our heartbeat and a command. */
const budget_min_bytes_per_s = 100;
const link_common = {
  name,
  bytes_per_s_max: z
    .int()
    .min(budget_min_bytes_per_s)
    .max(1_000_000)
    .optional()
    .describe(
      'limit of what is sent to vehicles, for slow radios; commands have precedence; none when omitted',
    ),
  high_latency: z
    .boolean()
    .default(false)
    .describe('a satellite modem: long silence is usual, and no heartbeats are sent'),
} as const;

/** The usual default rate of telemetry radios and autopilots. */
const baud_default = 57_600;

export const linkOptions = z.discriminatedUnion('kind', [
  z.strictObject({
    kind: z.literal('udp_listen'),
    ...link_common,
    host: host.default('0.0.0.0').describe('own address to listen on'),
    port: port.describe('own port; vehicles and routers send to it'),
  }),
  z.strictObject({
    kind: z.literal('udp_client'),
    ...link_common,
    host,
    port,
    local_port: port.describe(
      'own port, fixed: autopilots keep sending to the first port that they received from',
    ),
  }),
  z.strictObject({ kind: z.literal('tcp_client'), ...link_common, host, port }),
  z.strictObject({ kind: z.literal('tcp_listen'), ...link_common, host: host.default('0.0.0.0'), port }),
  z.strictObject({
    kind: z.literal('serial'),
    ...link_common,
    path: z
      .string()
      .startsWith('/')
      .describe('device; /dev/serial/by-id/... keeps its name when other devices are plugged in'),
    baud: z
      .array(z.int().min(1_200).max(4_000_000))
      .min(1)
      .max(8)
      .default([baud_default])
      .describe('rates, tried in this order until MAVLink is received'),
  }),
]);
export type LinkOptions = z.output<typeof linkOptions>;

/** What a link or an endpoint opens, as people write it. */
export function addressOf(options: EndpointOptions | LinkOptions): string {
  return options.kind === 'serial'
    ? options.path
    : `${options.kind.replace('_', ' ')} ${options.host}:${options.port}`;
}

// Options of the endpoints to which frames are forwarded, one schema for each kind.

const own_host = host
  .default('127.0.0.1')
  .describe('own address to listen on; another one than loopback lets that network command the vehicles');
const endpoint_common = {
  name,
  vehicles: z
    .array(z.string().min(1))
    .min(1)
    .max(64)
    .optional()
    .describe('asset_keys of the vehicles that are forwarded; all when omitted'),
  read_only: z.boolean().default(false).describe('forward only from vehicles: stations cannot command them'),
  unverified: z
    .boolean()
    .default(false)
    .describe('with signing: also forward frames of vehicles that are not signed with our key'),
  to_vehicles_bytes_per_s: z
    .int()
    .min(100)
    .max(1_000_000)
    .default(4_000)
    .describe('limit of what stations send to vehicles, so that commands of the kit still fit on the link'),
} as const;

const endpointOptions = z.discriminatedUnion('kind', [
  z.strictObject({
    kind: z.literal('udp_listen'),
    ...endpoint_common,
    host: own_host,
    port: port.describe('own port; a station that sends to it receives the frames'),
    peers_max: z.int().min(1).max(32).default(4).describe('stations at once; further ones are refused'),
  }),
  z.strictObject({
    kind: z.literal('udp_client'),
    ...endpoint_common,
    host: host.describe('address of the station, which receives the frames without sending first'),
    port,
  }),
  z.strictObject({
    kind: z.literal('tcp_listen'),
    ...endpoint_common,
    host: own_host,
    port,
    clients_max: z.int().min(1).max(16).default(4).describe('connections at once; further ones are refused'),
  }),
  z.strictObject({ kind: z.literal('tcp_client'), ...endpoint_common, host, port }),
]);
export type EndpointOptions = z.output<typeof endpointOptions>;

/** Names of the commands, in display order. */
export const command_names = [
  'arm',
  'disarm',
  'return_home',
  'set_mode',
  'goto_waypoint',
  'takeoff',
  'hold',
  'land',
  'surface',
  'set_altitude',
  'set_speed',
  'orbit',
  'download_mission',
  'upload_mission',
  'clear_mission',
  'start_mission',
  'pause_mission',
  'resume_mission',
  'reposition',
  'set_home',
  'set_heading',
  'change_return_altitude',
  'enable_fence',
  'get_params',
  'download_log',
  'emergency_stop',
] as const;
export type CommandName = (typeof command_names)[number];

/** Off unless a configuration names it: a vehicle that flies falls. */
const unless_named: CommandName = 'emergency_stop';

/** The usual system id of ground stations: autopilots treat its heartbeats as the pilot's. */
const station_system_id = 255;
const links_max = 16;
const endpoints_max = 8;
const vehicles_max = 64;
const hosts_max = 16;
const fence_corners_max = 200;

const hertz = z.number().min(0.1).max(50);
const systemId = z.int().min(1).max(255);

const gotoOptions = z
  .strictObject({
    datum: z
      .enum(['relative', 'amsl', 'ellipsoid'])
      .default('relative')
      .describe('reference of alt_m of goto_waypoint: home, mean sea level or the WGS-84 ellipsoid'),
    height_min_m: z.number().min(0).max(1_000).default(2).describe('minimum height of a target above home'),
    height_max_m: z
      .number()
      .min(0)
      .max(10_000)
      .default(120)
      .describe('maximum height of a target above home'),
    distance_max_m: z
      .number()
      .min(1)
      .max(100_000)
      .default(2_000)
      .describe('maximum distance of a target from the vehicle and from home'),
    geofence: z
      .array(z.strictObject({ lat: latitude, lon: longitude }))
      .min(3)
      .max(fence_corners_max)
      .optional()
      .describe('corners of the area that targets must be in; must not cross 180 degrees of longitude'),
  })
  .refine(({ height_min_m, height_max_m }) => height_min_m <= height_max_m, {
    path: ['height_min_m'],
    error: 'must not be above height_max_m; lower it or raise height_max_m',
  });

/** Which stream of a camera is shown: `rgb`, `thermal`, a name or a number. */
const streamChoice = z.union([z.int().min(0).max(255), z.string().min(1).max(32)]);
export type StreamChoice = z.output<typeof streamChoice>;

const vehicleOptions = z.strictObject({
  name: z.string().min(1).max(200).optional().describe('shown name'),
  commands: z
    .array(z.enum(command_names))
    .optional()
    .describe('commands of this vehicle; those of the driver when omitted'),
  hosts: z
    .array(z.union([z.ipv4(), z.ipv6()]))
    .max(hosts_max)
    .optional()
    .describe(
      'addresses that it sends from, in addition to the hosts of links; frames from other addresses are ignored. The first one seen when omitted',
    ),
  stream: streamChoice.optional().describe('as stream of the driver, for its cameras'),
});

function hasDistinctNames(endpoints: readonly z.output<typeof endpointOptions>[]): boolean {
  const names = endpoints.map((each) => each.name ?? addressOf(each));
  return new Set(names).size === names.length;
}

export const mavlinkOptions = z.strictObject({
  links: z.array(linkOptions).min(1).max(links_max).describe('connections to vehicles, each with a kind'),
  endpoints: z
    .array(endpointOptions)
    .max(endpoints_max)
    .default([])
    .refine(hasDistinctNames, 'two endpoints have one name or address; name each differently')
    .describe('where stations such as QGroundControl connect: frames of vehicles are forwarded both ways'),
  system_id: systemId
    .refine((id) => id !== station_system_id, {
      error:
        "255 is the pilot's ground station: our heartbeats would hide its loss; use another id, such as 245",
    })
    .default(245)
    .describe('own system id'),
  component_id: z.int().min(1).max(255).default(191).describe('own component id; 191: onboard computer'),
  role: z
    .enum(['onboard_controller', 'ground_station'])
    .default('onboard_controller')
    .describe('ground_station: PX4 starts its failsafe when it loses this kit'),
  passive: z.boolean().default(false).describe('receive only: the kit sends nothing and offers no commands'),
  offline_after_s: z.number().min(2).max(600).default(5).describe('silence after which a vehicle is offline'),
  high_latency_offline_after_s: z
    .number()
    .min(10)
    .max(7_200)
    .default(240)
    .describe('the same for a vehicle that is received by HIGH_LATENCY2 alone, over a satellite'),
  streams: z
    .strictObject({
      position_hz: hertz.default(2).describe('position messages per second'),
      attitude_hz: hertz.default(4).describe('attitude messages per second'),
      status_hz: hertz.default(1).describe('battery, GPS and system status messages per second'),
    })
    .prefault({})
    .describe('rates requested from vehicles; messages that they already send keep their rate'),
  signing: z
    .strictObject({
      key_file: z
        .string()
        .min(1)
        .describe('file with the passphrase or the 64 hexadecimal digits of the key'),
      clock_file: z.string().min(1).describe('file that stores the signing clock across restarts'),
    })
    .optional()
    .describe('MAVLink 2 signing; if set, frames with another or no signature are ignored'),
  commands: z
    .array(z.enum(command_names))
    .default(command_names.filter((name) => name !== unless_named))
    .describe('default commands of vehicles; emergency_stop must be named'),
  stream: streamChoice
    .default('rgb')
    .describe('stream that is shown of a camera with several: rgb, thermal, a name or a number'),
  vehicles: z
    .record(z.string().min(1), vehicleOptions)
    .default({})
    .refine((vehicles) => Object.keys(vehicles).length <= vehicles_max, `at most ${vehicles_max} vehicles`)
    .describe('settings of individual vehicles, by asset_key'),
  task_age_max_s: z
    .number()
    .min(1)
    .max(3_600)
    .default(10)
    .describe('maximum age of a task; an older one is refused, whatever its deadline'),
  arm: z
    .strictObject({
      require_pre_arm_check: z
        .boolean()
        .default(true)
        .describe('refuse to arm while the autopilot reports failed checks'),
      require_position: z
        .boolean()
        .optional()
        .describe('refuse to arm without a valid position; true when omitted, for submarines false'),
    })
    .prefault({}),
  goto: gotoOptions.prefault({}),
  flight_logs: z
    .strictObject({
      after_flight: z
        .boolean()
        .default(false)
        .describe('transfer the newest log of a vehicle after each flight, without a task'),
      bytes_per_s: z
        .int()
        .min(100)
        .max(10_000_000)
        .optional()
        .describe('rate of a transfer; 2000 over a serial line and 50000 over a network when omitted'),
    })
    .prefault({})
    .describe('logs that vehicles have stored, transferred while they are on the ground'),
  speed_max_mps: z.number().min(0.1).max(100).default(15).describe('maximum speed that set_speed accepts'),
});
export type MavlinkOptions = z.output<typeof mavlinkOptions>;

export type VehicleOptions = MavlinkOptions['vehicles'][string];

/** Returns what is configured for the vehicle with this key. */
export function ownOptions({ vehicles }: MavlinkOptions, asset_key: string): VehicleOptions | undefined {
  return Object.hasOwn(vehicles, asset_key) ? vehicles[asset_key] : undefined;
}

/** What brings a vehicle home or stops it, and pre-empts other commands; of set_mode, its mode decides. */
export const safety_names: ReadonlySet<string> = new Set<CommandName>([
  'disarm',
  'return_home',
  'hold',
  'land',
  'surface',
  'pause_mission',
]);

/**
 * Returns the commands of a vehicle. `keys`: the one of its asset first, then all by which its hardware is known: its limits follow
 * the hardware. A provisional one may be any of the configured vehicles.
 */
export function commandsOf(
  options: MavlinkOptions,
  keys: readonly string[],
  { isProvisional }: { readonly isProvisional: boolean },
): readonly CommandName[] {
  const { commands, vehicles } = options;
  const [own, ...others] = keys.map((key) => ownOptions(options, key)?.commands);
  if (own) return own;
  const of_hardware = others.filter((each) => each !== undefined);
  const of_any = Object.values(vehicles).flatMap((vehicle) => (vehicle.commands ? [vehicle.commands] : []));
  const limits = of_hardware.length > 0 || !isProvisional ? of_hardware : of_any;
  return limits.length > 0 ? strictest(commands, limits) : commands;
}

/** What none of them lacks; and what makes a vehicle safer if one of them has it, since it may be that one. */
function strictest(
  commands: readonly CommandName[],
  limits: readonly (readonly CommandName[])[],
): readonly CommandName[] {
  return command_names.filter((name) =>
    safety_names.has(name)
      ? limits.some((names) => names.includes(name))
      : commands.includes(name) && limits.every((names) => names.includes(name)),
  );
}

// Links over which a stranger can pass for a vehicle: they accept unsigned frames from any sender.

interface OpenLink {
  readonly name: string;
  /** Own address and port that it receives at. */
  readonly place: string;
}

/** The links that receive from any host of a network, unless frames are signed or all configured vehicles have their hosts. */
export function openLinks({
  links,
  signing,
  vehicles,
}: Pick<MavlinkOptions, 'links' | 'signing' | 'vehicles'>): readonly OpenLink[] {
  const named = Object.values(vehicles);
  const have_hosts = named.length > 0 && named.every(({ hosts }) => hosts !== undefined);
  if (signing || have_hosts) return [];
  return links.flatMap((link) => {
    const place = placeOf(link);
    return place === undefined ? [] : [{ name: link.name ?? addressOf(link), place }];
  });
}

const loopback = new Networks(['127.0.0.0/8', '::1/128']);

/** Undefined: its peers are those of the configuration, or of this machine. */
function placeOf(link: LinkOptions): string | undefined {
  // It sends to one host, and receives from all.
  if (link.kind === 'udp_client') return `UDP port ${link.local_port}`;
  if (link.kind !== 'udp_listen' && link.kind !== 'tcp_listen') return undefined;
  const { host, port, kind } = link;
  if (host === 'localhost' || loopback.has(plainIp(host))) return undefined;
  const named = `${kind === 'udp_listen' ? 'UDP' : 'TCP'} port ${port}`;
  return host === '0.0.0.0' || host === '::' ? named : `${named} of ${host}`;
}
