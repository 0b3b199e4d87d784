/** `npm start`: runs a whole kit: embedded broker, this machine as the gateway, a simulated drone, two cameras and a radio; prints published messages. */
import { randomBytes, randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { z } from 'zod';
import { drivers } from '../../../drivers/index.ts';
import { type Config, readConfig } from '../../kit/config/config.ts';
import { contract_major } from '../../contract/topics.ts';
import { refuseSecond } from '../../kit/local/server.ts';
import { createLog } from '../../platform/log/log.ts';
import { runDaemon, type Running } from '../daemon/daemon.ts';
import { loopback } from '../daemon/embedded-broker.ts';
import { freeTcpPort, freeUdpPort, isUsable } from './free-ports.ts';
import { exit, type Paint, painter, say, type Shell } from '../terminal/shell.ts';
import { balance } from '../status/view.ts';
import { tailScreen, type TailScreenOptions } from '../terminal/tail-screen.ts';
import { assetId } from '../../contract/identity.ts';
import type { App } from '../../kit/app/app.ts';
import { readTextUpTo, readTextUpToSync, small_bytes_max } from '../../platform/bounded-file.ts';
import { messageOf } from '../../platform/errors.ts';
import { texts } from '../texts.ts';

const entry = z.looseObject({
  name: z.string(),
  host: z.string(),
  port: z.int(),
  push_port: z.int().optional(),
  password_file: z.string(),
});
type DemoEntry = z.output<typeof entry>;

/** The entry of a simulated device, identified by its name and the loopback address. */
function demoEntry(
  { drivers }: Config,
  driver_name: string,
  list: string,
  name: string,
): DemoEntry | undefined {
  const options = drivers.find(({ driver }) => driver.name === driver_name)?.options;
  const entries = z.looseObject({ [list]: z.array(z.unknown()) }).safeParse(options).data?.[list] ?? [];
  return entries
    .flatMap((each) => entry.safeParse(each).data ?? [])
    .find((each) => each.name === name && each.host === loopback);
}

async function writePassword(file: string): Promise<void> {
  await writeFile(file, randomBytes(12).toString('hex'), { mode: 0o600 });
}

async function passwordIn(file: string): Promise<string> {
  return (await readTextUpTo(file, small_bytes_max)).trim();
}

/** Starts a device. Returns an error sentence on failure. */
async function tried(name: string, start: () => Promise<unknown>): Promise<string | undefined> {
  try {
    await start();
    return undefined;
  } catch (error) {
    return texts.simulator_failed(name, messageOf(error));
  }
}

// The two cameras of the demo: their configuration, and the simulated devices.

const gate = 'Gate camera';
const yard = 'Yard camera';
const username = 'admin';

/** Returns the driver sections as YAML, and writes the password file of both. */
async function demoCameras(dir: string): Promise<string> {
  const password_file = join(dir, 'camera-password');
  await writePassword(password_file);
  const [onvif_port, vendor_port, push_port] = await Promise.all([
    freeTcpPort(),
    freeTcpPort(),
    freeTcpPort(),
  ]);
  const login = `username: ${username}, password_file: ${JSON.stringify(password_file)}`;
  return `  # The demo simulates these two cameras; remove a section to remove its camera.
  - driver: onvif
    options:
      cameras:
        - { name: ${gate}, host: ${loopback}, port: ${onvif_port}, ${login} }
  - driver: vendorcam
    options:
      hosts:
        - { name: ${yard}, host: ${loopback}, port: ${vendor_port}, push_port: ${push_port}, tls: false, ${login} }
      ptz_move_max_s: 2
`;
}

/** Starts the simulated cameras that the configuration names. Returns an error for each failure. */
async function startDemoCameras(config: Config, signal: AbortSignal): Promise<readonly string[]> {
  const onvif = demoEntry(config, 'onvif', 'cameras', gate);
  const vendor = demoEntry(config, 'vendorcam', 'hosts', yard);
  const failures = await Promise.all([
    onvif && tried(gate, async () => startOnvif(onvif, signal)),
    vendor && tried(yard, async () => startVendor(vendor, signal)),
  ]);
  return failures.filter((failure) => failure !== undefined);
}

async function startOnvif({ port, password_file }: DemoEntry, signal: AbortSignal): Promise<void> {
  const { startSimCamera } = await import('../../../drivers/onvif/sim/sim-camera.ts');
  const settings = {
    username,
    password: await passwordIn(password_file),
    manufacturer: 'Acme',
    model: 'Simulated dome',
    serial: 'SIM-0001',
    firmware: '1.0',
    mac: '02:00:00:00:0d:01',
    skew_ms: 0,
    ptz: true,
    presets: [
      { token: '1', name: 'Gate' },
      { token: '2', name: 'Fence' },
    ],
    services: ['media', 'ptz', 'events'],
    unlisted: [],
    hasGetServices: true,
    prefix: 's',
    snapshot: '/snapshot.jpg',
    zoom: true,
    home: true,
    tours: [{ token: '1', name: 'Fence' }],
    auxiliary: ['tt:Wiper|On', 'tt:Wiper|Off', 'tt:IRLamp|On', 'tt:IRLamp|Off', 'tt:IRLamp|Auto'],
    rtsp_base: `rtsp://${loopback}:8554`,
  };
  await startSimCamera(settings, port, signal);
}

async function startVendor(
  { port, push_port, password_file }: DemoEntry,
  signal: AbortSignal,
): Promise<void> {
  const { startSimHost } = await import('../../../drivers/vendorcam/sim/sim-host.ts');
  await startSimHost({ password: await passwordIn(password_file), name: yard, push_port }, port, signal);
}

// The radio of the demo: its configuration, and the simulated device.

const mast = 'Mast radio';
const radio_username = 'kit';
const mac = '02:00:00:00:0D:02';

/** Returns the driver section as YAML, and writes the password file. */
async function demoRadio(dir: string): Promise<string> {
  const password_file = join(dir, 'radio-password');
  await writePassword(password_file);
  const login = `username: ${radio_username}, password_file: ${JSON.stringify(password_file)}`;
  return `  # The demo simulates this mesh radio; remove the section to remove it.
  - driver: vendorradio
    options:
      radios:
        - { kind: ubus, name: ${mast}, host: ${loopback}, port: ${await freeTcpPort()}, tls: false, ${login} }
      heartbeat_s: 10
      rollback_s: 20
`;
}

/** Starts the simulated radio if the configuration names it. Returns an error sentence on failure. */
async function startDemoRadio(config: Config, signal: AbortSignal): Promise<readonly string[]> {
  const entry = demoEntry(config, 'vendorradio', 'radios', mast);
  if (!entry) return [];
  const failure = await tried(mast, async () => {
    const { startSimRadio } = await import('../../../drivers/vendorradio/sim/sim-radio.ts');
    const user = { name: radio_username, password: await passwordIn(entry.password_file) };
    await startSimRadio({ mac, user }, entry.port, signal);
  });
  return failure === undefined ? [] : [failure];
}

/** The ports on which the driver receives the drone. */
const droneLinks = z.looseObject({
  links: z.array(z.looseObject({ kind: z.string(), port: z.int().optional() })),
});

export async function demo(options: TailScreenOptions, shell: Shell): Promise<number> {
  const file = await demoConfig(shell.env);
  const configured = await readConfig(file, { drivers, credentials_dir: undefined });
  // Before the simulated devices, which would report that their ports are in use.
  await refuseSecond(configured.control_socket);
  const config = await withFreePort(configured);
  const screen = tailScreen(shell, options);
  const out = { write: (line: string) => screen.above(() => shell.err.write(line)) };
  const log = createLog({ ...config.log, out, readable: shell.err.isTTY === true });
  const paint = painter(shell);
  let tally = '';
  const onReady = ({ app, broker_url }: Running): void => {
    say(shell, ...demoServiceLines(app, config, paint), ...introduction(config, broker_url, paint));
    const unsubscribe = app.local.tail(screen.print);
    void screen.follow(async () => app.local.report());
    shell.signal.addEventListener('abort', unsubscribe, { once: true });
  };
  const onStopping = async ({ app }: Running): Promise<void> => {
    const { outbox } = await app.local.report();
    tally = balance(outbox);
  };
  // They stop after the daemon, which would otherwise report them lost.
  const devices = new AbortController();
  try {
    await flyDrone(config, devices.signal);
    say(shell, ...(await startDemoCameras(config, devices.signal)));
    say(shell, ...(await startDemoRadio(config, devices.signal)));
    await runDaemon({ config, log, onReady, onStopping }, shell);
  } finally {
    devices.abort();
  }
  say(shell, `${paint('bold', 'stopped')}: ${tally}`);
  return exit.ok;
}

/** Writes the configuration of the demo at the first start only, so that the kit keeps its identity and can be edited. */
async function demoConfig(env: Shell['env']): Promise<string> {
  const dir = join(env['XDG_STATE_HOME'] ?? join(homedir(), '.local', 'state'), 'kit-connector-demo');
  const file = join(dir, 'config.yaml');
  if (existsSync(file)) return file;
  await mkdir(dir, { recursive: true });
  const devices = (await demoCameras(dir)) + (await demoRadio(dir));
  await writeFile(file, demoText(dir, await freeUdpPort(), devices) + (await demoService()));
  return file;
}

function demoText(dir: string, drone_port: number, devices: string): string {
  return `# Configuration of the demo, created at its first start; edit it as needed.
kit_id: ${randomUUID()}
kit_name: Demo kit
state_dir: ${JSON.stringify(dir)}
runtime_dir: ${JSON.stringify(dir)}
# The clock of a development machine may be synchronised without the knowledge of its kernel.
clock: trusted
# No broker section: an embedded broker runs on loopback.
log:
  level: warn
  # The simulated camera and radio do not use TLS; do not warn at each start.
  drivers: { vendorcam: error, vendorradio: error }
drivers:
  - driver: gateway
    options:
      interval_s: 2
  # Links to the internet. No external host is probed until options.probe.targets is set.
  - driver: links
    options:
      interval_s: 2
  # The demo kit has a fixed position.
  - driver: location
    options:
      manual: { latitude: 47.3977, longitude: 8.5454, altitude_m: 488 }
  # The simulated drone of the demo sends to this port.
  - driver: mavlink
    options:
      links:
        - { kind: udp_listen, host: ${loopback}, port: ${drone_port} }
${devices}feeds:
  rates_hz: { default: 0.2, gps: 1 }
# Publish telemetry more often than on a metered link.
telemetry:
  pace_s: 2
`;
}

/** Starts a simulated drone, unless the link was removed from the configuration. */
async function flyDrone({ drivers: configured }: Config, signal: AbortSignal): Promise<void> {
  const options = droneLinks.safeParse(configured.find(({ driver }) => driver.name === 'mavlink')?.options);
  const port = options.data?.links.find(({ kind }) => kind === 'udp_listen')?.port;
  if (port === undefined) return;
  const { SimVehicle } = await import('../../../drivers/mavlink/sim/sim-vehicle.ts');
  const drone = new SimVehicle(
    {
      autopilot: 'ardupilot',
      sysid: 1,
      uid: '00000000000de300',
      host: loopback,
      port,
      home: { lat: 47.397742, lon: 8.545594, alt_amsl_m: 488 },
      airborne: true,
      banner: 'ArduCopter V4.6.0, simulated',
    },
    signal,
  );
  await drone.start();
}

/** Example tasks for the devices of the demo, by their driver. */
const examples = [
  ['mavlink', `task 'Quadrotor 1' goto_waypoint '{"lat":47.3985,"lon":8.5456,"alt_m":30}'`],
  ['onvif', `task 'Gate camera' ptz_move '{"direction":"left"}'`],
] as const;

function introduction(config: Config, broker_url: string, paint: Paint): readonly string[] {
  const { port } = new URL(broker_url);
  const command = (words: string): string =>
    paint('bold', `  npx kit-connector ${words} --socket ${config.control_socket}`);
  const own = config.broker === undefined;
  const configured = new Set(config.drivers.map(({ driver }) => driver.name));
  const lacks = examples.some(([driver]) => !configured.has(driver));
  return [
    `${paint('bold', config.kit_name ?? 'kit')} ${config.kit_id}: this machine is the gateway and publishes to ${broker_url}${own ? ' (in this process)' : ''}.`,
    `Configuration and buffer: ${config.state_dir}${lacks ? ' (some devices of the demo are not configured; delete the directory to restore them)' : ''}`,
    '',
    'In a second terminal, as a cloud:',
    paint(
      'bold',
      `  mosquitto_sub -h ${own ? loopback : new URL(broker_url).hostname} -p ${port} -t '${contract_major}/#' -v`,
    ),
    'and as a technician:',
    command('status --watch'),
    command('tail --feed telemetry'),
    command('task'),
    ...examples.filter(([driver]) => configured.has(driver)).map(([, words]) => command(words)),
    '',
    'Published messages (Ctrl-C stops):',
  ];
}

// The service of the demo: its port, and example requests.

const port_wanted = 8_080;
/** Key of the simulated drone. */
const drone_key = 'mavlink:00000000000de300';

/** The section of the configuration. The port is stored so that a bookmark of the page stays valid. */
export async function demoService(): Promise<string> {
  const port = await usableOrFree(port_wanted);
  return `# Page and HTTP API of this kit; its API key is in the file service-key beside this one.
service:
  listen: ${loopback}:${port}
`;
}

/** The configuration, with another port for the service if another program, such as a second demo, uses the configured one. */
export async function withFreePort(config: Config): Promise<Config> {
  const { service } = config;
  if (!service) return config;
  const port = await usableOrFree(service.listen.port);
  return { ...config, service: { ...service, listen: { ...service.listen, port } } };
}

/** The introduction of the service; empty when no service is configured. */
export function demoServiceLines({ service }: App, { kit_id }: Config, paint: Paint): readonly string[] {
  const url = service?.url();
  if (!service || url === undefined) return [];
  const key = readTextUpToSync(service.key_file, small_bytes_max).trim();
  const drone = assetId(kit_id, drone_key);
  const task = `${url}/api/kits/${kit_id}/assets/${drone}/commands/goto_waypoint`;
  const body = '{"payload":{"lat":47.3985,"lon":8.5456,"alt_m":30}}';
  return [
    `Web page of this kit: ${paint('bold', url)}`,
    `API key: ${paint('bold', key)}`,
    'Example API requests:',
    paint('bold', `  curl -H 'X-API-Key: ${key}' ${url}/api/kits`),
    paint('bold', `  curl -H 'X-API-Key: ${key}' -H 'Content-Type: application/json' -d '${body}' ${task}`),
    '',
  ];
}

async function usableOrFree(port: number): Promise<number> {
  return (await isUsable(port)) ? port : freeTcpPort();
}
