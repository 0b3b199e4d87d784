/** Takes over another configuration while everything runs: what can change does, and what cannot is named. */
import { isDeepStrictEqual } from 'node:util';
import { withoutSecrets } from '../config/broker.ts';
import type { Config } from '../config/config.ts';
import type { Hub } from '../hub/hub.ts';
import type { LogRoot } from '../../platform/log/log.ts';
import type { DriverInstances, DriverChange } from './driver-instances.ts';
import type { PacePolicy } from './policy.ts';

/** The configuration in effect, and the changes that wait for a restart. */
export class LiveConfig {
  #config: Config;
  /** What the process was started with. */
  readonly #started: Config;

  constructor(config: Config) {
    this.#config = config;
    this.#started = config;
  }

  get config(): Config {
    return this.#config;
  }

  /** What only a start can change stays as it runs. */
  change(next: Config): void {
    const { window_messages } = this.#started.uplink;
    const waiting = restartKeys(this.#started, next);
    const warnings = waiting.length > 0 ? [...next.warnings, restartSentence(waiting)] : next.warnings;
    const config = { ...this.#started, warnings, drivers: next.drivers };
    for (const key of live_keys) Object.assign(config, { [key]: next[key] });
    this.#config = { ...config, uplink: { ...next.uplink, window_messages } };
  }
}

/** Sections that hold at once. */
const live_keys = [
  'kit_name',
  'uplink',
  'files',
  'feeds',
  'telemetry',
  'low_battery',
  'video',
  'commands',
  'log',
] as const;
/** Not compared: drivers are looked at one by one, and the others follow from the rest, or are not of the daemon. */
const followed_keys = ['drivers', 'warnings', 'file', 'control_socket', 'doctor'] as const;

/** Keys of the file that differ and need a restart: all that are not known to apply at run time. */
export function restartKeys(running: Config, next: Config): readonly string[] {
  const free: ReadonlySet<string> = new Set([...live_keys, ...followed_keys]);
  const after = new Map<string, unknown>(Object.entries(compared(next)));
  const differing = Object.entries(compared(running)).filter(
    ([key, before]) => !free.has(key) && !isDeepStrictEqual(before, after.get(key)),
  );
  const isWindowAnother = running.uplink.window_messages !== next.uplink.window_messages;
  return [
    ...differing.map(([key]) => (key === 'socket_gid' ? 'socket_group' : key)),
    ...(isWindowAnother ? ['uplink.window_messages'] : []),
  ];
}

/** Renewed credentials hold from the next connection on. */
function compared(config: Config): object {
  return { ...config, broker: config.broker && withoutSecrets(config.broker) };
}

function restartSentence(keys: readonly string[]): string {
  return `${keys.join(', ')} changed in the configuration; restart kit-connector to apply`;
}

export interface ReloadParts {
  readonly live: LiveConfig;
  readonly instances: DriverInstances;
  readonly hub: Hub;
  readonly pace: PacePolicy;
  readonly log: LogRoot;
}

/** Applies the new configuration and logs what changed. */
export async function reload(next: Config, parts: ReloadParts): Promise<void> {
  const { live, instances, hub, pace, log } = parts;
  const before = live.config;
  live.change(next);
  const now = live.config;
  const logged = new Set(before.warnings);
  log.configure(now.log);
  hub.setRates(pace.rates());
  hub.setTelemetry(telemetryPace(now));
  if (!isDeepStrictEqual(before.commands, now.commands)) hub.policyChanged();
  const drivers = await instances.change(now.drivers);
  for (const warning of now.warnings) if (!logged.has(warning)) log.warn({ file: now.file }, warning);
  const { facts, words } = summarize(drivers, liveKeys(before, now));
  log.info(facts, `configuration reloaded: ${words}`);
}

export function telemetryPace({ telemetry }: Config) {
  const { floor_ms, pace_ms, deadbands } = telemetry;
  return { telemetry_floor_ms: floor_ms, telemetry_pace_ms: pace_ms, deadbands };
}

/** Sections that changed and are in effect. */
function liveKeys(before: Config, now: Config): readonly string[] {
  return live_keys.filter((key) => !isDeepStrictEqual(before[key], now[key]));
}

function summarize(drivers: DriverChange, changed_keys: readonly string[]) {
  const { added, removed, changed, tried_again } = drivers;
  const groups = [
    ['drivers_added', 'added', added],
    ['drivers_removed', 'removed', removed],
    ['drivers_changed', 'changed', changed],
    ['drivers_tried_again', 'tried again', tried_again],
    ['settings_changed', 'other settings', changed_keys],
  ] as const;
  const news = groups.filter(([, , names]) => names.length > 0);
  if (news.length === 0) return { facts: { changed: 'nothing' }, words: 'nothing changed' };
  return {
    facts: Object.fromEntries(news.map(([name, , names]) => [name, names.join(', ')])),
    words: news.map(([, verb, names]) => `${verb} ${names.join(', ')}`).join('; '),
  };
}
