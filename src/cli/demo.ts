/** `npm start`: a whole kit on this machine. A broker of its own, this machine as the gateway, a simulated drone, two cameras and a radio, and what is published, live. */
import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { z } from 'zod';
import { drivers } from '../../drivers/index.ts';
import { type Config, readConfig } from '../config.ts';
import { contract_major } from '../contract/topics.ts';
import { createLog } from '../platform/log.ts';
import { runDaemon, type Running } from './daemon.ts';
import { demoCameras, startDemoCameras } from './demo-cameras.ts';
import { demoRadio, startDemoRadio } from './demo-radio.ts';
import { demoService, demoServiceLines, withFreePort } from './demo-service.ts';
import { loopback } from './embedded-broker.ts';
import { freeUdpPort } from './free-ports.ts';
import { type Paint, type Shell, exit, painter, say } from './shell.ts';
import { balance } from './status-view.ts';
import { tailText } from './tail-view.ts';

/** Where the drone is listened for. */
const droneLinks = z.looseObject({
  links: z.array(z.looseObject({ kind: z.string(), port: z.int().optional() })),
});

export async function demo(shell: Shell): Promise<number> {
  const file = await demoConfig(shell.env);
  const config = await withFreePort(await readConfig(file, { drivers, credentials_dir: undefined }));
  const log = createLog({ ...config.log, out: shell.err, readable: shell.err.isTTY === true });
  const paint = painter(shell);
  let tally = '';
  const onReady = ({ app, broker_url }: Running): void => {
    say(shell, ...demoServiceLines(app, config, paint), ...introduction(config, broker_url, paint));
    const unsubscribe = app.local.tail((message) => say(shell, tailText(message, paint, shell.out.columns)));
    shell.signal.addEventListener('abort', unsubscribe, { once: true });
  };
  const onStopping = async ({ app }: Running): Promise<void> => {
    const { outbox } = await app.local.report();
    tally = balance(outbox);
  };
  // They outlive the daemon, which would call them lost while it stops.
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

/** Writes the demo's configuration at the first start and keeps it, so that the kit stays the same and can be changed. */
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
  return `# The demo's kit; made at its first start, yours to change.
kit_id: ${randomUUID()}
kit_name: Demo kit
state_dir: ${JSON.stringify(dir)}
runtime_dir: ${JSON.stringify(dir)}
# No broker section: a broker of its own runs on loopback.
log:
  level: warn
  # Its simulated camera and radio speak without TLS, which need not be said each time.
  drivers: { vendorcam: error, vendorradio: error }
drivers:
  - driver: gateway
    options:
      interval_s: 2
  # Its links to the internet. Nobody outside is asked anything until options.probe.targets names whom.
  - driver: links
    options:
      interval_s: 2
  # The demo's kit stands still, and says where.
  - driver: location
    options:
      manual: { latitude: 47.3977, longitude: 8.5454 }
  # The demo flies a simulated drone that sends to this port.
  - driver: mavlink
    options:
      links:
        - { kind: udp_listen, host: ${loopback}, port: ${drone_port} }
${devices}feeds:
  rates_hz: { default: 0.2, gps: 1 }
# A demo is watched: its figures may leave more often than on a metered link.
telemetry:
  pace_s: 2
`;
}

/** A simulated drone for the driver to find, unless the configuration was changed to have none. */
async function flyDrone({ drivers: configured }: Config, signal: AbortSignal): Promise<void> {
  const options = droneLinks.safeParse(configured.find(({ driver }) => driver.name === 'mavlink')?.options);
  const port = options.data?.links.find(({ kind }) => kind === 'udp_listen')?.port;
  if (port === undefined) return;
  const { SimVehicle } = await import('../../drivers/mavlink/sim/sim-vehicle.ts');
  const drone = new SimVehicle(
    {
      autopilot: 'ardupilot',
      sysid: 1,
      uid: '00000000000de300',
      host: loopback,
      port,
      home: { lat: 47.397742, lon: 8.545594, alt_amsl_m: 488 },
      airborne: true,
    },
    signal,
  );
  await drone.start();
}

/** What can be asked of the devices of the demo, as long as the configuration has their drivers. */
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
    `${paint('bold', config.kit_name ?? 'kit')} ${config.kit_id}: this machine is the gateway, what it measures goes to ${broker_url}${own ? ' (in this process)' : ''}.`,
    `Configuration and buffer: ${config.state_dir}${lacks ? ' (without some devices of the demo; remove it to have them all)' : ''}`,
    '',
    'In a second terminal, what a cloud sees:',
    paint(
      'bold',
      `  mosquitto_sub -h ${own ? loopback : new URL(broker_url).hostname} -p ${port} -t '${contract_major}/#' -v`,
    ),
    'and what a technician sees and does:',
    command('status --watch'),
    command('tail --feed telemetry'),
    command('task'),
    ...examples.filter(([driver]) => configured.has(driver)).map(([, words]) => command(words)),
    '',
    `Published now (Ctrl-C stops):`,
  ];
}
