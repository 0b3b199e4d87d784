/** Takes over another configuration while everything runs: what can change does, and what cannot is named. */
import { isDeepStrictEqual } from 'node:util';
import type { Config } from '../config.ts';
import type { Hub } from '../hub/hub.ts';
import type { LogRoot } from '../platform/log.ts';
import type { Fleet, FleetChange } from './fleet.ts';
import type { PacePolicy } from './policy.ts';

/** The configuration as it holds now, and what of it does not hold before a restart. */
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

  /** Keeps what only a start can change as it runs. */
  change(next: Config): void {
    const { kit_id, state_dir, runtime_dir, control_socket, socket_gid, broker, outbox, media } =
      this.#started;
    const { service } = this.#started;
    const lasting = {
      kit_id,
      state_dir,
      runtime_dir,
      control_socket,
      socket_gid,
      broker,
      outbox,
      media,
      service,
    };
    const uplink = { ...next.uplink, window_messages: this.#started.uplink.window_messages };
    const waiting = restartKeys(this.#started, next);
    const warnings = waiting.length > 0 ? [...next.warnings, restartSentence(waiting)] : next.warnings;
    this.#config = { ...next, ...lasting, uplink, warnings };
  }
}

/** Keys of the file that differ and that only a restart brings in. */
export function restartKeys(running: Config, next: Config): readonly string[] {
  const pairs: readonly (readonly [key: string, running: unknown, next: unknown])[] = [
    ['kit_id', running.kit_id, next.kit_id],
    ['state_dir', running.state_dir, next.state_dir],
    ['runtime_dir', running.runtime_dir, next.runtime_dir],
    ['socket_group', running.socket_gid, next.socket_gid],
    ['broker', running.broker, next.broker],
    ['uplink.window_messages', running.uplink.window_messages, next.uplink.window_messages],
    ['outbox', running.outbox, next.outbox],
    ['media', running.media, next.media],
    ['service', running.service, next.service],
    ['metrics', running.metrics, next.metrics],
  ];
  return pairs.filter(([, before, after]) => !isDeepStrictEqual(before, after)).map(([key]) => key);
}

function restartSentence(keys: readonly string[]): string {
  return `the configuration changed ${keys.join(', ')}, which ${keys.length === 1 ? 'takes' : 'take'} a restart; restart kit-connector`;
}

export interface ReloadParts {
  readonly live: LiveConfig;
  readonly fleet: Fleet;
  readonly hub: Hub;
  readonly pace: PacePolicy;
  readonly log: LogRoot;
}

/** Brings the new configuration in and says in the log what it did. */
export async function reload(next: Config, parts: ReloadParts): Promise<void> {
  const { live, fleet, hub, pace, log } = parts;
  const before = live.config;
  live.change(next);
  const now = live.config;
  const told = new Set(before.warnings);
  log.configure(now.log);
  hub.setRates(pace.rates());
  hub.setTelemetry(telemetryPace(now));
  if (!isDeepStrictEqual(before.commands, now.commands)) hub.policyChanged();
  const drivers = await fleet.change(now.drivers);
  for (const warning of now.warnings) if (!told.has(warning)) log.warn({ file: now.file }, warning);
  log.info(said(drivers, liveKeys(before, now)), 'the configuration was read again');
}

export function telemetryPace({ telemetry }: Config) {
  const { floor_ms, pace_ms, deadbands } = telemetry;
  return { telemetry_floor_ms: floor_ms, telemetry_pace_ms: pace_ms, deadbands };
}

/** Sections that changed and hold already. */
function liveKeys(before: Config, now: Config): readonly string[] {
  const keys = ['kit_name', 'uplink', 'feeds', 'telemetry', 'commands', 'log'] as const;
  return keys.filter((key) => !isDeepStrictEqual(before[key], now[key]));
}

function said(drivers: FleetChange, changed_keys: readonly string[]): Readonly<Record<string, string>> {
  const { added, removed, changed, tried_again } = drivers;
  const groups = {
    drivers_added: added,
    drivers_removed: removed,
    drivers_changed: changed,
    drivers_tried_again: tried_again,
    settings_changed: changed_keys,
  };
  const facts = Object.entries(groups).filter(([, names]) => names.length > 0);
  if (facts.length === 0) return { changed: 'nothing' };
  return Object.fromEntries(facts.map(([name, names]) => [name, names.join(', ')]));
}
