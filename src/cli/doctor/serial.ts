/** Checks the serial ports of the configured drivers: connected, permitted, and not used by another program. */
import { constants } from 'node:fs';
import { access, readdir, realpath } from 'node:fs/promises';
import { join } from 'node:path';
import { systemReason } from '../../errors.ts';
import { type Finding, fail, ok, warn } from './finding.ts';
import { holdersOf } from './holders.ts';
import { obstacle, type ServiceUser } from './service-user.ts';
import { texts } from './texts.ts';
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
  const what = texts.serial_port(driver);
  const device = await realpath(path).catch(() => undefined);
  if (device === undefined) {
    const others = await readdir(by_id).catch(() => []);
    const seen =
      others.length > 0 ? texts.ports_connected(others.map((name) => join(by_id, name)).join(', ')) : '';
    return fail(what, texts.port_not_found(path, seen), texts.connect_radio);
  }
  const refusal = await access(device, constants.R_OK | constants.W_OK).then(
    () => undefined,
    (error: unknown) => systemReason(error),
  );
  if (refusal !== undefined) {
    return fail(what, texts.port_denied(path, refusal), texts.join_dialout);
  }
  const barred = user && (await obstacle(device, user, { write: true }));
  if (barred) return fail(what, barred.finding, barred.remedy);
  const holder = (await holdersOf(device, proc)).find(({ isOurs }) => !isOurs);
  return holder === undefined
    ? ok(what, texts.port_accessible(path))
    : warn(what, texts.serial_port_used(path, holder.name), texts.exclude_port);
}
