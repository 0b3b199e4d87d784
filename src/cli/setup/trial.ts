/** Tries what setup would write before anything is written: whether it is right, and whether the broker takes the kit. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { drivers } from '../../../drivers/index.ts';
import { no_broker } from '../../config/broker.ts';
import { type Config, readConfig } from '../../config.ts';
import { ConfigInvalid } from '../../errors.ts';
import { localClient } from '../../local/client.ts';
import { isAnswered } from '../../local/server.ts';
import { within } from '../../platform/time.ts';
import { checkBrokerSession } from '../doctor/broker-session.ts';
import { type Finding, gravest, ok, warn } from '../doctor/finding.ts';
import { checkNetwork } from '../doctor/network.ts';
import type { Asked } from './answers.ts';
import { configText, type Found } from './text.ts';

/** What a remedy names here: nothing is in its place yet. */
const places = { password: 'the file of --password-file', ca: '--ca', isBlind: false } as const;
const trial_ms = 8_000;
const grace_ms = 2_000;
const secret_mode = 0o600;

/** The configuration as it would be read from `file`. Throws `ConfigInvalid` with every fault, as if it stood there. */
export async function readDraft(
  file: string,
  { password, ...answers }: Asked,
  found: readonly Found[],
): Promise<Config> {
  const dir = await mkdtemp(join(tmpdir(), 'kit-connector-setup-'));
  try {
    const draft = join(dir, 'config.yaml');
    const password_file = password === undefined ? undefined : join(dir, 'password');
    if (password_file !== undefined) await writeFile(password_file, `${password}\n`, { mode: secret_mode });
    await writeFile(draft, configText({ ...answers, password_file }, found), { mode: secret_mode });
    return await readConfig(draft, { drivers, credentials_dir: undefined }).catch((error: unknown) => {
      if (!(error instanceof ConfigInvalid)) throw error;
      throw new ConfigInvalid(error.faults.map((fault) => fault.replaceAll(draft, file)));
    });
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
}

/** Whether a daemon runs that is connected somewhere, or may be. The one of a new package knows no broker. */
async function hasSession(socket: string, signal: AbortSignal): Promise<boolean> {
  if (!(await isAnswered(socket))) return false;
  const report = await localClient(socket, signal)
    .status()
    .catch(() => undefined);
  return report?.uplink.broker !== no_broker;
}

/** How the broker takes it; nothing where there is no broker. Takes 10 s at most, and never rejects. */
export async function tryBroker(config: Config, signal: AbortSignal): Promise<readonly Finding[]> {
  const { broker, kit_id } = config;
  if (!broker || broker.url === no_broker) return [];
  const over = AbortSignal.any([signal, AbortSignal.timeout(trial_ms)]);
  const look = async (): Promise<readonly Finding[]> => {
    const way = await checkNetwork(broker, over, places);
    if (gravest(way) === 'fail') return way;
    if (await hasSession(config.control_socket, over)) {
      return [
        ...way,
        ok('broker login', 'not tried, since it would end the session of kit-connector, which runs'),
      ];
    }
    return [...way, ...(await checkBrokerSession(kit_id, broker, over, places))];
  };
  const found = await within(trial_ms + grace_ms, look(), signal);
  return (
    found ?? [warn('broker', 'has not answered in time', 'run kit-connector doctor when the kit is online')]
  );
}
