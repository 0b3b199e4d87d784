/** Keeps the kernel's addresses, default routes and rules at hand: all of them are read anew whenever something changed. */
import { DeviceUnreachable } from '../../../src/errors.ts';
import { type NetlinkSocket, openNetlink } from '../../../src/platform/bound-socket.ts';
import { sleep, within } from '../../../src/platform/time.ts';
import { type DefaultRoute, plain_rules, type Routing, type Rule } from '../routing.ts';
import {
  address_header_bytes,
  decodeAddress,
  decodeDefaultRoute,
  decodeRule,
  route_header_bytes,
  rule_header_bytes,
} from './decode.ts';
import { dumpRequest, type Message, readMessages } from './message.ts';

const netlink_route = 0;
/** Links, and of both families addresses, routes and rules. */
const groups = 0x1 | 0x10 | 0x40 | 0x80 | 0x100 | 0x400 | 0x4_0000;
const nlmsg_error = 2;
const nlmsg_done = 3;
const nlm_f_dump_intr = 0x10;
/** An earlier listing has not ended, as after an overrun. */
const ebusy = -16;

const dumps = {
  address: { ask: 22, answer: 20, header_bytes: address_header_bytes },
  route: { ask: 26, answer: 24, header_bytes: route_header_bytes },
  rule: { ask: 34, answer: 32, header_bytes: rule_header_bytes },
} as const;
type Kind = (typeof dumps)[keyof typeof dumps];

/** The kernel answers within microseconds; this is for one that does not. */
const dump_timeout_ms = 3_000;
/** Changes come in bursts: one reading for all of a burst. */
const settle_ms = 50;
/** Changes during a reading make it begin again; after so many the last one counts. */
const attempts_max = 5;
/** Entries of one reading: far beyond a gateway's, and no harm to memory. */
const entries_max = 100_000;

export interface RoutingWatch {
  readonly read: () => Routing;
  /** Resolves when the signal aborts; rejects with `DeviceUnreachable` when the kernel stops answering. */
  readonly done: Promise<void>;
}

interface Dump {
  readonly seq: number;
  readonly kind: Kind;
  readonly bodies: Buffer[];
  /** The tables changed while they were listed. */
  torn: boolean;
  readonly end: (outcome: 'whole' | 'interrupted' | 'refused') => void;
}

/** Reads once, then again after each change, calling `onChange`. Rejects with `DeviceUnreachable` without netlink. */
export async function watchRouting(signal: AbortSignal, onChange: () => void): Promise<RoutingWatch> {
  const reader = new Reader();
  await reader.open(signal);
  let routing = await reader.readAll(signal);
  const follow = async (): Promise<void> => {
    while (!signal.aborted) {
      await reader.changed(signal);
      await sleep(settle_ms, signal);
      if (signal.aborted) return;
      routing = await reader.readAll(signal);
      onChange();
    }
  };
  const done = follow();
  // Whoever waits for it hears of a failure; until then it is nobody's unhandled rejection.
  done.catch(() => undefined);
  return { read: () => routing, done };
}

/** One dump at a time on one socket, which is all that the kernel allows, and whether anything changed since. */
class Reader {
  #socket: NetlinkSocket | undefined;
  #dump: Dump | undefined;
  #seq = 0;
  #isStale = false;
  #wake = new AbortController();

  async open(signal: AbortSignal): Promise<void> {
    this.#socket = await openNetlink({
      protocol: netlink_route,
      groups,
      onData: (datagram) => readMessages(datagram).forEach((message) => this.#take(message)),
      onOverrun: () => {
        this.#dump?.end('interrupted');
        this.#changed();
      },
      signal,
    });
  }

  /** Resolves after something changed since the last `readAll` began, or when `signal` aborts. */
  async changed(signal: AbortSignal): Promise<void> {
    while (!this.#isStale && !signal.aborted) {
      await sleep(wait_slice_ms, AbortSignal.any([signal, this.#wake.signal]));
    }
  }

  async readAll(signal: AbortSignal): Promise<Routing> {
    this.#isStale = false;
    this.#wake = new AbortController();
    const addresses = await this.#readKind(dumps.address, decodeAddress, signal);
    const routes: readonly DefaultRoute[] = await this.#readKind(dumps.route, decodeDefaultRoute, signal);
    // A kernel without policy routing lists no rules.
    const listed: readonly Rule[] = await this.#readKind(dumps.rule, decodeRule, signal);
    const rules = listed.length > 0 ? listed : plain_rules;
    const byInterface = Map.groupBy(addresses, ({ ifindex }) => ifindex);
    return {
      routes,
      rules,
      addresses: new Map([...byInterface].map(([ifindex, all]) => [ifindex, all.map((one) => one.address)])),
    };
  }

  async #readKind<T>(
    kind: Kind,
    decode: (body: Buffer) => T | undefined,
    signal: AbortSignal,
  ): Promise<readonly T[]> {
    let bodies: readonly Buffer[] = [];
    for (let attempt = 0; attempt < attempts_max && !signal.aborted; attempt += 1) {
      const read = await this.#readOnce(kind, signal);
      bodies = read.bodies;
      if (read.outcome === 'whole') break;
    }
    return bodies.flatMap((body) => decode(body) ?? []);
  }

  async #readOnce(kind: Kind, signal: AbortSignal) {
    this.#seq += 1;
    const seq = this.#seq;
    const bodies: Buffer[] = [];
    const ended = new Promise<Parameters<Dump['end']>[0]>((resolve) => {
      this.#dump = { seq, kind, bodies, torn: false, end: resolve };
    });
    this.#socket?.send(dumpRequest(kind.ask, seq, kind.header_bytes));
    const outcome = await within(dump_timeout_ms, ended, signal);
    this.#dump = undefined;
    if (signal.aborted) return { outcome: 'whole' as const, bodies };
    if (outcome === undefined) throw new DeviceUnreachable('the kernel does not answer over netlink');
    if (outcome === 'refused')
      throw new DeviceUnreachable('the kernel refuses to list its routes over netlink');
    return { outcome, bodies };
  }

  #take({ type, flags, seq, body }: Message): void {
    const dump = this.#dump;
    // What is multicast has the number of the request that caused it, which may be another program's.
    const isAnswer = dump !== undefined && seq === dump.seq;
    if (!isAnswer) return this.#changed();
    if (type === dump.kind.answer && dump.bodies.length < entries_max) dump.bodies.push(body);
    dump.torn ||= (flags & nlm_f_dump_intr) !== 0;
    if (type === nlmsg_error) dump.end(isBusy(body) ? 'interrupted' : 'refused');
    else if (type === nlmsg_done) dump.end(dump.torn ? 'interrupted' : 'whole');
  }

  #changed(): void {
    this.#isStale = true;
    this.#wake.abort();
  }
}

function isBusy(body: Buffer): boolean {
  return body.length >= 4 && body.readInt32LE(0) === ebusy;
}

/** How long one timer of the wait lasts; the wait itself has no end but a change or the abort. */
const wait_slice_ms = 60_000;
