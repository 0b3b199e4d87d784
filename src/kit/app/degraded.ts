/** Reasons for a degraded kit: one sentence each, what is wrong and what to do. */
import type { AssetView } from '../hub/assets/asset.ts';
import { failing } from '../hub/assets/health.ts';
import type { StorageFault } from '../../platform/errors.ts';
import type { DriverView } from '../hub/hub.ts';
import type { Dropping } from '../outbox/live/drops.ts';
import type { LedgerReport } from '../outbox/live/ledger.ts';
import type { DiskHealth, Salvage } from '../outbox/protocol.ts';
import type { RefusedKind } from '../outbox/live/gate.ts';
import { reasonOf } from '../../mqtt/codes.ts';
import { texts } from './texts.ts';

export interface DegradedFacts {
  readonly health: DiskHealth;
  readonly ledger: LedgerReport;
  /** For want of room. */
  readonly dropping: readonly Dropping[];
  readonly salvage: Salvage | undefined;
  readonly unheard: readonly string[];
  /** Between kit and broker. */
  readonly broker: readonly string[];
  readonly refused: readonly RefusedKind[];
  readonly drivers: readonly DriverView[];
  readonly assets: readonly Pick<AssetView, 'name' | 'health'>[];
  readonly clock_synced: boolean;
  /** Why power is saved; null: it is not. */
  readonly low_battery: string | null;
  /** Parts of the daemon that do not run. */
  readonly conditions: readonly string[];
  readonly warnings: readonly string[];
}

export function degradedReasons(facts: DegradedFacts): string[] {
  return [
    ...diskReasons(facts.health),
    ...(facts.salvage ? [salvageReason(facts.salvage)] : []),
    ...droppingReasons(facts.dropping),
    ...bufferReasons(facts),
    ...facts.broker,
    ...facts.conditions,
    ...facts.drivers.flatMap(driverReasons),
    ...healthReasons(facts.assets),
    ...facts.warnings,
    ...(facts.clock_synced ? [] : [texts.clock_not_set]),
    ...(facts.low_battery === null ? [] : [facts.low_battery]),
  ];
}

function diskReasons({ state, detail, fault }: DiskHealth): string[] {
  if (state === 'full') return [texts.disk_full(detail)];
  if (state === 'ok') return [];
  return [(fault ? disk_reasons[fault] : texts.disk_write_failed)(detail)];
}

const disk_reasons: Readonly<Record<StorageFault, (detail: string) => string>> = {
  full: texts.disk_full_memory,
  read_only: texts.disk_read_only,
  busy: texts.disk_locked,
};

/** Reasons that no other part of the report shows. */
export function otherReasons({ salvage, warnings }: Pick<DegradedFacts, 'salvage' | 'warnings'>): string[] {
  return [...(salvage ? [salvageReason(salvage)] : []), ...warnings];
}

function salvageReason({ kind, cause, rows_saved, rows_lost, moved_to }: Salvage): string {
  if (kind === 'other_kit') return texts.file_other_kit(cause, moved_to);
  if (kind === 'too_new') return texts.file_too_new(cause, moved_to);
  const lost = rows_lost === null ? texts.unknown_number : String(rows_lost);
  if (kind === 'replaced') return texts.file_replaced(rows_saved, lost, moved_to);
  return texts.file_damaged(cause, rows_saved, lost, moved_to);
}

export function droppingReasons(dropping: readonly Dropping[]): string[] {
  return dropping.map(({ cause, lanes }) => texts.dropping[cause](lanes.join(', ')));
}

export function refusedReasons(refused: readonly RefusedKind[]): string[] {
  return refused.map(({ kind, code, reason }) => texts.kind_refused(kind, reason, reasonOf(code).remedy));
}

function bufferReasons({ ledger, unheard, refused }: DegradedFacts): string[] {
  const reasons: string[] = [];
  if (ledger.quarantined > 0) {
    reasons.push(texts.quarantined(ledger.quarantined));
  }
  if (unheard.length > 0) {
    reasons.push(texts.no_subscriber(unheard.join(', ')));
  }
  reasons.push(...refusedReasons(refused));
  if (!ledger.balanced) reasons.push(texts.accounting_mismatch);
  return reasons;
}

/** One sentence for each fault of an item, however many assets have it. */
export function healthReasons(assets: DegradedFacts['assets']): string[] {
  const names = new Map<string, string[]>();
  for (const { name, health } of assets) {
    for (const [item, { reason }] of failing(health)) {
      const sentence = texts.not_delivered[item](named_here, reason ?? texts.no_reason);
      names.set(sentence, [...(names.get(sentence) ?? []), name]);
    }
  }
  return Array.from(names, ([sentence, all]) => {
    const more = all.length > named_assets_max ? texts.and_more(all.length - named_assets_max) : '';
    return sentence.replace(named_here, () => all.slice(0, named_assets_max).join(', ') + more);
  });
}
/** Stands for the names of the assets. */
const named_here = '\0';
const named_assets_max = 4;

function driverReasons(driver: DriverView): string[] {
  const weaknesses = driver.devices?.flatMap(({ weakness = [] }) => weakness) ?? [];
  return [...stateReasons(driver), ...weaknesses];
}

function stateReasons({ name, state, reason }: DriverView): string[] {
  if (state === 'rejected') return [texts.driver_rejected(name, reason ?? texts.no_reason)];
  if (state === 'hung') return [texts.driver_hung(name, reason ?? texts.driver_abandoned)];
  return [];
}

/** Parts of the daemon whose faults last: each has one sentence until the part has recovered. */
export type ConditionKind = 'configuration' | 'service' | 'metrics';

export class Conditions {
  readonly #present = new Map<ConditionKind, string>();

  /** What is wrong and what to do, until `clear`. */
  note(kind: ConditionKind, sentence: string): void {
    this.#present.set(kind, sentence);
  }

  clear(kind: ConditionKind): void {
    this.#present.delete(kind);
  }

  sentences(): readonly string[] {
    return [...this.#present.values()];
  }
}

export const look_every_ms = 5_000;
/** What passes sooner is logged by its part, if at all. */
export const begins_after_ms = 10_000;
/** What comes back sooner has not ended. */
export const ends_after_ms = 60_000;

interface Lasting {
  /** As it was first read. */
  readonly sentence: string;
  readonly began_ms: number;
  last_ms: number;
  isLogged: boolean;
}

interface Log {
  info(facts: object, sentence: string): void;
  warn(facts: object, sentence: string): void;
}

/** Logs each reason for a degraded kit when it begins and when it ends. */
export class DegradedLog {
  readonly #now: () => number;
  readonly #log: Log;
  readonly #reasons = new Map<string, Lasting>();

  constructor(now: () => number, log: Log) {
    this.#now = now;
    this.#log = log;
  }

  /** To be called every `look_every_ms` with all sentences. */
  look(sentences: readonly string[]): void {
    const now_ms = this.#now();
    for (const sentence of sentences) this.#seen(sentence, now_ms);
    for (const [key, reason] of this.#reasons) {
      const { isLogged, began_ms, last_ms } = reason;
      if (last_ms === now_ms && !isLogged && now_ms - began_ms >= begins_after_ms) {
        reason.isLogged = true;
        this.#log.warn({ text: reason.sentence }, texts.degraded_began);
      }
      if (now_ms - last_ms < (isLogged ? ends_after_ms : look_every_ms)) continue;
      this.#reasons.delete(key);
      const lasted_s = Math.round((last_ms - began_ms) / 1_000);
      if (isLogged) this.#log.info({ text: reason.sentence, lasted_s }, texts.degraded_ended);
    }
  }

  #seen(sentence: string, now_ms: number): void {
    // A figure that changes (messages, percents, gigabytes) makes no other reason of it.
    const key = sentence.replaceAll(/\d+(?:[.,]\d+)*/gu, '#');
    const known = this.#reasons.get(key);
    if (known) known.last_ms = now_ms;
    else this.#reasons.set(key, { sentence, began_ms: now_ms, last_ms: now_ms, isLogged: false });
  }
}
