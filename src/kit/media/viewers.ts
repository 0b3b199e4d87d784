/**
 * Viewers beyond the network of the kit. Their offers come from the cloud, the media server answers them; no video passes here. What they may
 * cost on metered links is counted by the media server and ends at the limits of the day.
 */
import { z } from 'zod';
import { cut, sentence_chars_max } from '../../contract/limits.ts';
import type { WhepAnswer, WhepRequest } from '../../contract/whep.ts';
import { readTextUpTo, table_bytes_max } from '../../platform/bounded-file.ts';
import { messageOf } from '../../platform/errors.ts';
import { replaceFile } from '../../platform/replace-file.ts';
import { everyInTurn, sleep } from '../../platform/time.ts';
import type { DriverLog } from '../../toolkit/driver/driver.ts';
import { withPublicAddress } from './offer.ts';
import { type MediaServer, OfferRefused } from './server.ts';
import { texts } from './texts.ts';

const viewers_max = 64;
/** At 4 Mbit/s half a megabyte passes meanwhile. */
const look_every_ms = 1_000;
const saved_every_ms = 60_000;
/** Of a viewer that is connecting. MediaMTX gives up after 10 s. */
const started_every_ms = 25;
const starts_within_ms = 10_000;

/** What the link in use allows. */
export type VideoGrant =
  | { readonly kind: 'free' }
  | { readonly kind: 'limited'; readonly seconds_max: number; readonly bytes_max: number }
  | { readonly kind: 'never'; readonly reason: string };

export interface ViewersOptions {
  readonly server: Pick<MediaServer, 'name' | 'watch' | 'leave' | 'sent'>;
  /** Name of the stream of an asset on the server, or why it has none. */
  readonly streamOf: (asset_id: string) => { readonly name: string } | { readonly none: string };
  /** Asks the camera of an asset for a key frame. */
  readonly requestKeyFrame: (asset_id: string) => Promise<void>;
  readonly grant: () => VideoGrant;
  /** Of the kit on the link in use, as seen from outside; undefined: not known, or the media server finds it by itself. */
  readonly publicAddress: () => string | undefined;
  /** UTC, such as `2026-11-29`; undefined while the clock is not set. */
  readonly today: () => string | undefined;
  /** Keeps the use of the day, and who watches, over a restart. */
  readonly file: string;
  readonly log: DriverLog;
  readonly signal: AbortSignal;
}

const viewer = z.object({
  id: z.string(),
  asset_id: z.string(),
  resource: z.string().nullable(),
  session: z.string().nullable(),
  bytes: z.number(),
});
type Viewer = z.output<typeof viewer>;

const state = z.object({
  day: z.string(),
  /** With at least one viewer, on metered links. */
  seconds: z.number(),
  bytes: z.number(),
  viewers: z.array(viewer).max(viewers_max),
});

/** For the status of the kit. */
export interface VideoUse {
  readonly viewers: number;
  readonly metered_seconds_today: number;
  readonly metered_bytes_today: number;
}

export class Viewers {
  readonly #options: ViewersOptions;
  readonly #viewers = new Map<string, Viewer>();
  /** Offers that the server is answering; true: the viewer has left meanwhile. */
  readonly #pending = new Map<string, boolean>();
  #day = '';
  #seconds = 0;
  #bytes = 0;
  #looked_ms = performance.now();
  #saved_ms = performance.now();
  /** Of the look before. */
  #step_bytes = 0;
  /** Of whom no packet has left yet: until when that is awaited, monotonic. */
  readonly #connecting = new Map<Viewer, number>();
  /** The limit that was used up today: what is left of it does not last until the next look. */
  #spent_bytes_max = 0;
  readonly #loaded: Promise<void>;
  #isChanged = false;
  #isWriting = false;

  constructor(options: ViewersOptions) {
    this.#options = options;
    this.#loaded = this.#load();
    if (options.server.sent) everyInTurn(look_every_ms, options.signal, async () => this.look());
  }

  get use(): VideoUse {
    return {
      viewers: this.#viewers.size,
      metered_seconds_today: Math.round(this.#seconds),
      metered_bytes_today: this.#bytes,
    };
  }

  /** Undefined: the request needs no answer. */
  async receive(request: WhepRequest): Promise<WhepAnswer | undefined> {
    await this.#loaded;
    if (request.offer === null) {
      if (this.#pending.has(request.id)) this.#pending.set(request.id, true);
      await this.#end(request.id, 'left');
      return undefined;
    }
    try {
      return { answer: await this.#watch(request, request.offer) };
    } catch (error) {
      const refused =
        error instanceof Refused || error instanceof OfferRefused ? error.refused : 'unavailable';
      return { refused, reason: cut(messageOf(error), sentence_chars_max) };
    }
  }

  async #watch({ id, asset_id }: WhepRequest, offer: string): Promise<string> {
    const { server, streamOf, signal } = this.#options;
    const stream = streamOf(asset_id);
    if ('none' in stream) throw new Refused('no_stream', stream.none);
    const reason = this.#forbidden();
    if (reason !== undefined) throw new Refused('link', reason);
    if (this.#viewers.size + this.#pending.size >= viewers_max && !this.#forgetOldest())
      throw new Refused('unavailable', texts.too_many_viewers(viewers_max));
    this.#pending.set(id, false);
    try {
      const { answer, resource, session } = await server.watch(stream.name, offer, signal);
      const viewing = { id, asset_id, resource, session, bytes: 0 };
      this.#viewers.set(id, viewing);
      void this.#beginWithKeyFrame(viewing);
      this.#save();
      if (this.#pending.get(id)) await this.#end(id, 'left');
      const address = this.#options.publicAddress();
      return address === undefined ? answer : withPublicAddress(answer, address);
    } finally {
      this.#pending.delete(id);
    }
  }

  /**
   * A server keeps no key frame for who comes (bluenviron/mediamtx#1209), and cameras send one each second, or each ten (AlexxIT/go2rtc#1595).
   * One look serves all that connect.
   */
  async #beginWithKeyFrame(viewer: Viewer): Promise<void> {
    const { server, signal, requestKeyFrame } = this.#options;
    if (!server.sent) return;
    this.#connecting.set(viewer, performance.now() + starts_within_ms);
    if (this.#connecting.size > 1) return;
    while (this.#connecting.size > 0) {
      await sleep(started_every_ms, signal);
      if (signal.aborted) return;
      // The look of each second reports a server that does not answer.
      const sent = await server.sent(signal).catch(() => undefined);
      for (const [each, until_ms] of this.#connecting) {
        const hasStarted = Boolean(sent?.get(each.session ?? ''));
        if (hasStarted) void requestKeyFrame(each.asset_id);
        if (hasStarted || !this.#viewers.has(each.id) || performance.now() >= until_ms)
          this.#connecting.delete(each);
      }
    }
  }

  /** Of a server that does not report who has left, the oldest has probably done so. */
  #forgetOldest(): boolean {
    const [oldest] = this.#viewers.keys();
    return this.#options.server.sent === undefined && oldest !== undefined && this.#viewers.delete(oldest);
  }

  /** Why no video may go over the link in use; undefined: it may. */
  #forbidden(): string | undefined {
    const { grant, server } = this.#options;
    const allowed = grant();
    if (allowed.kind === 'free') return undefined;
    if (allowed.kind === 'never') return allowed.reason;
    if (!server.sent) return texts.cannot_count(server.name);
    this.#turnDay();
    const { seconds_max, bytes_max } = allowed;
    if (this.#seconds >= seconds_max) return texts.used_up(`${seconds_max} s`);
    // What the next second may bring counts, so that the limit holds.
    if (this.#bytes + this.#step_bytes >= bytes_max) this.#spent_bytes_max = bytes_max;
    return bytes_max <= this.#spent_bytes_max ? texts.used_up(`${bytes_max / 1_000_000} MB`) : undefined;
  }

  #turnDay(): void {
    const today = this.#options.today() ?? this.#day;
    if (today === this.#day) return;
    this.#day = today;
    this.#seconds = 0;
    this.#bytes = 0;
    this.#spent_bytes_max = 0;
  }

  /** Counts what was sent, forgets who has left, and ends whom the kit may not serve any more. */
  async look(): Promise<void> {
    await this.#loaded;
    const { grant, signal, log } = this.#options;
    const now_ms = performance.now();
    const passed_s = (now_ms - this.#looked_ms) / 1_000;
    this.#looked_ms = now_ms;
    this.#step_bytes = 0;
    if (this.#viewers.size === 0) return;
    try {
      await this.#count();
      if (grant().kind === 'limited') {
        this.#turnDay();
        this.#seconds += passed_s;
        this.#bytes += this.#step_bytes;
        if (now_ms - this.#saved_ms > saved_every_ms) this.#save();
      }
      await this.#endForbidden();
    } catch (error) {
      if (!signal.aborted) log.warn({ reason: messageOf(error) }, texts.viewers_unknown);
    }
  }

  async #count(): Promise<void> {
    const { server, signal } = this.#options;
    // Who comes meanwhile is not in the list of the server yet.
    const known = [...this.#viewers.values()];
    const sent = await server.sent?.(signal);
    for (const each of known) {
      const bytes = sent?.get(each.session ?? '');
      if (bytes === undefined) this.#forget(each, 'gone');
      else {
        this.#step_bytes += Math.max(0, bytes - each.bytes);
        each.bytes = bytes;
      }
    }
  }

  async #endForbidden(): Promise<void> {
    const reason = this.#forbidden();
    for (const { id, asset_id } of this.#viewers.values()) {
      const stream = this.#options.streamOf(asset_id);
      const why = reason ?? ('none' in stream ? stream.none : undefined);
      if (why !== undefined) await this.#end(id, why);
    }
  }

  async #end(id: string, reason: string): Promise<void> {
    const { server, signal, log } = this.#options;
    const ending = this.#viewers.get(id);
    if (!ending) return;
    try {
      await server.leave(ending, signal);
    } catch (error) {
      // It stays in the list, and is tried again at the next look.
      log.warn({ reason: messageOf(error) }, texts.viewer_not_ended);
      return;
    }
    this.#forget(ending, reason);
  }

  #forget({ id, asset_id, bytes }: Viewer, reason: string): void {
    this.#viewers.delete(id);
    this.#options.log.info({ asset_id, bytes, reason }, texts.viewer_ended);
    this.#save();
  }

  async #load(): Promise<void> {
    const text = await readTextUpTo(this.#options.file, table_bytes_max).catch(() => '');
    const read = state.safeParse(parsed(text)).data;
    if (!read) return;
    this.#day = read.day;
    this.#seconds = read.seconds;
    this.#bytes = read.bytes;
    for (const each of read.viewers) this.#viewers.set(each.id, each);
  }

  /** Writes in the background: a viewer does not wait for the disk. */
  #save(): void {
    this.#isChanged = true;
    if (!this.#isWriting) void this.#write();
  }

  async #write(): Promise<void> {
    this.#isWriting = true;
    while (this.#isChanged) {
      this.#isChanged = false;
      this.#saved_ms = performance.now();
      const kept = {
        day: this.#day,
        seconds: this.#seconds,
        bytes: this.#bytes,
        viewers: [...this.#viewers.values()],
      };
      try {
        await replaceFile(this.#options.file, JSON.stringify(kept));
      } catch (error) {
        this.#options.log.warn({ reason: messageOf(error) }, texts.state_not_written);
      }
    }
    this.#isWriting = false;
  }
}

class Refused extends Error {
  readonly refused: 'no_stream' | 'link' | 'unavailable';

  constructor(refused: Refused['refused'], reason: string) {
    super(reason);
    this.refused = refused;
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
