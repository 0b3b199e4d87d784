/** Follows the kernel's route to the broker: which interface the session uses, and when a new connection would use another. */
import { messageOf } from '../../platform/errors.ts';
import type { Endpoints } from '../../mqtt/stream.ts';
import type { Route, Routes } from '../../platform/linux/route-lookup.ts';
import type { UplinkLog } from './connection-state.ts';
import { sleep } from '../../platform/time.ts';
import { texts } from './texts.ts';

/** Stands for the broker until its address is known: the default route leads there (RFC 5737; nothing is sent to it). */
const anywhere_ip = '192.0.2.1';
/** Reconnects and new attempts because of routes, in a minute: what a route that flaps faster asks for waits until then. */
const moves_per_min_max = 12;
const ms_per_min = 60_000;
/** An attempt that a change of the route began may take so long. */
const attempt_ms = 10_000;

interface Followed {
  readonly endpoints: Endpoints;
  /** Interface that the session was opened over; undefined: not known. */
  readonly ifindex: number | undefined;
}

interface PathOptions {
  readonly routes: Routes;
  /** Monotonic time. */
  readonly now: () => number;
  /** Left out: a timer. */
  readonly pause?: (ms: number, signal: AbortSignal) => Promise<void>;
  readonly log: UplinkLog;
}

export class Path {
  readonly #options: PathOptions;
  #hurry = new AbortController();
  #broker_ip = anywhere_ip;
  /** The way of a new connection, as it was last found. */
  #route: Route | null = null;
  #session: Followed | undefined;
  #onMoved: (() => void) | undefined;
  #interface: string | null = null;
  #moves_ms: readonly number[] = [];
  #changed_ms: number | null = null;
  #signal: AbortSignal | undefined;
  #isPutOff = false;
  #isLooking = false;
  #isLookDue = false;

  constructor(options: PathOptions) {
    this.#options = options;
  }

  /** Interface that packets of the session leave by, whatever carries it below; null: no session, or not known. */
  get interface(): string | null {
    return this.#interface;
  }

  /** The same; without a session, the interface that a new connection would leave by. */
  get carrier(): string | null {
    return this.#interface ?? this.#route?.interface ?? null;
  }

  /** When the route to the broker changed last, monotonic; null: never. */
  get changed_ms(): number | null {
    return this.#changed_ms;
  }

  /** Aborts when the route to the broker changes. */
  readonly hurry = (): AbortSignal => this.#hurry.signal;

  /** Watches until `signal` aborts. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    const { routes, log } = this.#options;
    this.#signal = signal;
    try {
      this.#route = await this.#find();
      await routes.watch(() => void this.#look(), signal);
    } catch (error) {
      if (!signal.aborted) log.info({ reason: messageOf(error) }, texts.routes_unknown);
    }
  }

  /** Calls `onMoved` once when packets of this session leave, or would leave, by another interface or with another source. */
  async follow(endpoints: Endpoints, onMoved: () => void, signal: AbortSignal): Promise<void> {
    if (signal.aborted) return;
    this.#broker_ip = endpoints.remote_ip;
    const session: Followed = { endpoints, ifindex: undefined };
    this.#session = session;
    this.#onMoved = onMoved;
    signal.addEventListener('abort', () => this.#ended(endpoints), { once: true });
    const before = this.#route;
    const route = await this.#find();
    if (this.#session !== session) return;
    this.#note(route);
    // The route may have moved since the session was opened. IPv6 may choose an address that the kernel does not state.
    const isOfBefore = route?.source_ip !== endpoints.local_ip && before?.source_ip === endpoints.local_ip;
    const followed = { endpoints, ifindex: (isOfBefore ? before : route)?.ifindex };
    this.#session = followed;
    await this.#lookAtSession(followed, route);
  }

  /** One look at a time: a late answer of an earlier one would stand for the last. */
  async #look(): Promise<void> {
    this.#isLookDue = true;
    if (this.#isLooking) return;
    this.#isLooking = true;
    while (this.#isLookDue) {
      this.#isLookDue = false;
      await this.#lookOnce();
    }
    this.#isLooking = false;
  }

  /** A link that leads to the broker answers again: an attempt that waits, or was begun while it did not, is of no use. */
  linkIsBack(): void {
    const moved_ms = this.#options.now() - (this.#changed_ms ?? Number.NEGATIVE_INFINITY);
    if (!this.#session && moved_ms > attempt_ms && this.#mayMove()) this.#hurryUp();
  }

  async #lookOnce(): Promise<void> {
    const before = this.#route;
    const route = await this.#find();
    this.#note(route);
    const session = this.#session;
    if (session) await this.#lookAtSession(session, route);
    else if (route && !isSame(route, before) && this.#mayMove()) this.#hurryUp();
  }

  #note(route: Route | null): void {
    const before = this.#route;
    const isChanged = route === null ? before !== null : !isSame(route, before);
    if (isChanged) this.#changed_ms = this.#options.now();
    this.#route = route;
  }

  async #lookAtSession(session: Followed, route: Route | null): Promise<void> {
    const way = await this.#wayOf(session.endpoints);
    if (this.#session !== session) return;
    this.#interface = way?.interface ?? this.#interface;
    if (!route || route.source_ip === session.endpoints.local_ip) return;
    // A temporary IPv6 address that was replaced on the same interface still works.
    if (way !== null && route.ifindex === session.ifindex) return;
    if (!this.#mayMove()) return;
    this.#onMoved?.();
    this.#onMoved = undefined;
  }

  #ended(endpoints: Endpoints): void {
    if (this.#session?.endpoints !== endpoints) return;
    this.#session = undefined;
    this.#onMoved = undefined;
    this.#interface = null;
  }

  #hurryUp(): void {
    const hurry = this.#hurry;
    this.#hurry = new AbortController();
    hurry.abort();
  }

  #mayMove(): boolean {
    const now_ms = this.#options.now();
    const recent = this.#moves_ms.filter((at_ms) => now_ms - at_ms < ms_per_min);
    if (recent.length >= moves_per_min_max) {
      void this.#putOff((recent[0] ?? now_ms) + ms_per_min - now_ms);
      return false;
    }
    this.#moves_ms = [...recent, now_ms];
    return true;
  }

  /** A session that survives on the old link would stay there, since no other change of the routes may come. */
  async #putOff(ms: number): Promise<void> {
    const signal = this.#signal;
    if (this.#isPutOff || signal === undefined) return;
    this.#isPutOff = true;
    await (this.#options.pause ?? sleep)(ms, signal);
    this.#isPutOff = false;
    if (!signal.aborted) await this.#look();
  }

  async #find(): Promise<Route | null> {
    return this.#options.routes.find({ ip: this.#broker_ip }).catch(() => null);
  }

  async #wayOf({ local_ip, remote_ip }: Endpoints): Promise<Route | null> {
    return this.#options.routes.find({ ip: remote_ip, source_ip: local_ip }).catch(() => null);
  }
}

function isSame(a: Route, b: Route | null): boolean {
  return a.ifindex === b?.ifindex && a.source_ip === b.source_ip;
}
