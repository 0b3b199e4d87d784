/** One endpoint: stations receive the frames of vehicles over it and send theirs. Reopens after a loss, ends with its signal. */
import { serveDevice } from '../../../src/toolkit/device/device-session.ts';
import { link_retry } from '../../../src/toolkit/device/retry.ts';
import type { DriverLog } from '../../../src/toolkit/driver/driver.ts';
import { every } from '../../../src/platform/time.ts';
import { parseDatagram, StreamFramer, type FramerTally } from '../wire/framer.ts';
import type { Frame, FrameView } from '../wire/frame.ts';
import type { EndpointOptions } from '../options.ts';
import { type EndpointHost, type EndpointStats, EndpointTally, type Relay, texts } from './endpoint-host.ts';
import { runTcpClient, runTcpListen } from './tcp.ts';
import { runUdpClient, runUdpListen } from './udp.ts';

export interface EndpointNeeds {
  readonly signal: AbortSignal;
  readonly log: Pick<DriverLog, 'info' | 'warn' | 'debug'>;
  /** Receives each frame of a station. */
  readonly frame: (endpoint: Endpoint, frame: Frame, peer: string) => void;
}

/** Longer than any pause between the bytes of one frame. */
const stall_ms = 200;
/** Bytes of a station that are no frame are not counted as a loss. */
const uncounted: FramerTally = {
  skipped: () => undefined,
  badChecksum: () => undefined,
  unknownId: () => undefined,
};

/** Opens the endpoint and keeps it open until the signal aborts. */
export class Endpoint {
  readonly name: string;
  readonly options: EndpointOptions;
  readonly tally = new EndpointTally();
  /** Resolves when the signal has aborted and everything is closed. */
  readonly ended: Promise<void>;
  readonly #needs: EndpointNeeds;
  readonly #peers = new Set<string>();
  #relay: Relay | undefined;
  #own_ports: readonly number[] = [];
  #wasUp: boolean | undefined;
  #isFull = false;

  constructor(options: EndpointOptions, needs: EndpointNeeds) {
    this.options = options;
    this.#needs = needs;
    this.name = options.name ?? `${options.kind.replace('_', ' ')} ${options.host}:${options.port}`;
    this.ended = serveDevice({
      signal: needs.signal,
      limits: link_retry,
      run: async (_signal, onUp) => runMedium(options, this.#hostOf(onUp)),
      onState: (state) => {
        if ('reason' in state) this.#report(false, state.reason);
      },
    });
  }

  /** Sends the bytes of one frame to every station, and counts it for each of them. */
  relay(bytes: Uint8Array): void {
    if (this.#relay) this.#relay(bytes);
    else this.tally.drop('no_peer');
  }

  /** Ports of this machine that its frames come from. */
  get own_ports(): readonly number[] {
    return this.#own_ports;
  }

  stats(): EndpointStats {
    const { name, tally } = this;
    const { to_stations, to_vehicles, refused_clients } = tally;
    const counts = { to_stations, to_vehicles, refused_clients, dropped: { ...tally.dropped } };
    return { name, up: this.#relay !== undefined, peers: [...this.#peers], ...counts };
  }

  #hostOf(onUp: () => void): EndpointHost {
    const { signal, log } = this.#needs;
    const { name: endpoint, tally } = this;
    return {
      signal,
      tally,
      opened: (relay, ports) => {
        this.#relay = relay;
        this.#own_ports = ports;
        this.#report(true);
        onUp();
      },
      closed: () => {
        this.#relay = undefined;
      },
      joined: (peer) => {
        this.#peers.add(peer);
        log.info({ endpoint, peer }, texts.joined);
      },
      left: (peer, reason) => {
        this.#peers.delete(peer);
        this.#isFull = false;
        log.info({ endpoint, peer, reason }, texts.left);
      },
      refused: () => {
        tally.refused_clients += 1;
        this.#refuse();
      },
      overrun: () => tally.drop('flood'),
      datagram: (bytes, peer, { isRefused }) => this.#datagram(bytes, peer, isRefused),
      stream: (peer, over) => openStream((frame) => this.#needs.frame(this, frame, peer), over),
    };
  }

  #datagram(bytes: Uint8Array, peer: string, isRefused: boolean): boolean {
    let frames = 0;
    parseDatagram(bytes, {
      tally: uncounted,
      frame: (frame) => {
        frames += 1;
        if (isRefused) this.tally.drop('refused_peer');
        else this.#needs.frame(this, frame, peer);
      },
      unknown: isRefused ? undefined : (frame) => this.#needs.frame(this, frame, peer),
    });
    if (isRefused && frames > 0) this.#refuse();
    return frames > 0;
  }

  #refuse(): void {
    const stations = this.#peers.size;
    if (!this.#isFull) this.#needs.log.warn({ endpoint: this.name, stations }, texts.full);
    this.#isFull = true;
  }

  #report(isUp: boolean, reason?: string): void {
    if (this.#wasUp === isUp) return;
    this.#wasUp = isUp;
    const { log } = this.#needs;
    if (isUp) log.info({ endpoint: this.name }, texts.opened);
    else log.warn({ endpoint: this.name, reason }, texts.lost);
  }
}

function openStream(accept: (frame: FrameView) => void, over: AbortSignal): (chunk: Uint8Array) => void {
  const framer = new StreamFramer({ tally: uncounted, frame: accept, unknown: accept });
  let pushed_ms = 0;
  every(stall_ms, over, () => {
    if (framer.pending > 0 && performance.now() - pushed_ms > stall_ms) framer.stalled();
  });
  return (chunk) => {
    pushed_ms = performance.now();
    framer.push(chunk);
  };
}

async function runMedium(options: EndpointOptions, host: EndpointHost): Promise<void> {
  switch (options.kind) {
    case 'udp_listen':
      return runUdpListen(options, host);
    case 'udp_client':
      return runUdpClient(options, host);
    case 'tcp_listen':
      return runTcpListen(options, host);
    case 'tcp_client':
      return runTcpClient(options, host);
  }
}
