/** Keeps the streams of all cameras configured on the kit's media server, and returns their addresses for viewers. */
import type { DriverLog } from '../../toolkit/driver/driver.ts';
import type { Health } from '../../toolkit/driver/health.ts';
import { messageOf } from '../../platform/errors.ts';
import { sleep } from '../../platform/time.ts';
import { portFault } from './rtsp-port.ts';
import { deleteViewing, postOffer } from './offer.ts';
import { type MediaServer, type Stream, StreamRefused } from './server.ts';
import { texts } from './texts.ts';
import { createHash } from 'node:crypto';

export interface MediaOptions {
  readonly server: MediaServer;
  /** The URL of this asset changed. */
  readonly onUrl: (asset_key: string) => void;
  readonly log: DriverLog;
  readonly signal: AbortSignal;
  readonly pace?: MediaPace;
}

export interface MediaPace {
  /** Interval of checks: a restarted server has lost its streams. */
  readonly look_every_ms: number;
  /** A short restart of the server is not reported; after this time the stream address is withdrawn. */
  readonly lost_after_ms: number;
  /** Between two looks at the RTSP port of a camera: while it takes connections, and while it does not. */
  readonly port_every_ms: number;
  readonly port_again_ms: number;
}
const usual_pace: MediaPace = {
  look_every_ms: 10_000,
  lost_after_ms: 30_000,
  port_every_ms: 300_000,
  port_again_ms: 60_000,
};

/** The streams, by asset. */
type Media = Pick<StreamRegistry, 'want' | 'urlOf' | 'healthOf'>;

interface Wanted extends Stream {
  readonly asset_key: string;
  /** The server has it. */
  readonly ready: boolean;
  /** Why the server does not have it: it was refused, or the server does not answer. */
  readonly fault: string | null;
}

/** Only what is a stream of a camera: go2rtc would also run programs (`exec:`), and obeys what follows a fragment sign. */
const stream_url = /^rtsps?:\/\/[^\s\\#\p{Cc}]{1,4096}$/u;

/** Runs until the signal aborts. Streams stay on the server then: a restart of the connector interrupts no viewer. */
export function createMedia(options: MediaOptions): Media {
  const registry = new StreamRegistry(options);
  void registry.run();
  return registry;
}

class StreamRegistry {
  readonly #options: MediaOptions;
  readonly #pace: MediaPace;
  readonly #wanted = new Map<string, Wanted>();
  readonly #unwanted = new Set<string>();
  /** The last look at the RTSP port of each asset. */
  readonly #ports = new Map<string, { rtsp_url: string; looked_ms: number; fault: string | null }>();
  #wake = new AbortController();
  #down_since_ms: number | undefined;
  #isDownLogged = false;

  constructor(options: MediaOptions) {
    this.#options = options;
    this.#pace = options.pace ?? usual_pace;
  }

  /** The stream of this asset, with credentials; null: it has none any more. */
  want(asset_key: string, rtsp_url: string | null): void {
    const known = this.#wanted.get(asset_key);
    if ((known?.rtsp_url ?? null) === rtsp_url) return;
    if (rtsp_url === null || !stream_url.test(rtsp_url)) {
      this.#wanted.delete(asset_key);
      this.#ports.delete(asset_key);
      this.#unwanted.add(streamName(asset_key));
      if (rtsp_url !== null) {
        this.#options.log.warn({ asset_key }, texts.not_rtsp);
      }
    } else {
      const name = streamName(asset_key);
      this.#unwanted.delete(name);
      this.#wanted.set(asset_key, { asset_key, name, rtsp_url, ready: known?.ready ?? false, fault: null });
    }
    this.#wake.abort();
  }

  /** Where viewers find it, or null while they do not. */
  urlOf(asset_key: string): string | null {
    const stream = this.#wanted.get(asset_key);
    return stream?.ready ? this.#options.server.whepUrl(stream.name) : null;
  }

  /** Whether viewers find it; undefined before the server has answered. */
  healthOf(asset_key: string): Health | undefined {
    const stream = this.#wanted.get(asset_key);
    const closed = this.#ports.get(asset_key)?.fault ?? null;
    if (stream?.ready) return closed === null ? { state: 'works' } : { state: 'fails', reason: closed };
    const reason = stream?.fault ?? null;
    return reason === null ? undefined : { state: 'fails', reason };
  }

  async run(): Promise<void> {
    const { signal } = this.#options;
    while (!signal.aborted) {
      this.#wake = new AbortController();
      await this.#round();
      await sleep(this.#pace.look_every_ms, AbortSignal.any([signal, this.#wake.signal]));
    }
  }

  async #round(): Promise<void> {
    const { server, signal } = this.#options;
    try {
      if (this.#wanted.size > 0) await server.prepare?.(signal);
      for (const name of this.#unwanted) {
        await server.remove(name, signal);
        this.#unwanted.delete(name);
      }
      for (const stream of this.#wanted.values()) await this.#ensure(stream);
      for (const stream of this.#wanted.values()) if (stream.ready) void this.#lookAtPort(stream);
      if (this.#wanted.size > 0) this.#noteUp();
    } catch (err) {
      if (!signal.aborted) this.#noteDown(err);
    }
  }

  async #ensure(stream: Wanted): Promise<void> {
    const { server, signal, log } = this.#options;
    try {
      if (!(await server.has(stream, signal))) await server.put(stream, signal);
      this.#settle(stream, { ready: true, fault: null });
    } catch (err) {
      if (!(err instanceof StreamRefused)) throw err;
      const reason = withoutCredentials(err.message);
      if (stream.fault !== reason) {
        const { asset_key } = stream;
        log.warn({ asset_key, reason }, texts.stream_rejected(server.name));
      }
      this.#settle(stream, { ready: false, fault: reason });
    }
  }

  /** At most one look at a time, since each lasts shorter than the time between two. */
  async #lookAtPort({ asset_key, rtsp_url }: Wanted): Promise<void> {
    const { signal, onUrl } = this.#options;
    const { port_every_ms, port_again_ms } = this.#pace;
    const last = this.#ports.get(asset_key);
    const before = last?.rtsp_url === rtsp_url ? last : undefined;
    const now_ms = performance.now();
    const pause_ms = before?.fault ? port_again_ms : port_every_ms;
    if (before && now_ms - before.looked_ms < pause_ms) return;
    const look = { rtsp_url, looked_ms: now_ms, fault: before?.fault ?? null };
    this.#ports.set(asset_key, look);
    const fault = await portFault(rtsp_url, signal);
    if (signal.aborted || this.#ports.get(asset_key) !== look || fault === look.fault) return;
    look.fault = fault;
    onUrl(asset_key);
  }

  #settle(stream: Wanted, news: Pick<Wanted, 'ready' | 'fault'>): void {
    // The driver may have named another stream meanwhile.
    if (this.#wanted.get(stream.asset_key) !== stream) return;
    this.#wanted.set(stream.asset_key, { ...stream, ...news });
    if (stream.ready !== news.ready || stream.fault !== news.fault) this.#options.onUrl(stream.asset_key);
  }

  #noteUp(): void {
    if (this.#isDownLogged) this.#options.log.info({}, texts.api_restored(this.#options.server.name));
    this.#isDownLogged = false;
    this.#down_since_ms = undefined;
  }

  #noteDown(err: unknown): void {
    const { server, log } = this.#options;
    const now_ms = performance.now();
    const reason = withoutCredentials(causeOf(err));
    this.#down_since_ms ??= now_ms;
    if (!this.#isDownLogged) {
      log.warn({ reason }, texts.api_unreachable(server.name));
      this.#isDownLogged = true;
    }
    if (now_ms - this.#down_since_ms < this.#pace.lost_after_ms) return;
    for (const stream of this.#wanted.values()) {
      this.#settle(stream, { ready: false, fault: texts.server_silent(server.name, reason) });
    }
  }
}

/** `fetch failed` hides what helps. */
function causeOf(err: unknown): string {
  return err instanceof Error && err.cause instanceof Error ? messageOf(err.cause) : messageOf(err);
}

function withoutCredentials(text: string): string {
  return text.replace(/(rtsps?:\/\/)[^@\s/]*@/gu, '$1');
}

const readable_chars_max = 40;

/**
 * Stable for the asset, safe in a URL and in the server's configuration (`A-Z a-z 0-9 _ -`), and different for different
 * keys also where the readable part is the same.
 */
export function streamName(asset_key: string): string {
  const readable = asset_key.replace(/[^A-Za-z0-9_-]+/gu, '-').slice(0, readable_chars_max);
  const digest = createHash('sha256').update(asset_key).digest('hex').slice(0, 8);
  return `${readable}-${digest}`;
}

// Streams whose media server is set up by hand: the URL is known from the name alone.

/** Stands for the name of the stream. */
export const name_placeholder = '{name}';

export function templateMedia(url: string, onUrl: (asset_key: string) => void): Media {
  const wanted = new Set<string>();
  return {
    want(asset_key, rtsp_url) {
      if (wanted.has(asset_key) === (rtsp_url !== null)) return;
      if (rtsp_url === null) wanted.delete(asset_key);
      else wanted.add(asset_key);
      onUrl(asset_key);
    },
    urlOf: (asset_key) =>
      wanted.has(asset_key) ? url.replaceAll(name_placeholder, streamName(asset_key)) : null,
    healthOf: (asset_key) => (wanted.has(asset_key) ? { state: 'works' } : undefined),
  };
}

/** As any server that follows WHEP. */
export function templateServer(url: string): Pick<MediaServer, 'name' | 'watch' | 'leave'> {
  const access = { api_url: url };
  return {
    name: 'media server',
    watch: async (name, offer, signal) =>
      postOffer(access, { path: url.replaceAll(name_placeholder, name), offer, signal }),
    async leave({ resource }, signal) {
      if (resource !== null) await deleteViewing(access, resource, signal);
    },
  };
}
