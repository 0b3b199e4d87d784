/** Reads a radio over SNMP v2c or v3 with net-snmp, whose sessions and errors stay in this file. Never sets a value. */
import snmp from 'net-snmp';
import { connectionFault } from '../../../src/toolkit/device/connection-fault.ts';
import { DeviceRejected, DeviceUnreachable, messageOf } from '../../../src/platform/errors.ts';
import { within } from '../../../src/platform/time.ts';
import type { Limits } from '../limits.ts';
import { texts } from '../texts.ts';
import { type GuardOptions, guardSocket } from './guarded-socket.ts';

export type SnmpLogin =
  | { readonly version: '2c'; readonly community: string }
  | {
      readonly version: '3';
      readonly username: string;
      readonly auth:
        | { readonly protocol: 'md5' | 'sha' | 'sha256' | 'sha512'; readonly key: string }
        | undefined;
      readonly priv: { readonly protocol: 'aes' | 'des'; readonly key: string } | undefined;
    };

/** A number, a text as bytes, or an OID; a value that the agent does not have is left out. */
export type SnmpValue = number | string | Buffer;

export interface SnmpSession {
  /** By OID, those the agent has. */
  readonly get: (oids: readonly string[]) => Promise<ReadonlyMap<string, SnmpValue>>;
  /** The rows of a column, by their index. */
  readonly column: (oid: string) => Promise<ReadonlyMap<string, SnmpValue>>;
  readonly close: () => void;
}

/** The agent refused the user or its passwords. */
export class SnmpRefused extends DeviceRejected {}

interface SnmpOptions extends GuardOptions {
  readonly limits: Limits;
}

export function openSnmp(
  host: string,
  port: number,
  login: SnmpLogin,
  { limits, ...ways }: SnmpOptions,
): SnmpSession {
  const broken = Promise.withResolvers<never>();
  broken.promise.catch(() => undefined);
  const guard = guardSocket(port, (error) => broken.reject(unreadable(error)), ways);
  const session = sessionTo(host, login, { ...optionsOf(host, port, limits), dgramModule: guard.dgram });
  session.on('error', (error) => {
    if (guard.isForeign()) return;
    broken.reject(guard.isReading() ? unreadable(error) : failureOf(error, login));
  });
  let isClosed = false;
  const close = (): void => {
    if (isClosed) return;
    isClosed = true;
    broken.reject(new DeviceUnreachable(texts.connector_stopping));
    session.close();
  };

  const ask = async (
    send: (done: (error: Error | null, varbinds?: readonly snmp.Varbind[]) => void) => void,
  ): Promise<readonly snmp.Varbind[]> => {
    if (isClosed) return broken.promise;
    const answered = new Promise<readonly snmp.Varbind[]>((resolve, reject) => {
      send((error, varbinds) => {
        if (error) reject(failureOf(error, login));
        else resolve(varbinds ?? []);
      });
    });
    const settled = Promise.race([answered, broken.promise]);
    const kept = await within(limits.snmp_answer_ms, settled);
    if (kept) return kept;
    // Otherwise the library would repeat the request for as long as the agent asks for it.
    broken.reject(new DeviceUnreachable(`gave no answer over SNMP within ${limits.snmp_answer_ms} ms`));
    close();
    return broken.promise;
  };

  return {
    async get(oids) {
      const values = new Map<string, SnmpValue>();
      for (let at = 0; at < oids.length; at += limits.snmp_oids_max) {
        const some = oids.slice(at, at + limits.snmp_oids_max);
        for (const varbind of await ask((done) => session.get(some, done)))
          keep(varbind, varbind.oid, values);
      }
      return values;
    },
    async column(oid) {
      // Repeated bulk requests, since net-snmp's walk stops after one row with some agents.
      return walk(oid, limits.snmp_rows_max, async (from) =>
        ask((done) => {
          session.getBulk([from], 0, limits.snmp_repetitions, (error, answer) => done(error, answer?.flat()));
        }),
      );
    },
    close,
  };
}

/** The rows below `oid`. Ends when an answer has no new row: some agents repeat their rows endlessly. */
export async function walk(
  oid: string,
  rows_max: number,
  ask: (from: string) => Promise<readonly snmp.Varbind[]>,
): Promise<ReadonlyMap<string, SnmpValue>> {
  const rows = new Map<string, SnmpValue>();
  let last = oid;
  while (rows.size < rows_max) {
    const before = rows.size;
    for (const varbind of await ask(last)) {
      if (!varbind.oid.startsWith(`${oid}.`) || snmp.isVarbindError(varbind)) return rows;
      keep(varbind, varbind.oid.slice(oid.length + 1), rows);
      last = varbind.oid;
    }
    if (rows.size === before) return rows;
  }
  return rows;
}

function optionsOf(host: string, port: number, limits: Limits) {
  return {
    port,
    timeout: limits.snmp_timeout_ms,
    retries: limits.snmp_retries,
    backoff: 1,
    transport: host.includes(':') ? ('udp6' as const) : ('udp4' as const),
  };
}

function sessionTo(host: string, login: SnmpLogin, options: snmp.SessionOptions): snmp.Session {
  return login.version === '2c'
    ? snmp.createSession(host, login.community, { ...options, version: snmp.Version2c })
    : snmp.createV3Session(host, userOf(login), { ...options, version: snmp.Version3 });
}

function userOf(login: Extract<SnmpLogin, { readonly version: '3' }>): snmp.User {
  const { username: name, auth, priv } = login;
  if (!auth) return { name, level: snmp.SecurityLevel.noAuthNoPriv };
  const authenticated = { name, authProtocol: snmp.AuthProtocols[auth.protocol], authKey: auth.key };
  if (!priv) return { ...authenticated, level: snmp.SecurityLevel.authNoPriv };
  const { protocol, key } = priv;
  return {
    ...authenticated,
    level: snmp.SecurityLevel.authPriv,
    privProtocol: snmp.PrivProtocols[protocol],
    privKey: key,
  };
}

/** A 64-bit number with the zero byte that keeps it positive. */
const counter_bytes_max = 9;

function keep(varbind: snmp.Varbind, key: string, values: Map<string, SnmpValue>): void {
  const value: unknown = varbind.value;
  if (snmp.isVarbindError(varbind)) return;
  if (
    varbind.type === snmp.ObjectType.Counter64 &&
    Buffer.isBuffer(value) &&
    value.length <= counter_bytes_max
  ) {
    const counted = Number(BigInt(`0x${value.toString('hex') || '0'}`));
    if (Number.isSafeInteger(counted)) values.set(key, counted);
  } else if (typeof value === 'number' || typeof value === 'string' || Buffer.isBuffer(value)) {
    values.set(key, value);
  }
}

/** The library fails on some answers that no agent may send. */
function unreadable(error: unknown): DeviceUnreachable {
  return new DeviceUnreachable(texts.snmp_foreign(messageOf(error)), { cause: error });
}

/** A wrong community and a dead host look the same on the wire: no answer. */
function failureOf(error: Error, login: SnmpLogin): Error {
  // Its type definitions lack the class.
  if (error.name === 'RequestTimedOutError') {
    return new DeviceUnreachable(login.version === '2c' ? texts.snmp_silent_community : texts.snmp_silent, {
      cause: error,
    });
  }
  if (login.version === '3' && error instanceof snmp.ResponseInvalidError) {
    return new SnmpRefused(texts.snmp_user_refused(messageOf(error)), { cause: error });
  }
  const fault = connectionFault(error, texts.snmp_refused_remedy) ?? texts.snmp_failed(messageOf(error));
  return new DeviceUnreachable(fault, { cause: error });
}
