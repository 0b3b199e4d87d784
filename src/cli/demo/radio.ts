/** The radio of the demo: its configuration, and the simulated device. */
import { join } from 'node:path';
import type { Config } from '../../config/config.ts';
import { demoEntry, passwordIn, tried, writePassword } from './devices.ts';
import { loopback } from './embedded-broker.ts';
import { freeTcpPort } from './free-ports.ts';

const mast = 'Mast radio';
const username = 'kit';
const mac = '02:00:00:00:0D:02';

/** Returns the driver section as YAML, and writes the password file. */
export async function demoRadio(dir: string): Promise<string> {
  const password_file = join(dir, 'radio-password');
  await writePassword(password_file);
  const login = `username: ${username}, password_file: ${JSON.stringify(password_file)}`;
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
    const user = { name: username, password: await passwordIn(entry.password_file) };
    await startSimRadio({ mac, user }, entry.port, signal);
  });
  return failure === undefined ? [] : [failure];
}
