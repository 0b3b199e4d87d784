/** The session with one radio: connect, identify, poll, and clean up at the end. */
import { DeviceName, nameRecord } from '../../src/toolkit/device/device-name.ts';
import { serveDevice, type SessionState } from '../../src/toolkit/device/device-session.ts';
import { outageLog } from '../../src/toolkit/device/outage-log.ts';
import { stateFileName } from '../../src/toolkit/device/state-file.ts';
import { Wake } from '../../src/toolkit/device/wake.ts';
import {
  CommandRefused,
  DeviceRejected,
  DeviceUnreachable,
  messageOf,
  RetryLater,
} from '../../src/platform/errors.ts';
import { aborted, within } from '../../src/platform/time.ts';
import { portOf } from './options.ts';
import { RadioAsset, type RadioAssetParts } from './assets/radio-asset.ts';
import type { Reading } from './reading.ts';
import type { RadioSource, SessionHooks } from './source.ts';
import { texts } from './texts.ts';
import { certificateCheck } from '../../src/toolkit/device/certificate-check.ts';
import { LoginGuard, loginRecord } from '../../src/toolkit/device/login-guard.ts';
import { readSecretFile } from '../../src/toolkit/device/secret-file.ts';
import { pinnedHttp } from '../../src/toolkit/device/pinned-http.ts';
import { snmpSource } from './snmp/snmp-radio.ts';
import { Ubus } from './ubus/ubus.ts';
import { ubusSource } from './ubus-radio.ts';
import { z } from 'zod';
import { DeviceMemory } from '../../src/toolkit/device/device-memory.ts';

export interface RadioSessionParts extends RadioAssetParts {
  /** Returns undefined when the radio with this MAC address belongs to this entry; else why not. */
  readonly identify: (mac: string) => string | undefined;
  /** Shown in the status of the driver. */
  readonly showStatus: (status: string) => void;
  readonly onState: (state: SessionState) => void;
}

interface Served extends RadioSessionParts {
  readonly source: RadioSource;
  readonly asset: RadioAsset;
  readonly memory: Memory;
  readonly name: DeviceName;
  readonly pace: Pace;
}

/** Runs until the host's signal aborts. */
export async function serveRadio(parts: RadioSessionParts): Promise<void> {
  const { host, radio, limits, registry } = parts;
  const file = stateFileName('radio', `${radio.host} ${portOf(radio)}`.toLowerCase());
  const memory = await DeviceMemory.open(host.stateFile(file), radioMemory, host.log);
  if (memory.facts.mac !== undefined) registry.remember(radio.name, memory.facts.mac);
  if (host.signal.aborted) return;
  const pace = new Pace();
  const name = new DeviceName({ host: radio.host, memory });
  const source = openSource({ ...parts, memory, name, hooks: pace });
  const served = { ...parts, source, asset: new RadioAsset(parts), memory, name, pace };
  const serving = keepServed(served);
  try {
    await Promise.race([serving, aborted(host.signal)]);
    served.asset.lose(texts.connector_stopped);
    await within(limits.farewell_ms, source.farewell());
  } finally {
    source.close();
    pace.end();
  }
  await serving;
}

async function keepServed(served: Served): Promise<void> {
  const { host, radio, limits, asset, pace } = served;
  const logOutage = outageLog({ log: host.log, kind: 'radio', facts: { radio: radio.name } });
  await serveDevice({
    signal: host.signal,
    limits,
    run: async (_signal, onUp) => serve(served, onUp),
    expected: () => (pace.away === undefined ? undefined : { reason: pace.away, retry_ms: limits.look_ms }),
    onState: (state) => {
      logOutage(state);
      if (state.state === 'up') served.showStatus('online');
      if ('reason' in state) {
        asset.lose(state.reason);
        pace.fail(state.reason);
        served.showStatus(state.reason);
      }
      served.onState(state);
    },
  });
}

/** Serves one connection until the signal aborts; rejects when the radio is lost or rejects the login. */
async function serve(served: Served, onUp: () => void): Promise<void> {
  const { host, radio, limits, source, asset, memory, name, pace, registry } = served;
  const known = await source.connect();
  const { mac } = known.identity;
  const refusal = served.identify(mac);
  if (refusal !== undefined) throw new DeviceUnreachable(refusal);
  await name.accept();
  registry.answered(radio.name, mac);
  if (memory.facts.mac !== mac) await memory.change({ mac });
  let failures = 0;
  let isAnnounced = false;
  while (!host.signal.aborted) {
    const begin_ms = performance.now();
    try {
      const reading = await source.poll();
      failures = 0;
      if (!isAnnounced) asset.announce(known);
      isAnnounced = true;
      asset.see(reading);
      pace.done(reading);
      onUp();
    } catch (error) {
      if (host.signal.aborted) return;
      failures += 1;
      const isFinal = error instanceof DeviceRejected || error instanceof RetryLater || !isAnnounced;
      if (isFinal || failures >= limits.lost_after_polls) throw error;
      pace.fail(messageOf(error));
    }
    await pace.rest(Math.max(source.poll_ms - (performance.now() - begin_ms), 0), host.signal);
  }
}

/** Poll timing, which a command may cut short, and outages that commands announced. */
class Pace implements SessionHooks {
  readonly #wake = new Wake();
  #away: { readonly reason: string; readonly until_ms: number } | undefined;
  readonly #waiting = new Set<PromiseWithResolvers<Reading>>();

  /** Why the radio may be offline now. */
  get away(): string | undefined {
    return this.#away && performance.now() < this.#away.until_ms ? this.#away.reason : undefined;
  }

  expectAway(reason: string, ms: number): void {
    this.#away = { reason, until_ms: performance.now() + ms };
  }

  async pollNow(signal: AbortSignal): Promise<Reading> {
    const waiting = Promise.withResolvers<Reading>();
    waiting.promise.catch(() => undefined);
    const onAbort = (): void => waiting.reject(new CommandRefused(texts.stopped_before_answer));
    signal.addEventListener('abort', onAbort, { once: true });
    this.#waiting.add(waiting);
    this.#wake.trigger();
    try {
      if (signal.aborted) onAbort();
      return await waiting.promise;
    } finally {
      this.#waiting.delete(waiting);
      signal.removeEventListener('abort', onAbort);
    }
  }

  done(reading: Reading): void {
    for (const { resolve } of this.#waiting) resolve(reading);
  }

  fail(reason: string): void {
    for (const { reject } of this.#waiting) reject(new CommandRefused(texts.the_radio(reason)));
  }

  end(): void {
    this.fail(texts.not_served);
  }

  async rest(ms: number, signal: AbortSignal): Promise<void> {
    await this.#wake.wait(ms, signal);
  }
}

interface SourceParts extends RadioAssetParts {
  readonly memory: Memory;
  readonly name: DeviceName;
  readonly hooks: SessionHooks;
}

export function openSource({ host, radio, name, options, limits, memory, hooks }: SourceParts): RadioSource {
  const { log } = host;
  const guard = new LoginGuard({ memory, limits });
  if (radio.kind === 'snmp') return snmpSource({ radio, name, options, limits, log, guard });
  const { path, tls, username, password_file } = radio;
  const port = portOf(radio);
  if (!tls) log.warn({ radio: radio.name }, texts.no_tls);
  const address = `${radio.host}:${port}`;
  const check = certificateCheck({ configured: radio.certificate_sha256, memory, address, log });
  const http = pinnedHttp({
    host: radio.host,
    name,
    port,
    tls,
    check,
    connect_ms: limits.request_ms,
    reply_bytes_max: limits.reply_bytes_max,
    refused_remedy: texts.refused_remedy,
  });
  const password = async (): Promise<string> => readSecretFile('password_file', password_file);
  const ubus = new Ubus({ http, path, username, password, limits, guard });
  return ubusSource({ ubus, close: http.close, radio, options, limits, log, hooks });
}

/** State of one radio that is kept over restarts. */
const radioMemory = z.object({
  /** SHA-256 of the certificate of the first contact. */
  fingerprint: z.string().optional(),
  /** MAC address of the radio that answered last, so that its peers find it before it answers again. */
  mac: z.string().optional(),
  ...loginRecord,
  ...nameRecord,
});
type Memory = DeviceMemory<typeof radioMemory>;
