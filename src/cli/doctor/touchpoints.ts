/** What the options of the configured drivers name on this machine and on the network: serial ports, hosts, secret files. Pure. */
import { z } from 'zod';
import type { DriverInstance } from '../../config/drivers.ts';

export interface SerialPort {
  readonly driver: string;
  readonly path: string;
}

export interface Host {
  readonly driver: string;
  readonly host: string;
  readonly port: number;
}

export interface SecretFile {
  readonly driver: string;
  readonly path: string;
}

export interface Touchpoints {
  readonly ports: readonly SerialPort[];
  readonly hosts: readonly Host[];
  readonly secrets: readonly SecretFile[];
}

const fileDrivers = z.object({
  drivers: z.array(z.object({ options: z.record(z.string(), z.unknown()).catch({}) })).catch([]),
});

const serialPort = z.object({ kind: z.literal('serial'), path: z.string() });
const host = z.object({
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
/** Links that wait for others, and those whose peer cannot be asked with TCP. */
const not_dialled: ReadonlySet<string> = new Set(['udp_listen', 'udp_client', 'tcp_listen', 'snmp']);

/** Ports of drivers whose hosts are reached by TCP, without and with TLS, where the options give none. */
const default_ports: Readonly<Record<string, readonly [number, number]>> = {
  onvif: [80, 443],
  vendorcam: [80, 443],
  vendorradio: [80, 443],
  mavlink: [5760, 5760],
  location: [2947, 2947],
  power: [3493, 3493],
};

/** `file_value` is the configuration file as parsed; the drivers are those that `readConfig` made of it, in its order. */
export function touchpointsOf(file_value: unknown, drivers: readonly DriverInstance[]): Touchpoints {
  const sections = fileDrivers.safeParse(file_value).data?.drivers ?? [];
  const found = {
    ports: new Array<SerialPort>(),
    hosts: new Array<Host>(),
    secrets: new Array<SecretFile>(),
  };
  for (const [at, { name, driver }] of drivers.entries()) {
    const options = driver.options.safeParse(sections[at]?.options ?? {}).data;
    for (const node of objectsOf(options)) {
      const port = serialPort.safeParse(node).data;
      if (port) found.ports.push({ driver: name, path: port.path });
      const dialled = hostOf(node, driver.name);
      if (dialled) found.hosts.push({ driver: name, ...dialled });
      for (const [key, value] of Object.entries(node)) {
        if (secret_keys.has(key) && typeof value === 'string') {
          found.secrets.push({ driver: name, path: value });
        }
      }
    }
  }
  return found;
}

function hostOf(node: object, driver: string): Omit<Host, 'driver'> | undefined {
  const ports = default_ports[driver];
  const read = ports && host.safeParse(node).data;
  if (!read || not_dialled.has(read.kind ?? '')) return undefined;
  const isSecure = read.tls !== undefined && read.tls !== false;
  return { host: read.host, port: read.port ?? ports[isSecure ? 1 : 0] ?? 0 };
}

/** The value and every object within. */
function* objectsOf(value: unknown): Generator<object> {
  if (typeof value !== 'object' || value === null) return;
  if (!Array.isArray(value)) yield value;
  const inner: readonly unknown[] = Object.values(value);
  for (const each of inner) yield* objectsOf(each);
}
