/** One link to vehicles: bytes in, verified frames out, and back again; it heals by itself and ends with its signal. */
import { messageOf } from '../../src/errors.ts';
import { backoff, every, sleep } from '../../src/platform/time.ts';
import { parseDatagram, StreamFramer } from './framer.ts';
import type { Frame, FrameView } from './frame.ts';
import type { LinkOptions } from './link-options.ts';
import type { LinkStats } from './link-stats.ts';
import { LinkTally } from './link-tally.ts';
import type { MediumHost, Send, Stream } from './medium.ts';
import { runSerial } from './serial.ts';
import type { Signing } from './signing.ts';
import { runTcpClient, runTcpListen } from './tcp.ts';
import { runUdpClient, runUdpListen } from './udp.ts';

export interface Link {
  readonly name: string;
  /** Sends one encoded frame to `peer`, or to every peer heard lately. Never blocks and never throws: what cannot go is counted. */
  send(bytes: Uint8Array, peer?: string): void;
  stats(): LinkStats;
  /** Resolves when the signal has aborted and everything is closed. Never rejects. */
  readonly ended: Promise<void>;
}

export interface LinkListener {
  /** `peer` names who sent it, stable while it keeps its address; `at_ms` is monotonic (`performance.now()`). */
  frame(frame: Frame, peer: string, at_ms: number): void;
  /** The medium was opened or lost; said once for each change, with what a technician needs to know. */
  state(up: boolean, reason?: string): void;
  /** The listener itself threw over a frame. The link goes on. */
  failed?(thrown: unknown): void;
}

export interface LinkNeeds {
  readonly signal: AbortSignal;
  /** With it, frames that are not signed with our key do not reach the listener, except the radio's own reports. */
  readonly signing?: Signing | undefined;
}

const retry_first_ms = 500;
const retry_max_ms = 15_000;
/** A medium that held for so long was well: the next retry is a quick one again. */
const stable_ms = 30_000;
/** Bytes of one frame never pause for so long on any link. */
const stall_ms = 200;
/** RADIO_STATUS and RADIO: telemetry radios put them into the stream and have no key. */
const radio_reports: ReadonlySet<number> = new Set([109, 166]);

/** Opens the link and keeps it open until the signal aborts. */
export function openLink(options: LinkOptions, on: LinkListener, { signal, signing }: LinkNeeds): Link {
  const tally = new LinkTally();
  let send: Send | undefined;
  let told: boolean | undefined;
  const tell = (up: boolean, reason?: string): void => {
    if (told !== up) on.state(up, reason);
    told = up;
    tally.up = up;
  };
  const opened = (sender: Send): void => {
    send = sender;
    tally.add('opened');
    tell(true);
  };
  const accept = acceptor(tally, on, signing);
  const host: MediumHost = {
    signal,
    opened,
    datagram: datagramReader(tally, accept),
    stream: (peer) => openStream(tally, (frame, at_ms) => accept(frame, peer, at_ms), signal),
  };
  const down = (reason: string): void => {
    send = undefined;
    if (!signal.aborted) tell(false, reason);
  };
  return {
    name: options.name ?? nameOf(options),
    send(bytes, peer) {
      if (send?.(bytes, peer)) tally.add('bytes_out', bytes.length);
      else tally.add('unsent');
    },
    stats: () => tally.stats(),
    ended: keepOpen(async () => runMedium(options, host), down, signal),
  };
}

type Accept = (frame: FrameView, peer: string, at_ms: number) => boolean;

/** Decides whether a frame may be believed, counts it and hands it on. */
function acceptor(tally: LinkTally, on: LinkListener, signing: Signing | undefined): Accept {
  return (frame, peer, at_ms) => {
    if (signing && frame.signed) {
      frame.signature_ok = signing.verify(frame.bytes);
      if (!frame.signature_ok) {
        tally.add('bad_signatures');
        return false;
      }
    } else if (signing && !radio_reports.has(frame.msgid)) {
      tally.add('unsigned');
      return false;
    }
    tally.frame(frame, peer);
    try {
      on.frame(frame, peer, at_ms);
    } catch (error) {
      // What comes from outside must not end the daemon, whatever the listener makes of it.
      tally.add('faults');
      on.failed?.(error);
    }
    return true;
  };
}

/** One datagram is read at a time, so that one sink serves them all. */
function datagramReader(tally: LinkTally, accept: Accept): MediumHost['datagram'] {
  let peer = '';
  let at_ms = 0;
  let has_accepted = false;
  const frame = (each: FrameView): void => {
    if (accept(each, peer, at_ms)) has_accepted = true;
  };
  const sink = { tally, frame };
  return (bytes, from, now_ms) => {
    tally.add('bytes_in', bytes.length);
    peer = from;
    at_ms = now_ms;
    has_accepted = false;
    parseDatagram(bytes, sink);
    return has_accepted;
  };
}

function openStream(
  tally: LinkTally,
  accept: (frame: FrameView, at_ms: number) => boolean,
  signal: AbortSignal,
): Stream {
  let heard_ms: number | undefined;
  let pushed_ms = 0;
  const frame = (each: FrameView): void => {
    if (accept(each, pushed_ms)) heard_ms = pushed_ms;
  };
  const framer = new StreamFramer({ tally, frame });
  const over = new AbortController();
  every(stall_ms, AbortSignal.any([signal, over.signal]), () => {
    if (framer.pending > 0 && performance.now() - pushed_ms > stall_ms) framer.stalled();
  });
  return {
    push(chunk) {
      tally.add('bytes_in', chunk.length);
      pushed_ms = performance.now();
      framer.push(chunk);
    },
    heard_ms: () => heard_ms,
    close: () => over.abort(),
  };
}

/** The supervisor of drivers would end all links for the loss of one: each link has its own retries. */
async function keepOpen(
  run: () => Promise<void>,
  down: (reason: string) => void,
  signal: AbortSignal,
): Promise<void> {
  let pauses = backoff(retry_first_ms, retry_max_ms);
  while (!signal.aborted) {
    const begin_ms = performance.now();
    try {
      await run();
    } catch (error) {
      down(messageOf(error));
    }
    if (performance.now() - begin_ms > stable_ms) pauses = backoff(retry_first_ms, retry_max_ms);
    await sleep(pauses.next().value, signal);
  }
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

function nameOf(options: LinkOptions): string {
  return options.kind === 'serial'
    ? options.path
    : `${options.kind.replace('_', ' ')} ${options.host}:${options.port}`;
}
