/** `kit-connector service doctor`: checks what the service for many kits needs, with the words and exit codes of the kit's doctor. */
import { dirname, resolve } from 'node:path';
import type { StandaloneConfig } from '../../kit/config/standalone.ts';
import { messageOf } from '../../platform/errors.ts';
import { day_ms } from '../../platform/time.ts';
import { checkBrokerSession, useOfService } from '../doctor/broker-session.ts';
import { checkProfile } from '../doctor/broker-profile.ts';
import {
  type Check,
  runChecks,
  splitSentence,
  splitWarning,
  versionsFinding,
  withAccepted,
} from '../doctor/checks.ts';
import { checkClock } from '../doctor/clock.ts';
import { checkDisk } from '../doctor/disk.ts';
import { type Finding, fail, ok, plain, warn } from '../doctor/finding.ts';
import { checkNetwork, reach } from '../doctor/network.ts';
import { checkConfigFile, checkSecretFiles } from '../doctor/permissions.ts';
import { placesOf } from '../doctor/places.ts';
import { serviceUser } from '../doctor/service-user.ts';
import { credential_store, credentialStore, withStoredSecrets } from '../doctor/stored-secrets.ts';
import { texts } from '../doctor/texts.ts';
import { filesIn } from '../doctor/touchpoints.ts';
import { checkUnit } from '../doctor/unit.ts';
import { type DoctorOptions, reportFindings } from '../doctor.ts';
import { type Shell, size } from '../terminal/shell.ts';
import {
  askService,
  type DatabaseLook,
  lookAtDatabase,
  readServiceFile,
  service_unit,
  type ServiceFile,
} from './look.ts';

/** Least free space beside a database in a file. */
const free_bytes_min = 500_000_000;
const expires_soon_ms = 14 * day_ms;
/** Of the connections that PostgreSQL allows: a replica that starts takes eight. */
const connections_left_min = 10;

export async function doctorOfService(
  { config, ntp, json }: Omit<DoctorOptions, 'socket'>,
  shell: Shell,
): Promise<number> {
  const credentials_dir = shell.env['CREDENTIALS_DIRECTORY'];
  const findings = await examineService({ config_file: config, ntp, credentials_dir }, shell.signal);
  return reportFindings(findings, { ...(json && { json }) }, shell);
}

interface Patient {
  readonly config_file: string;
  /** Time server to ask; the one of systemd-timesyncd when undefined. */
  readonly ntp: string | undefined;
  readonly credentials_dir: string | undefined;
}

/** Never rejects: a failed check is a finding. Takes 20 s at most. */
export async function examineService(
  { config_file, ntp, credentials_dir }: Patient,
  signal: AbortSignal,
): Promise<readonly Finding[]> {
  const read = await readServiceFile(config_file, credentials_dir);
  const { config, database, value, isPackaged } = read;
  const secrets = filesIn(value, 'the service', dirname(resolve(config_file)));
  const user = isPackaged ? serviceUser(undefined, undefined, service_unit) : Promise.resolve(undefined);
  const checks: readonly Check[] = [
    ['service', async (over) => (config ? [await serviceFinding(config, over)] : [])],
    ['restarts', async () => (isPackaged ? checkUnit(service_unit) : [])],
    ['clock', async (over) => checkClock({ server: ntp, trusted: undefined }, over)],
    ['permissions', async () => checkConfigFile(config_file, await user)],
    ['secrets', async () => checkSecretFiles(secrets, await user)],
    ['broker', async (over) => (config ? checkSource(config, read, over) : [])],
    ['database', async () => (database ? checkDatabase(database) : [])],
  ];
  const configuration = config
    ? [ok('configuration', texts.service_file_valid(config_file)), ...config.warnings.map(splitWarning)]
    : read.faults.map((fault) => fail('configuration', ...splitSentence(fault)));
  const findings = [versionsFinding(), ...configuration, ...(await runChecks(checks, signal))];
  return withAccepted(findings, config?.doctor.accepted);
}

async function serviceFinding(config: StandaloneConfig, signal: AbortSignal): Promise<Finding> {
  const answer = await askService(config, signal);
  const { host, port } = config.listen;
  const place = `${host}:${port}`;
  switch (answer.state) {
    case 'ready':
      return ok('service', texts.service_ready(place));
    case 'unready':
      return fail('service', texts.service_unready(place, plain(answer.reason)), texts.see_below);
    case 'stopped':
      return warn('service', texts.service_stopped(place), texts.start_service);
    case 'unknown':
    default:
      return warn(
        'service',
        texts.service_unknown(place, plain(answer.reason)),
        texts.see_journal(service_unit),
      );
  }
}

/** Where the messages of kits come from. */
async function checkSource(
  config: StandaloneConfig,
  { value, isPackaged }: ServiceFile,
  over: AbortSignal,
): Promise<readonly Finding[]> {
  const { broker, amqp, client_id, share } = config;
  if (amqp) return checkQueue(amqp, config, over);
  if (!broker) return [];
  const full = isPackaged ? await withStoredSecrets(broker, credential_store, service_unit) : broker;
  const places = placesOf(value, isPackaged ? await credentialStore() : 'none', service_unit);
  const way = [...checkProfile(broker), ...(await checkNetwork(full, over, places))];
  // A running service that is connected has just done the same, and another login could end its session.
  const { state } = await askService(config, over);
  if (state === 'ready' || way.some(({ level }) => level === 'fail')) return way;
  return [...way, ...(await checkBrokerSession(useOfService(client_id, share), full, over, places))];
}

/** The queue is made where it is missing, as the service does, and nothing is taken from it. */
async function checkQueue(
  amqp: NonNullable<StandaloneConfig['amqp']>,
  config: StandaloneConfig,
  over: AbortSignal,
): Promise<readonly Finding[]> {
  const findings: Finding[] = [];
  for (const each of amqp.urls) {
    const { hostname, port, protocol } = new URL(each);
    const reached = await reach(
      'broker tcp',
      hostname,
      Number(port) || (protocol === 'amqps:' ? 5671 : 5672),
      over,
    );
    findings.push(reached);
    if (reached.level !== 'ok' || (await askService(config, over)).state === 'ready') continue;
    findings.push(
      await (await import('../../cloud/amqp/session.ts')).tryQueue(each, amqp).then(
        (waiting) => ok('broker login', texts.queue_open(amqp.queue, amqp.username, waiting)),
        (error: unknown) =>
          fail(
            'broker login',
            texts.queue_closed(each, plain(messageOf(error))),
            texts.check_queue_rights(amqp.username),
          ),
      ),
    );
  }
  return findings;
}

async function checkDatabase(choice: StandaloneConfig['database']): Promise<readonly Finding[]> {
  const disk =
    choice.kind === 'sqlite'
      ? await checkDisk(dirname(choice.file), {
          bytes_min: free_bytes_min,
          low: texts.minimum_of_database,
          soon: texts.free_space_database,
        })
      : [];
  const look = await lookAtDatabase(choice);
  return [...disk, databaseFinding(look), ...serverFindings(look), ...contentFindings(look)];
}

function databaseFinding({ name, server, state, fault, schema_version }: DatabaseLook): Finding {
  const where = server ? `${name} (PostgreSQL ${server.server}, ${size(server.bytes)})` : name;
  if (fault !== undefined)
    return fail('database', ...splitSentence(plain(fault), texts.check_database(name)));
  if (state === 'absent') return warn('database', texts.no_tables(where), texts.start_service);
  return ok('database', texts.tables_of(where, schema_version));
}

function serverFindings({ server, state }: DatabaseLook): readonly Finding[] {
  if (!server) return [];
  const { is_standby, may_create, closed, replication, replicas, connections, connections_max } = server;
  const left = connections_max - connections;
  return [
    ...(is_standby ? [fail('database server', texts.is_standby, texts.name_primary)] : []),
    ...(closed.length > 0
      ? [fail('database rights', texts.tables_closed(closed.join(', ')), texts.grant_tables)]
      : []),
    ...(state === 'absent' && !may_create
      ? [fail('database rights', texts.may_not_create, texts.grant_create)]
      : []),
    ...(left < connections_left_min
      ? [warn('database connections', texts.connections_left(left, connections_max), texts.raise_connections)]
      : []),
    ...(replication === undefined ? [] : [warn('replication', ...splitSentence(replication))]),
    ok('replicas', texts.replicas_connected(replicas)),
  ];
}

function contentFindings({ content }: DatabaseLook): readonly Finding[] {
  if (!content) return [];
  const { kits, keys, webhooks } = content;
  return [
    kits.known > 0 && kits.online === 0
      ? warn('kits', texts.no_kit_online(kits.known), texts.look_at_kits)
      : ok('kits', texts.kits_online(kits.online, kits.known)),
    keysFinding(keys, Date.now()),
    ...webhooks.flatMap((webhook) => webhookFindings(webhook)),
  ];
}

function keysFinding(keys: NonNullable<DatabaseLook['content']>['keys'], now_ms: number): Finding {
  const labels = (until_ms: number): string =>
    keys
      .filter(({ expires_ms }) => expires_ms !== null && expires_ms < until_ms)
      .map(({ label }) => plain(label))
      .join(', ');
  const valid = keys.filter(({ expires_ms }) => expires_ms === null || expires_ms >= now_ms);
  const [over, soon] = [labels(now_ms), labels(now_ms + expires_soon_ms)];
  if (valid.length === 0) return warn('keys', texts.no_valid_key, texts.add_key);
  if (over !== '') return warn('keys', texts.keys_expired(over), texts.renew_key);
  if (soon !== '') return warn('keys', texts.keys_expire(soon), texts.renew_key);
  return ok('keys', texts.keys_valid(valid.length));
}

/** The address of a receiver may be its secret: only the label is named. */
function webhookFindings({
  label,
  disabled_reason,
  last_fault,
  counts: { dead },
}: NonNullable<DatabaseLook['content']>['webhooks'][number]): readonly Finding[] {
  const what = `webhook ${plain(label)}`;
  if (disabled_reason !== null)
    return [warn(what, texts.webhook_disabled(plain(disabled_reason)), texts.enable_webhook)];
  if (dead > 0) return [warn(what, texts.webhook_dead(dead, plain(last_fault ?? '')), texts.retry_webhook)];
  return [];
}
