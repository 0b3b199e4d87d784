/** Reads a radio over SNMP v1, v2c or v3 with net-snmp, whose sessions and errors stay in this file. Never sets a value. */
import snmp from 'net-snmp';
import { connectionFault } from '../../../src/toolkit/device/connection-fault.ts';
import { DeviceRejected, DeviceUnreachable, messageOf } from '../../../src/platform/errors.ts';
import { within } from '../../../src/platform/time.ts';
import type { Limits } from '../limits.ts';
import { texts } from '../texts.ts';
import { createSocket, type RemoteInfo, type Socket, type SocketOptions, type SocketType } from 'node:dgram';
import { lookup as resolve } from 'node:dns';
import { EventEmitter } from 'node:events';
import type { LookupFunction } from 'node:net';
import type { DeviceName } from '../../../src/toolkit/device/device-name.ts';

export type SnmpLogin =
  | { readonly version: '1' | '2c'; readonly community: string }
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
  /** Version 1 has no numbers of 64 bits. */
  readonly hasCounter64: boolean;
  /** By OID, those the agent has. */
  readonly get: (oids: readonly string[]) => Promise<ReadonlyMap<string, SnmpValue>>;
  /** The rows of a column, by their index. */
  readonly column: (oid: string) => Promise<ReadonlyMap<string, SnmpValue>>;
  readonly close: () => void;
}

/** The agent refused the user or its passwords. */
export class SnmpRefused extends DeviceRejected {}

/** Of version 3: agent and session have another notion of its engine ID, boots or time, which says nothing about the password. */
class OutOfStep extends DeviceUnreachable {}

type Varbinds = readonly snmp.Varbind[];
type Send = (session: snmp.Session, done: (error: Error | null, varbinds?: Varbinds) => void) => void;

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
  const begin = (): snmp.Session => {
    const begun = sessionTo(host, login, { ...optionsOf(host, port, limits), dgramModule: guard.dgram });
    begun.on('error', (error) => {
      if (guard.isForeign()) return;
      broken.reject(guard.isReading() ? unreadable(error) : failureOf(error, login, guard));
    });
    return begun;
  };
  let session = begin();
  const beginAnew = (): void => {
    session.close();
    session = begin();
  };
  let isClosed = false;
  const close = (): void => {
    if (isClosed) return;
    isClosed = true;
    broken.reject(new DeviceUnreachable(texts.connector_stopping));
    session.close();
  };

  /** Null: the agent answers with an error for one of the OIDs, as that there is none or no right to it, or for their number. */
  const askOnce = async (send: Send): Promise<Varbinds | null> => {
    if (isClosed) return broken.promise;
    const answered = new Promise<Varbinds | null>((resolve, reject) => {
      send(session, (error, varbinds) => {
        if (error instanceof snmp.RequestFailedError) resolve(null);
        else if (error) reject(failureOf(error, login, guard));
        else resolve(varbinds ?? []);
      });
    });
    const settled = Promise.race([answered, broken.promise]);
    const kept = await within(limits.snmp_answer_ms, settled);
    if (kept !== undefined) return kept;
    // Otherwise the library would repeat the request for as long as the agent asks for it.
    broken.reject(new DeviceUnreachable(`gave no answer over SNMP within ${limits.snmp_answer_ms} ms`));
    close();
    return broken.promise;
  };

  /**
   * An agent that restarted has another time, often with boots that count anew, or after a reset another engine ID; some report
   * wrong ones at first. The session knows the agent's own from its refusal, else a new one asks for them.
   */
  const ask = async (send: Send): Promise<Varbinds | null> => {
    for (const recover of [() => undefined, beginAnew, () => undefined]) {
      try {
        return await askOnce(send);
      } catch (error) {
        if (!(error instanceof OutOfStep) || isClosed) throw error;
        recover();
      }
    }
    return askOnce(send);
  };

  /** An agent of version 1, and some of the others, refuse a whole request because of one OID. */
  const getInto = async (values: Map<string, SnmpValue>, oids: readonly string[]): Promise<void> => {
    const answer = await ask((by, done) => by.get([...oids], done));
    for (const varbind of answer ?? []) keep(varbind, varbind.oid, values);
    if (answer || oids.length === 1) return;
    for (const oid of oids) await getInto(values, [oid]);
  };

  const next: (from: string) => Send =
    login.version === '1'
      ? (from) => (by, done) => by.getNext([from], done)
      : (from) => (by, done) =>
          by.getBulk([from], 0, limits.snmp_repetitions, (error, answer) => done(error, answer?.flat()));

  return {
    hasCounter64: login.version !== '1',
    async get(oids) {
      const values = new Map<string, SnmpValue>();
      for (let at = 0; at < oids.length; at += limits.snmp_oids_max) {
        await getInto(values, oids.slice(at, at + limits.snmp_oids_max));
      }
      return values;
    },
    async column(oid) {
      // Repeated requests, since net-snmp's walk stops after one row with some agents. Version 1 refuses at the end of its tables.
      return walk(oid, limits.snmp_rows_max, async (from) => (await ask(next(from))) ?? []);
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
  if (login.version === '3') {
    return snmp.createV3Session(host, userOf(login), { ...options, version: snmp.Version3 });
  }
  const version = login.version === '1' ? snmp.Version1 : snmp.Version2c;
  return snmp.createSession(host, login.community, { ...options, version });
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

/** What the agent refuses (RFC 3414, section 3.2), in the words of the library. */
const refusals: readonly (readonly [words: string, remedy: string])[] = [
  ['Unknown User Name', texts.snmp_user_unknown],
  ['Wrong Digest', texts.snmp_auth_wrong],
  ['Unsupported Security Level', texts.snmp_level_wrong],
  ['Decryption Error', texts.snmp_priv_wrong],
];

function failureOf(error: Error, login: SnmpLogin, guard: Pick<SocketGuard, 'hasAnswered'>): Error {
  // Its type definitions lack the class.
  if (error.name === 'RequestTimedOutError') {
    return new DeviceUnreachable(silenceOf(login, guard.hasAnswered()), { cause: error });
  }
  if (login.version === '3' && error instanceof snmp.ResponseInvalidError) {
    const words = messageOf(error);
    const reason = words.startsWith('Authentication digest') ? 'wrong digest of its answer' : words;
    const refusal = refusals.find(([refusing]) => reason.startsWith(refusing));
    if (!refusal) return new OutOfStep(texts.snmp_out_of_step(reason), { cause: error });
    return new SnmpRefused(texts.snmp_user_refused(reason, refusal[1]), { cause: error });
  }
  const reason = connectionFault(error, texts.snmp_refused_remedy) ?? texts.snmp_failed(messageOf(error));
  return new DeviceUnreachable(reason, { cause: error });
}

/** A wrong community and a dead host look the same on the wire: no answer. So does a request that the agent cannot decrypt. */
function silenceOf(login: SnmpLogin, hasAnswered: boolean): string {
  if (login.version !== '3') return texts.snmp_silent_community(login.version);
  return hasAnswered && login.priv ? texts.snmp_silent_encrypted : texts.snmp_silent;
}

// The UDP socket of an SNMP session. net-snmp reads datagrams in the handler of the socket, where what it throws would end the
// daemon, and takes what any host sends to its port for an answer of the agent.

interface SocketGuard {
  /** Interface-compatible with `node:dgram` as far as net-snmp uses it. */
  readonly dgram: { readonly createSocket: (type: SocketType) => GuardedSocket };
  /** Whether the datagram that is being read came from another host or port than those of the agent. */
  readonly isForeign: () => boolean;
  /** Whether a datagram is being read. */
  readonly isReading: () => boolean;
  /** Whether the agent has sent a datagram, such as its answer to the discovery of version 3. */
  readonly hasAnswered: () => boolean;
}

/** Opens the socket below; tests replace it by one without a network. */
type OpenUdp = (options: SocketOptions) => Pick<Socket, 'on' | 'send' | 'ref' | 'unref' | 'close'>;

interface GuardOptions {
  /** Of the agent; left out, the resolver of the operating system. */
  readonly name?: Pick<DeviceName, 'lookup' | 'reached'> | undefined;
  /** Left out, a socket of the operating system. */
  readonly openUdp?: OpenUdp | undefined;
}

/** `port`: of the agent. `onThrown` receives what the library threw while it read a datagram. */
function guardSocket(
  port: number,
  onThrown: (error: unknown) => void,
  { name, openUdp = createSocket }: GuardOptions = {},
): SocketGuard {
  let from: RemoteInfo | undefined;
  let agent: string | undefined;
  let hasAnswered = false;
  const isForeign = (): boolean =>
    from !== undefined && (from.port !== port || plain(from.address) !== agent);
  return {
    isReading: () => from !== undefined,
    isForeign,
    hasAnswered: () => hasAnswered,
    dgram: {
      createSocket: (type) =>
        new GuardedSocket(type, openUdp, {
          lookup: name?.lookup ?? resolve,
          onAddress: (address) => {
            agent = plain(address);
            name?.reached(address);
          },
          read: (deliver, sender) => {
            from = sender;
            hasAnswered ||= !isForeign();
            try {
              deliver();
            } catch (error) {
              onThrown(error);
            } finally {
              from = undefined;
            }
          },
        }),
    },
  };
}

interface Hooks {
  readonly lookup: LookupFunction;
  /** The address to which the name of the agent leads. */
  readonly onAddress: (address: string) => void;
  readonly read: (deliver: () => void, sender: RemoteInfo) => void;
}

class GuardedSocket extends EventEmitter {
  readonly #socket: ReturnType<OpenUdp>;

  constructor(type: SocketType, openUdp: OpenUdp, { lookup, onAddress, read }: Hooks) {
    super();
    this.#socket = openUdp({
      type,
      lookup: (name, options, done) =>
        lookup(name, options, (error, found, family = 0) => {
          const address = typeof found === 'string' ? found : '';
          if (!error) onAddress(address);
          done(error, address, family);
        }),
    });
    this.#socket.on('message', (bytes, sender) => read(() => this.emit('message', bytes, sender), sender));
    this.#socket.on('error', (error) => this.emit('error', error));
    this.#socket.on('close', () => this.emit('close'));
  }

  send(
    ...args: [Buffer, number, number, number, string, (error: Error | null, bytes: number) => void]
  ): void {
    this.#socket.send(...args);
  }

  ref(): void {
    this.#socket.ref();
  }

  unref(): void {
    this.#socket.unref();
  }

  close(): void {
    this.#socket.close();
  }
}

/** Without the zone of a link-local address, which may be written as a name or a number. */
function plain(address: string): string {
  return address.split('%')[0] ?? address;
}
