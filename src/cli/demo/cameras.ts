/** The two cameras of the demo: their configuration, and the simulated devices. */
import { join } from 'node:path';
import type { Config } from '../../config/config.ts';
import { demoEntry, type DemoEntry, passwordIn, tried, writePassword } from './devices.ts';
import { loopback } from './embedded-broker.ts';
import { freeTcpPort } from './free-ports.ts';

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
