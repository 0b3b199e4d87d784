/** Validates the configuration before setup writes it, and checks that the broker accepts the kit. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { drivers } from '../../../drivers/index.ts';
import { no_broker } from '../../config/broker.ts';
import { type Config, readConfig } from '../../config/config.ts';
import { no_kit_id } from '../../config/identity.ts';
import { ConfigInvalid } from '../../errors.ts';
import { localClient } from '../../local/client.ts';
import { isAnswered } from '../../local/server.ts';
import { within } from '../../platform/time.ts';
import { checkBrokerSession } from '../doctor/broker-session.ts';
import { type Finding, mostSevere, ok, warn } from '../doctor/finding.ts';
import { checkNetwork } from '../doctor/network.ts';
import { texts } from '../texts.ts';
import type { SetupAnswers } from './answers.ts';
import { configText, type Found } from './text.ts';

const trial_ms = 8_000;
const grace_ms = 2_000;
const secret_mode = 0o600;

/** The configuration as read from `file`. Throws `ConfigInvalid` with every fault, as if the file were written. */
export async function readDraft(
  file: string,
  { password, kit_id, password_file: kept, ...answers }: SetupAnswers,
  found: readonly Found[],
): Promise<Config> {
  const dir = await mkdtemp(join(tmpdir(), 'kit-connector-setup-'));
  try {
    const draft = join(dir, 'config.yaml');
    const password_file = password === undefined ? kept : join(dir, 'password');
    if (password !== undefined)
      await writeFile(join(dir, 'password'), `${password}\n`, { mode: secret_mode });
    await writeFile(draft, configText({ ...answers, kit_id: kit_id || undefined, password_file }, found), {
      mode: secret_mode,
    });
    return await readConfig(draft, { drivers, credentials_dir: undefined }).catch((error: unknown) => {
      if (!(error instanceof ConfigInvalid)) throw error;
      throw new ConfigInvalid(error.faults.map((fault) => fault.replaceAll(draft, file)));
    });
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
}

/** Whether a running daemon has a broker session, or may have one. That of a new package has no broker configured. */
async function hasSession(socket: string, signal: AbortSignal): Promise<boolean> {
  if (!(await isAnswered(socket))) return false;
  const report = await localClient(socket, signal)
    .status()
    .catch(() => undefined);
  return report?.uplink.broker !== no_broker;
}

/**
 * Connects to the broker and returns findings; none without a broker. Takes 10 s at most, and never rejects. Remedies name
 * `password_place`, since the files are not in their final places yet.
 */
export async function tryBroker(
  config: Config,
  password_place: string,
  signal: AbortSignal,
): Promise<readonly Finding[]> {
  const { broker, kit_id } = config;
  if (!broker || broker.url === no_broker) return [];
  if (kit_id === no_kit_id) return [ok('broker login', texts.login_needs_id)];
  const places = { password: password_place, ca: '--ca', isBlind: false };
  const over = AbortSignal.any([signal, AbortSignal.timeout(trial_ms)]);
  const look = async (): Promise<readonly Finding[]> => {
    const way = await checkNetwork(broker, over, places);
    if (mostSevere(way) === 'fail') return way;
    if (await hasSession(config.control_socket, over)) {
      return [...way, ok('broker login', texts.login_in_use)];
    }
    return [...way, ...(await checkBrokerSession(kit_id, broker, over, places))];
  };
  const found = await within(trial_ms + grace_ms, look(), signal);
  return found ?? [warn('broker', 'timed out', texts.run_doctor_later)];
}
