/** What the doctor looks at: the machine, the configuration, the broker, the running daemon and its devices. */
import { dirname, resolve, join } from 'node:path';
import { readdir, access, realpath } from 'node:fs/promises';
import { constants } from 'node:fs';
import { drivers as driver_list } from '../../../drivers/index.ts';
import { type BrokerConfig, no_broker } from '../../kit/config/broker.ts';
import {
  type Config,
  config_file_default,
  controlSocket,
  readConfig,
  readControlSocket,
} from '../../kit/config/config.ts';
import { cautionsOf } from '../../kit/config/drivers.ts';
import { no_kit_id } from '../../kit/config/identity.ts';
import { runtime_dir_default } from '../../kit/config/schema.ts';
import { parseSource, readSource } from '../../kit/config/source.ts';
import { ConfigInvalid, hasCode, messageOf, systemReason } from '../../platform/errors.ts';
import { DaemonUnavailable, localClient, type LocalClient } from '../../kit/local/client.ts';
import { isAnswered } from '../../kit/local/server.ts';
import { Semaphore } from '../../platform/semaphore.ts';
import { within } from '../../platform/time.ts';
import { checkProfile } from './broker-profile.ts';
import { checkBrokerSession, useOfKit } from './broker-session.ts';
import {
  type Check,
  runChecks,
  splitSentence,
  splitWarning,
  versionsFinding,
  withAccepted,
  warningHalves,
} from './checks.ts';
import { checkClock } from './clock.ts';
import { bufferRoom, checkDisk } from './disk.ts';
import { type Finding, fail, ok, plain, warn } from './finding.ts';
import { kitFindings } from './kit.ts';
import { checkListeners, type Listener, holdersOf } from './listeners.ts';
import { checkNetwork, reach } from './network.ts';
import { checkConfigFile, checkPing, checkSecretFiles, isClosed } from './permissions.ts';
import { keys_only, type Places, placesOf } from './places.ts';
import { service_name, serviceUser, obstacle, type ServiceUser } from './service-user.ts';
import { credentialStore, withStoredSecrets } from './stored-secrets.ts';
import { texts } from './texts.ts';
import { checkUnit } from './unit.ts';
import { type Host, touchpointsOf, type Touchpoints, type SerialPort } from './touchpoints.ts';

/** Other checks wait for its answer. */
const daemon_ms = 4_000;
/** Devices are on the local network of the kit. */
const host_ms = 2_500;
const hosts_at_once = 8;
const hosts_max = 128;

interface Patient {
  readonly config_file: string;
  /** Control socket; the configuration's when undefined. */
  readonly socket: string | undefined;
  /** Time server to ask; the one of systemd-timesyncd when undefined. */
  readonly ntp: string | undefined;
  readonly credentials_dir: string | undefined;
}

/** Never rejects: a failed check is a finding. Takes 20 s at most. */
export async function examine(patient: Patient, signal: AbortSignal): Promise<readonly Finding[]> {
  const read = await readWhole(patient);
  const client = localClient(patient.socket ?? read.socket, signal);
  const daemon = askDaemon(client, patient.socket ?? read.socket, read);
  const user = read.isService ? serviceUser() : Promise.resolve(undefined);
  const checks: readonly Check[] = [
    [
      'clock',
      async (over) => checkClock({ server: patient.ntp, trusted: read.config?.clock === 'trusted' }, over),
    ],
    ['permissions', async () => checkConfigFile(patient.config_file, await user)],
    ['journal', async () => checkJournal()],
    ['restarts', async () => (read.isService ? checkUnit(service_name) : [])],
    ...(read.config ? configChecks(read.config, { ...read, user }, daemon) : []),
    ['daemon', async () => (await daemon).findings],
  ];
  const findings = [versionsFinding(), ...read.findings, ...(await runChecks(checks, signal))];
  return withAccepted(findings, read.config?.doctor.accepted);
}

function configChecks(
  config: Config,
  { touched, places, user }: Read & { readonly user: Promise<ServiceUser | undefined> },
  daemon: Promise<Daemon>,
): readonly Check[] {
  const brokers = brokersOf(config);
  return [
    ['disk', async () => checkDisk(config.state_dir, bufferRoom(config))],
    ...brokers.map((broker, n): Check => [
      'broker',
      async (over) =>
        named(broker, n, [
          ...checkProfile(broker),
          ...(await checkNetwork(await withStoredSecrets(broker), over, places)),
        ]),
    ]),
    ...brokers.map((broker, n): Check => [
      'broker login',
      async (over) =>
        (await daemon).runs || config.kit_id === no_kit_id
          ? []
          : named(
              broker,
              n,
              await checkBrokerSession(
                useOfKit(config.kit_id),
                await withStoredSecrets(broker),
                over,
                places,
              ),
            ),
    ]),
    ['secrets', async () => checkSecretFiles(touched.secrets, await user)],
    ...(config.drivers.some(({ driver }) => driver.name === 'links')
      ? [['ping', checkPing] satisfies Check]
      : []),
    ['serial ports', async () => checkSerialPorts(touched.ports, { user: await user })],
    ['ports', async () => checkListeners(listenersOf(config, touched), await daemon)],
    ['devices', async (over) => checkHosts(touched.hosts, over)],
  ];
}

function brokersOf({ broker }: Config): readonly BrokerConfig[] {
  return broker === undefined || broker.url === no_broker ? [] : [broker, ...(broker.others ?? [])];
}

/** The findings about a broker, which those behind the first carry the address of. */
function named(broker: BrokerConfig, n: number, findings: readonly Finding[]): readonly Finding[] {
  if (n === 0) return findings;
  return findings.map((each) => ({ ...each, finding: texts.of_broker(broker.url, each.finding) }));
}

function listenersOf({ metrics, service }: Config, { listeners }: Touchpoints): readonly Listener[] {
  const own = { metrics: metrics?.listen, service: service?.listen };
  return [
    ...Object.entries(own).flatMap(([what, listen]): readonly Listener[] =>
      listen ? [{ what, protocol: 'tcp', ...listen }] : [],
    ),
    ...listeners,
  ];
}

/** A few hosts at a time, since gateways and cameras have few resources. */
async function checkHosts(hosts: readonly Host[], over: AbortSignal): Promise<readonly Finding[]> {
  const turns = new Semaphore(hosts_at_once);
  const looks = hosts.slice(0, hosts_max).map(async (host) => turns.run(async () => checkHost(host, over)));
  return Promise.all(looks);
}

async function checkHost({ driver, name, host, port }: Host, over: AbortSignal): Promise<Finding> {
  const what = name === undefined ? texts.device_of(driver) : `${plain(name)} of ${driver}`;
  if (over.aborted) {
    return warn(what, texts.port_not_checked(host, port), texts.fix_those_first);
  }
  return reach(what, host, port, AbortSignal.any([over, AbortSignal.timeout(host_ms)]));
}

interface Daemon {
  /** It runs, or may run: its broker session must not be ended. */
  readonly runs: boolean;
  readonly findings: readonly Finding[];
}

async function askDaemon(client: LocalClient, socket: string, { places, config }: Read): Promise<Daemon> {
  try {
    const report = await within(daemon_ms, client.status());
    if (!report) return { runs: true, findings: [hung] };
    const refused = report.outbox.quarantined > 0 ? await client.quarantine().catch(() => []) : [];
    const known = new Set(config?.warnings);
    const warnings = (report.warnings ?? []).filter((sentence) => !known.has(sentence)).map(daemonWarning);
    return { runs: true, findings: [...kitFindings(report, refused, places), ...warnings] };
  } catch (error) {
    const [finding] = splitSentence(plain(messageOf(error)));
    if (isRefusedBy(error, 'EACCES', 'EPERM')) {
      return { runs: true, findings: [warn('daemon', finding, become_member)] };
    }
    const isStopped =
      error instanceof DaemonUnavailable &&
      !(await isAnswered(socket)) &&
      isRefusedBy(error, 'ENOENT', 'ECONNREFUSED');
    return isStopped
      ? { runs: false, findings: [warn('daemon', finding, start_it)] }
      : {
          runs: true,
          findings: [fail('daemon', finding, texts.restart_and_read_log)],
        };
  }
}

/** The systemd watchdog restarts it after half a minute. */
const hung = fail('daemon', texts.daemon_silent, texts.restart_hung_daemon);
const start_it = texts.start_daemon;

/** Whether the connection to the daemon failed with one of these error codes. */
function isRefusedBy(error: unknown, ...codes: readonly string[]): boolean {
  return error instanceof DaemonUnavailable && hasCode(error.cause, ...codes);
}

interface Read {
  readonly config: Config | undefined;
  readonly touched: Touchpoints;
  readonly places: Places;
  /** The configuration is that of the packaged service. */
  readonly isService: boolean;
  readonly socket: string;
  readonly findings: readonly Finding[];
}

/** The configuration, or all its faults and the defaults that apply without it. */
async function readWhole({ config_file, credentials_dir }: Patient): Promise<Read> {
  const isService = config_file === config_file_default;
  try {
    const config = await readConfig(config_file, { drivers: driver_list, credentials_dir });
    const { value } = parseSource(config_file, await readSource(config_file));
    const count = config.drivers.length;
    return {
      config,
      touched: touchpointsOf(value, config.drivers, dirname(resolve(config_file))),
      places: placesOf(value, isService ? await credentialStore() : 'none'),
      isService,
      socket: config.control_socket,
      findings: [
        ok(
          'configuration',
          texts.configuration_valid(config_file, count, count === 1 ? 'driver' : 'drivers'),
        ),
        ...config.warnings.map(splitWarning),
        ...cautionsOf(config.drivers).map(({ name, sentence }) =>
          warn(`settings of ${name}`, ...splitSentence(plain(sentence))),
        ),
      ],
    };
  } catch (error) {
    const faults = error instanceof ConfigInvalid ? error.faults : [messageOf(error)];
    const findings =
      isService && (await isClosed(config_file))
        ? [warn('configuration', texts.configuration_denied(config_file), become_member)]
        : faults.map((fault) => fail('configuration', ...splitSentence(fault)));
    return {
      config: undefined,
      touched: { ports: [], hosts: [], secrets: [], listeners: [] },
      places: keys_only,
      isService,
      socket: await readControlSocket(config_file).catch(() => controlSocket(runtime_dir_default)),
      findings,
    };
  }
}

const become_member = texts.join_group;

/** Warnings of the daemon: a damaged buffer, secrets that this user cannot read, changes that require a restart. */
function daemonWarning(sentence: string): Finding {
  return warn('kit', ...warningHalves(plain(sentence)));
}

const journals = ['/var/log/journal', '/run/log/journal'] as const;

/** No finding where it can be read, or where no journal is kept. It is no fault of the kit, and needs no look. */
export async function checkJournal(
  folders: readonly string[] = journals,
  isDenied: (file: string) => Promise<boolean> = isClosed,
): Promise<readonly Finding[]> {
  for (const folder of folders) {
    for (const machine of await readdir(folder).catch(() => [])) {
      if (await isDenied(join(folder, machine, 'system.journal')))
        return [{ level: 'ok', what: 'journal', finding: texts.journal_denied, remedy: texts.join_adm }];
    }
  }
  return [];
}

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
