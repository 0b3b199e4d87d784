/** Collects the serial ports, hosts, listeners and secret files in the options of the configured drivers. Pure. */
import { resolve } from 'node:path';
import { z } from 'zod';
import type { DriverInstance } from '../../kit/config/drivers.ts';
import type { Listener } from './listeners.ts';

export interface SerialPort {
  readonly driver: string;
  readonly path: string;
}

export interface Host {
  readonly driver: string;
  /** Name of the device in the options. */
  readonly name?: string | undefined;
  readonly host: string;
  readonly port: number;
}

export interface SecretFile {
  /** Or `the broker`. */
  readonly driver: string;
  readonly path: string;
  /** A certificate, which every user may read. */
  readonly isPublic?: true;
}

export interface Touchpoints {
  readonly ports: readonly SerialPort[];
  readonly hosts: readonly Host[];
  readonly secrets: readonly SecretFile[];
  /** Ports that drivers listen on. */
  readonly listeners: readonly Listener[];
}

const fileDrivers = z.object({
  drivers: z.array(z.object({ options: z.record(z.string(), z.unknown()).catch({}) })).catch([]),
});

const fileSections = z.looseObject({ broker: z.unknown().optional(), metrics: z.unknown().optional() });

const listening = z.object({ kind: z.enum(['udp_listen', 'tcp_listen']), host: z.string(), port: z.int() });
const serialPort = z.object({ kind: z.literal('serial'), path: z.string() });
const host = z.object({
  name: z.string().optional(),
  host: z.string(),
  port: z.number().optional(),
  kind: z.string().optional(),
  tls: z.unknown().optional(),
});
const secret_keys: ReadonlySet<string> = new Set([
  'password_file',
  'key_file',
  'token_file',
  'community_file',
  'auth_password_file',
  'priv_password_file',
]);
/** Kinds of links that listen, or whose peer is not reachable over TCP. */
const not_dialled: ReadonlySet<string> = new Set(['udp_listen', 'udp_client', 'tcp_listen', 'snmp']);

/** Default ports of drivers whose hosts are reachable over TCP, without and with TLS. */
const default_ports: Readonly<Record<string, readonly [number, number]>> = {
  onvif: [80, 443],
  vendorcam: [80, 443],
  vendorradio: [80, 443],
  mavlink: [5760, 5760],
  location: [2947, 2947],
  power: [3493, 3493],
};

/**
 * `file_value` is the configuration file as parsed; the drivers are those of `readConfig`, in the same order.
 * `dir`: directory of the file, to which the paths of the broker's secrets are relative.
 */
export function touchpointsOf(
  file_value: unknown,
  drivers: readonly DriverInstance[],
  dir: string,
): Touchpoints {
  const file = fileSections.safeParse(file_value).data ?? {};
  const sections = fileDrivers.safeParse(file_value).data?.drivers ?? [];
  const found = {
    ports: new Array<SerialPort>(),
    hosts: new Array<Host>(),
    secrets: [...filesIn(file.broker, 'the broker', dir), ...filesIn(file.metrics, 'the metrics', dir)],
    listeners: new Array<Listener>(),
  };
  for (const [at, { name, driver }] of drivers.entries()) {
    const options = driver.options.safeParse(sections[at]?.options ?? {}).data;
    for (const node of objectsOf(options)) noteNode(node, { name, driver: driver.name }, found);
  }
  return found;
}

interface Noted {
  readonly ports: SerialPort[];
  readonly hosts: Host[];
  readonly secrets: SecretFile[];
  readonly listeners: Listener[];
}

/** `name`: of the instance. */
function noteNode(
  node: object,
  { name, driver }: { readonly name: string; readonly driver: string },
  found: Noted,
): void {
  const port = serialPort.safeParse(node).data;
  if (port) found.ports.push({ driver: name, path: port.path });
  const listened = listening.safeParse(node).data;
  if (listened) {
    const protocol = listened.kind === 'udp_listen' ? 'udp' : 'tcp';
    found.listeners.push({ what: `driver ${name}`, protocol, host: listened.host, port: listened.port });
  }
  const dialled = hostOf(node, driver);
  if (dialled) found.hosts.push({ driver: name, ...dialled });
  for (const [key, value] of Object.entries(node)) {
    if (secret_keys.has(key) && typeof value === 'string') found.secrets.push({ driver: name, path: value });
  }
}

/** The secrets and certificates that keys at any depth of the file name. */
export function filesIn(file_value: unknown, driver: string, dir: string): readonly SecretFile[] {
  return [...objectsOf(file_value)].flatMap((node) =>
    Object.entries(node).flatMap(([key, path]: [string, unknown]): readonly SecretFile[] => {
      if (typeof path !== 'string') return [];
      const isPublic = /(?:^|_)(?:ca|cert)_file$/u.test(key);
      const isSecret = /(?:^|_)(?:password|key|token)_file$/u.test(key);
      const file = { driver, path: resolve(dir, path) };
      return isPublic ? [{ ...file, isPublic }] : isSecret ? [file] : [];
    }),
  );
}

function hostOf(node: object, driver: string): Omit<Host, 'driver'> | undefined {
  const ports = default_ports[driver];
  const read = ports && host.safeParse(node).data;
  if (!read || not_dialled.has(read.kind ?? '')) return undefined;
  const isSecure = read.tls !== undefined && read.tls !== false;
  const { name, port = ports[isSecure ? 1 : 0] ?? 0 } = read;
  return { ...(name !== undefined && { name }), host: read.host, port };
}

/** The value and every object within. */
function* objectsOf(value: unknown): Generator<object> {
  if (typeof value !== 'object' || value === null) return;
  if (!Array.isArray(value)) yield value;
  const inner: readonly unknown[] = Object.values(value);
  for (const each of inner) yield* objectsOf(each);
}
