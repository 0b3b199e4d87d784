/** Keeps one host's connection for events: when it is tried, what its state is, and whether its reports can be relied on. */
import { serveDevice, type SessionState } from '../../../src/toolkit/device/device-session.ts';
import type { DeviceName } from '../../../src/toolkit/device/device-name.ts';
import { credentialsHash, LoginGuard } from '../../../src/toolkit/device/login-guard.ts';
import { isOwnHost } from '../../../src/toolkit/device/own-host.ts';
import { messageOf, RetryLater } from '../../../src/platform/errors.ts';
import type { Host } from '../channels/channels.ts';
import type { HostFacts } from '../channels/describe.ts';
import type { Contact } from '../host/contact.ts';
import { type Memory, readPassword } from '../host/remembered.ts';
import type { Limits } from '../limits.ts';
import type { HostOptions } from '../options.ts';
import { texts } from '../texts.ts';
import { PushRefused, receivePush } from './client.ts';
import type { Reported } from '../channels/alarms.ts';

export interface PushParts {
  readonly host: Pick<Host, 'log' | 'signal'>;
  readonly camera: HostOptions;
  /** Where the device answers over HTTP: a name may lead elsewhere by now. */
  readonly place: Pick<DeviceName, 'address'>;
  /** Other devices are configured at the host of this one. */
  readonly is_host_shared: boolean;
  readonly limits: Limits;
  readonly memory: Memory;
  /** Of the logins over HTTP: what they must not try now is not tried here. */
  readonly guard: LoginGuard;
  readonly contact: Contact;
  readonly onReports: (reports: readonly Reported[]) => void;
  /** Its state has changed. */
  readonly onState: () => void;
}

export class Push {
  readonly #parts: PushParts;
  /**
   * Of the login for events: a device that never permits it is asked once an hour at most, over starts of the daemon too, so
   * that both logins together lock no account. Its refusals do not delay the login over HTTP, which the device accepts.
   */
  readonly #own_guard: LoginGuard;
  #port: number | undefined;
  #off = '';
  #isReporting = false;
  #state: SessionState = { state: 'starting' };
  #next_try_ms = 0;

  constructor(parts: PushParts) {
    this.#parts = parts;
    const { memory, limits } = parts;
    this.#own_guard = new LoginGuard({
      memory: {
        get facts() {
          return { refused: memory.facts.push_refused };
        },
        change: async ({ refused }) => memory.change({ push_refused: refused }),
      },
      limits: { may_pass_ms: [], refused_ms: limits.push_refused_ms },
    });
  }

  /** Whether events arrive by themselves now: one has arrived on this connection, and no poll has found another first. */
  get isReporting(): boolean {
    return this.#isReporting;
  }

  /** A poll found a detection that was not reported. */
  distrust(): void {
    this.#isReporting = false;
  }

  /** How events come, for the status; empty before the first attempt. */
  get status(): string {
    if (this.#off !== '') return texts.push_off(this.#off, '');
    if (this.#state.state === 'up') return texts.push_live;
    if (!('reason' in this.#state)) return '';
    const next = new Date(this.#next_try_ms).toISOString().replace(/\.\d+/u, '');
    return texts.push_off(this.#state.reason, texts.push_next(next));
  }

  /** The host was described: decides whether and where it is tried. */
  describe({ push_port, isRecorder, abilities }: HostFacts): void {
    const { camera, place, is_host_shared } = this.#parts;
    const isOnBattery = !isRecorder && abilities.ofChannel(0).hasBattery;
    this.#off = isOnBattery
      ? texts.push_battery
      : whyOff({ ...camera, host: place.address }, { is_host_shared });
    // A device may name its own ports, and none of this machine.
    this.#port = this.#off === '' ? (camera.push_port ?? push_port) : undefined;
  }

  /** Runs until the host's signal aborts. */
  async serve(): Promise<void> {
    const { host, limits, camera } = this.#parts;
    if (camera.push === 'never') return;
    await serveDevice({
      signal: host.signal,
      limits: { ...limits, ...limits.push_retry },
      run: async (signal, onUp) => this.#run(signal, onUp),
      onState: (state) => this.#take(state),
    });
  }

  async #run(signal: AbortSignal, onUp: () => void): Promise<void> {
    const { camera, place, limits, contact, guard, onReports } = this.#parts;
    // Only a host that accepts the login over HTTP is asked.
    await contact.until(({ isUp }) => isUp && this.#port !== undefined, signal);
    if (signal.aborted || this.#port === undefined) return;
    const password = await readPassword(camera.password_file);
    const { username } = camera;
    const credentials = credentialsHash(username, password);
    this.#own_guard.admit(credentials);
    try {
      guard.admit(credentials);
    } catch (error) {
      throw new RetryLater(messageOf(error), limits.push_retry.retry_first_ms);
    }
    try {
      const receive = (reports: readonly Reported[]): void => {
        if (reports.length > 0) this.#isReporting = true;
        onReports(reports);
      };
      await receivePush({
        host: place.address,
        port: this.#port,
        username,
        password,
        limits,
        signal,
        onUp,
        onReports: receive,
      });
    } catch (error) {
      if (!(error instanceof PushRefused)) throw error;
      throw await this.#own_guard.refuse(credentials, error.message);
    }
  }

  #take(state: SessionState): void {
    const { host, camera, onState } = this.#parts;
    const wasSame = 'reason' in state && 'reason' in this.#state && state.reason === this.#state.reason;
    this.#isReporting = false;
    this.#state = state;
    if (state.state === 'up') host.log.info({ host: camera.name }, texts.push_started);
    if ('reason' in state) {
      this.#next_try_ms = Date.now() + state.retry_ms;
      // It is no fault: many models have no such port.
      if (!wasSame)
        host.log.info(
          { host: camera.name, reason: state.reason, retry_ms: state.retry_ms },
          texts.push_unavailable,
        );
    }
    onState();
  }
}

/** Why the options allow no attempt; empty when they do. */
export function whyOff(
  { host, push, push_port, certificate_sha256 }: HostOptions,
  { is_host_shared }: { readonly is_host_shared: boolean },
): string {
  if (push === 'auto' && certificate_sha256 !== undefined) return texts.push_certificate;
  if (push_port === undefined && isOwnHost(host)) return texts.push_own_host;
  // A router may forward the reported port to another device, whose events would be published as those of this one.
  if (push_port === undefined && is_host_shared) return texts.push_shared_host;
  return '';
}
