/** One link to vehicles: turns received bytes into verified frames, sends frames, reopens after a loss, ends with its signal. */
import { serveDevice, type SessionState } from '../../../src/toolkit/device/device-session.ts';
import { link_retry } from '../../../src/toolkit/device/retry.ts';
import { DeviceUnreachable, RetryLater } from '../../../src/platform/errors.ts';
import { parseDatagram } from '../wire/framer.ts';
import type { Frame, FrameView } from '../wire/frame.ts';
import { addressOf, type LinkOptions } from '../options.ts';
import { LinkTally, type LinkStats } from './link-tally.ts';
import type { MediumHost, Reception, Send, Stream, Transport } from './medium.ts';
import { type Precedence, SendBudget } from './send-budget.ts';
import { runSerial } from './serial.ts';
import { streamReader } from './sockets.ts';
import type { Signing } from '../wire/signing.ts';
import { runTcpClient, runTcpListen } from './tcp.ts';
import { runUdpClient, runUdpListen } from './udp.ts';

export interface Link {
  readonly name: string;
  /**
   * Sends one encoded frame to `peer`, or to every recent peer. Never blocks and never throws: frames not sent are
   * counted, and the result is false.
   */
  send(bytes: Uint8Array, peer?: string, precedence?: Precedence): boolean;
  /** Whether there is room for a request to the peer. */
  hasRoom(peer: string): boolean;
  /** Whether the configuration names a peer: a serial line, or the host that it connects to. Others may be anyone. */
  isNamed(peer: string): boolean;
  /** Whether it is a satellite modem. */
  readonly high_latency: boolean;
  /** Discards frames that were sent to `peer` until `sent_ms` (`performance.now()`) and have not left this machine. */
  discard(peer: string, sent_ms: number): void;
  stats(): LinkStats;
  /** Resolves when the signal has aborted and everything is closed. Never rejects. */
  readonly ended: Promise<void>;
}

/** Signed with another key, or at a wrong time; not signed, or MAVLink 1, although we have a key; signed although we have none. */
export type SignatureProblem = 'ahead' | 'mavlink1' | 'no_key' | 'old' | 'other_key' | 'unsigned';

export interface LinkListener {
  /** `peer` identifies the sender, stable while it keeps its address; `at_ms` is monotonic (`performance.now()`). */
  frame(frame: Frame, peer: string, at_ms: number): void;
  /** Reports that the medium was opened or lost, once for each change; `reason` is for the technician. */
  state(up: boolean, reason?: string): void;
  /** Receives each state of the link's session, with the reason and the pause after each failed attempt. */
  session?(state: SessionState): void;
  /** Receives each frame that is dropped because of its signature. */
  rejected?(frame: Frame, peer: string, at_ms: number): void;
  /** Receives what looks like a frame of an unknown message, whose checksum cannot be verified. `verified`: as far as a signature is demanded. */
  unknown?: ((frame: Frame, from: Origin) => void) | undefined;
  /** Reports the first frame whose signature does not fit our settings, once for each problem. */
  mismatched?(problem: SignatureProblem, frame: { readonly sysid: number; readonly compid: number }): void;
  /** Reports that the listener threw on a frame. The link continues. */
  failed?(thrown: unknown): void;
}

export interface Origin {
  readonly peer: string;
  readonly now_ms: number;
  readonly verified: boolean;
}

export interface LinkNeeds {
  readonly signal: AbortSignal;
  /** If given, frames not signed with our key are dropped, except the radio's own reports. */
  readonly signing?: Signing | undefined;
}

/** A link that carried frames within this time is tried again within a second: its vehicle is near and may be flying. */
const soon_again_ms = 600_000;
const soon_pause_ms = 500;
/** Of a satellite modem: vehicles send every minute, or when they have a connection. */
const high_latency_silence_ms = 900_000;
/** A signed request, as COMMAND_LONG. */
const request_bytes = 60;
/** RADIO_STATUS and RADIO: telemetry radios insert them into the stream and have no key. */
const radio_reports: ReadonlySet<number> = new Set([109, 166]);

/** Opens the link and keeps it open until the signal aborts. */
export function openLink(options: LinkOptions, on: LinkListener, { signal, signing }: LinkNeeds): Link {
  const tally = new LinkTally();
  const { bytes_per_s_max, high_latency } = options;
  const budget = bytes_per_s_max === undefined ? undefined : new SendBudget(bytes_per_s_max);
  let transport: Transport | undefined;
  let received_ms = Number.NEGATIVE_INFINITY;
  let reported: boolean | undefined;
  const report = (up: boolean, reason?: string): void => {
    if (reported !== up) on.state(up, reason);
    reported = up;
    tally.up = up;
  };
  const verified = acceptor(tally, on, signing);
  const accept: Accept = (frame, peer, at_ms) => {
    const reception = verified(frame, peer, at_ms);
    if (reception === 'accepted') received_ms = at_ms;
    return reception;
  };
  const unknown: AcceptUnknown | undefined =
    on.unknown &&
    ((frame, peer, now_ms) =>
      on.unknown?.(frame, { peer, now_ms, verified: objectionTo(frame, signing) === undefined }));
  const host: Omit<MediumHost, 'opened'> = {
    signal,
    silence_max_ms: high_latency ? high_latency_silence_ms : undefined,
    ...datagramReader(tally, accept, unknown),
    stream: (peer) => openStream({ tally, accept, unknown, peer, signal }),
  };
  return {
    name: options.name ?? addressOf(options),
    high_latency,
    send: limited(budget, tally, (bytes, peer) => transport?.send(bytes, peer) ?? false),
    hasRoom: (peer) =>
      transport?.allows?.(peer, request_bytes) !== false &&
      budget?.has(request_bytes, 'usual', performance.now()) !== false,
    isNamed: (peer) => transport?.isNamed(peer) ?? false,
    discard: (peer, sent_ms) => transport?.discard(peer, sent_ms),
    stats: () => ({ ...tally.stats(), ...budgetStats(budget) }),
    // Each link retries separately: a retry of the driver would close all links when one is lost.
    ended: serveDevice({
      signal,
      limits: link_retry,
      run: async (_signal, onUp) =>
        soonAgain(
          runMedium(options, {
            ...host,
            opened(medium) {
              transport = medium;
              tally.add('opened');
              report(true);
              onUp();
            },
          }),
          () => received_ms,
        ),
      onState: (state) => {
        if (state.state !== 'starting' && state.state !== 'up') {
          transport = undefined;
        }
        if ('reason' in state) report(false, state.reason);
        on.session?.(state);
      },
    }),
  };
}

/** Returns a function that sends within the budget, and counts what was sent and what was not. */
function limited(budget: SendBudget | undefined, tally: LinkTally, transmit: Send): Link['send'] {
  return (bytes, peer, precedence = 'usual') => {
    const now_ms = performance.now();
    if (budget?.has(bytes.length, precedence, now_ms) === false) {
      tally.add('over_budget');
      return false;
    }
    const isSent = transmit(bytes, peer);
    if (isSent) {
      tally.add('bytes_out', bytes.length);
      budget?.spend(bytes.length, now_ms);
    } else tally.add('unsent');
    return isSent;
  };
}

function budgetStats(budget: SendBudget | undefined): Pick<LinkStats, 'budget'> {
  if (!budget) return {};
  return { budget: { bytes_per_s_max: budget.bytes_per_s, bytes_per_s: budget.rate(performance.now()) } };
}

/** Shortens the pause after a failure of a link that carried verified frames lately. */
async function soonAgain(attempt: Promise<void>, lastFrame_ms: () => number): Promise<void> {
  try {
    await attempt;
  } catch (error) {
    if (!(error instanceof DeviceUnreachable) || performance.now() - lastFrame_ms() > soon_again_ms)
      throw error;
    throw new RetryLater(error.message, soon_pause_ms);
  }
}

/** Why a frame does not count although it is intact. */
type Objection = Exclude<SignatureProblem, 'no_key'> | 'repeated';

const counts = {
  ahead: 'repeated',
  mavlink1: 'unsigned',
  old: 'repeated',
  other_key: 'bad_signatures',
  repeated: 'repeated',
  unsigned: 'unsigned',
} as const satisfies Record<Objection, string>;

function objectionTo(frame: FrameView, signing: Signing | undefined): Objection | undefined {
  if (!signing) return undefined;
  if (frame.signed) {
    const verdict = signing.verify(frame.bytes);
    frame.signature_ok = verdict === 'genuine';
    return verdict === 'genuine' ? undefined : verdict;
  }
  if (radio_reports.has(frame.msgid)) return undefined;
  // MAVLink 1 cannot be signed at all.
  return frame.version === 1 ? 'mavlink1' : 'unsigned';
}

type Accept = (frame: FrameView, peer: string, at_ms: number) => Reception;
type AcceptUnknown = (frame: FrameView, peer: string, at_ms: number) => void;

/** Returns a function that checks the signature of a frame, counts it and passes it to the listener. */
function acceptor(tally: LinkTally, on: LinkListener, signing: Signing | undefined): Accept {
  const reported = new Set<SignatureProblem>();
  const report = (problem: SignatureProblem, frame: FrameView): void => {
    if (reported.has(problem)) return;
    reported.add(problem);
    on.mismatched?.(problem, frame);
  };
  return (frame, peer, at_ms) => {
    const objection = objectionTo(frame, signing);
    if (objection) {
      tally.add(counts[objection]);
      // A vehicle over two links sends each frame twice.
      if (objection !== 'repeated') report(objection, frame);
      on.rejected?.(frame, peer, at_ms);
      return objection === 'old' || objection === 'repeated' ? 'behind' : 'ignored';
    }
    if (!signing && frame.signed) report('no_key', frame);
    tally.frame(frame, peer);
    try {
      on.frame(frame, peer, at_ms);
    } catch (error) {
      // External input must never end the daemon, even when the listener throws.
      tally.add('faults');
      on.failed?.(error);
    }
    return 'accepted';
  };
}

/** Datagrams are parsed one at a time, so one sink is enough for all of them. */
function datagramReader(
  tally: LinkTally,
  accept: Accept,
  unknown: AcceptUnknown | undefined,
): Pick<MediumHost, 'datagram' | 'overrun'> {
  let peer = '';
  let at_ms = 0;
  let reception: Reception = 'ignored';
  const frame = (view: FrameView): void => {
    const each = accept(view, peer, at_ms);
    if (reception !== 'accepted' && each !== 'ignored') reception = each;
  };
  const sink = { tally, frame, unknown: unknown && ((view: FrameView) => unknown(view, peer, at_ms)) };
  return {
    datagram(bytes, from, now_ms) {
      tally.add('bytes_in', bytes.length);
      peer = from;
      at_ms = now_ms;
      reception = 'ignored';
      parseDatagram(bytes, sink);
      return reception;
    },
    overrun: (bytes) => tally.skipped(bytes),
  };
}

interface StreamParts {
  readonly tally: LinkTally;
  readonly accept: Accept;
  readonly unknown: AcceptUnknown | undefined;
  readonly peer: string;
  readonly signal: AbortSignal;
}

function openStream({ tally, accept, unknown, peer, signal }: StreamParts): Stream {
  let received_ms: number | undefined;
  let pushed_ms = 0;
  const frame = (view: FrameView): void => {
    if (accept(view, peer, pushed_ms) === 'accepted') received_ms = pushed_ms;
  };
  const over = new AbortController();
  const read = streamReader(
    { tally, frame, unknown: unknown && ((view) => unknown(view, peer, pushed_ms)) },
    AbortSignal.any([signal, over.signal]),
  );
  return {
    push(chunk) {
      tally.add('bytes_in', chunk.length);
      pushed_ms = performance.now();
      read(chunk);
    },
    received_ms: () => received_ms,
    close: () => over.abort(),
  };
}

async function runMedium(options: LinkOptions, host: MediumHost): Promise<void> {
  switch (options.kind) {
    case 'udp_listen':
      return runUdpListen(options, host);
    case 'udp_client':
      return runUdpClient(options, host);
    case 'tcp_client':
      return runTcpClient(options, host);
    case 'tcp_listen':
      return runTcpListen(options, host);
    case 'serial':
      return runSerial(options, host);
  }
}
