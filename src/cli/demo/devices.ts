/** Shared by the simulated devices of the demo: finding their entries in the configuration, and the error of a failed start. */
import { writeFile } from 'node:fs/promises';
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { z } from 'zod';
import type { Config } from '../../kit/config/config.ts';
import { messageOf } from '../../platform/errors.ts';
import { texts } from '../texts.ts';
import { loopback } from '../daemon/embedded-broker.ts';
import { readTextUpTo, small_bytes_max } from '../../platform/bounded-file.ts';
import { freeTcpPort } from './free-ports.ts';

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
export async function demoCameras(dir: string): Promise<string> {
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
export async function startDemoCameras(config: Config, signal: AbortSignal): Promise<readonly string[]> {
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
export async function demoRadio(dir: string): Promise<string> {
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
export async function startDemoRadio(config: Config, signal: AbortSignal): Promise<readonly string[]> {
  const entry = demoEntry(config, 'vendorradio', 'radios', mast);
  if (!entry) return [];
  const failure = await tried(mast, async () => {
    const { startSimRadio } = await import('../../../drivers/vendorradio/sim/sim-radio.ts');
    const user = { name: radio_username, password: await passwordIn(entry.password_file) };
    await startSimRadio({ mac, user }, entry.port, signal);
  });
  return failure === undefined ? [] : [failure];
}
