/** `npm start`: runs a whole kit: embedded broker, this machine as the gateway, a simulated drone, two cameras and a radio; prints published messages. */
import { randomUUID } from 'node:crypto';
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
import { demoCameras, startDemoCameras, demoRadio, startDemoRadio } from './devices.ts';
import { loopback } from '../daemon/embedded-broker.ts';
import { freeUdpPort, freeTcpPort, isUsable } from './free-ports.ts';
import { type Paint, type Shell, exit, painter, say } from '../terminal/shell.ts';
import { balance } from '../status/view.ts';
import { tailScreen, type TailScreenOptions } from '../terminal/tail-screen.ts';
import { assetId } from '../../contract/identity.ts';
import type { App } from '../../kit/app/app.ts';
import { readTextUpToSync, small_bytes_max } from '../../platform/bounded-file.ts';

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
