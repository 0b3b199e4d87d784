/** Checks the serial ports of the configured drivers: connected, permitted, and not used by another program. */
import { constants } from 'node:fs';
import { access, readdir, realpath } from 'node:fs/promises';
import { join } from 'node:path';
import { systemReason } from '../../errors.ts';
import { type Finding, fail, ok, warn } from './finding.ts';
import { holdersOf } from './holders.ts';
import { obstacle, type ServiceUser } from './service-user.ts';
import type { SerialPort } from './touchpoints.ts';

const by_id = '/dev/serial/by-id';

/** `user`: that of the service, when run by root. `proc`: mount point of procfs. */
export async function checkSerialPorts(
  ports: readonly SerialPort[],
  { user, proc = '/proc' }: { readonly user?: ServiceUser | undefined; readonly proc?: string } = {},
): Promise<readonly Finding[]> {
  return Promise.all(ports.map(async (port) => checkPort(port, user, proc)));
}

async function checkPort(
  { driver, path }: SerialPort,
  user: ServiceUser | undefined,
  proc: string,
): Promise<Finding> {
  const what = `serial port of ${driver}`;
  const device = await realpath(path).catch(() => undefined);
  if (device === undefined) {
    const others = await readdir(by_id).catch(() => []);
    const seen =
      others.length > 0 ? `; connected ports are ${others.map((name) => join(by_id, name)).join(', ')}` : '';
    return fail(
      what,
      `${path} not found${seen}`,
      'connect the radio, try another cable, or correct the path',
    );
  }
  const refusal = await access(device, constants.R_OK | constants.W_OK).then(
    () => undefined,
    (error: unknown) => systemReason(error),
  );
  if (refusal !== undefined) {
    return fail(
      what,
      `cannot open ${path} (${refusal})`,
      'add the user of the daemon to the group of the port (usually: adduser kit-connector dialout), then restart it',
    );
  }
  const barred = user && (await obstacle(device, user, { write: true }));
  if (barred) return fail(what, barred.finding, barred.remedy);
  const holder = (await holdersOf(device, proc)).find(({ isOurs }) => !isOurs);
  return holder === undefined
    ? ok(what, `${path} is accessible`)
    : warn(
        what,
        `${path} is used by ${holder.name}`,
        'stop that program, or exclude the port from it (ModemManager: ID_MM_DEVICE_IGNORE)',
      );
}
