/** Runs the checks of one link for as long as it exists. */
import { messageOf } from '../../../src/errors.ts';
import { texts } from '../texts.ts';
import { Wake } from '../wake.ts';
import type { Check, CheckerSpec, CheckOutcome, CheckReading, CheckWay, StartChecker } from './api.ts';
import { labelOf } from './api.ts';
import { checkDns } from './dns.ts';

/** Failed rounds in a row until the verdict changes. A single pass suffices: only the far side gives that answer. */
export const failed_after = 2;
/** Until the next round while the verdict may change. */
const doubt_ms = 5_000;
/** Until the next round of a link that fails, at most: its return should be seen soon. */
const failing_ms = 30_000;

/** Begins with a round at once. A round asks one check, the next one only if that fails. */
export const startChecker: StartChecker = (spec) => {
  const wake = new Wake();
  const state: { now: CheckReading } = { now: unknown };
  void run(spec, wake, state);
  return { read: () => state.now, hurry: wake.trigger };
};

const unknown: CheckReading = {
  passed: null,
  passed_ms: null,
  asked_ms: null,
  failing_since_ms: null,
  reason: null,
};

async function run(spec: CheckerSpec, wake: Wake, state: { now: CheckReading }): Promise<void> {
  const { signal, device, log, onChange } = spec;
  let failures = 0;
  for (let round = 0; !signal.aborted; round += 1) {
    const begun_ms = performance.now();
    const reason = await failureOf(spec, round);
    if (signal.aborted) return;
    failures = reason === null ? 0 : failures + 1;
    const { passed } = state.now;
    state.now = after(state.now, { begun_ms, reason, failures });
    if (state.now.passed !== passed) {
      const facts = { link: device, reason };
      if (state.now.passed === false) log.warn(facts, texts.checks_failed);
      else if (passed === false) log.info(facts, texts.checks_passed);
      onChange();
    }
    await wake.wait(pauseOf(state.now, failures, spec.interval_ms), signal);
  }
}

interface Round {
  readonly begun_ms: number;
  readonly reason: CheckOutcome;
  /** Failed rounds in a row, this one included. */
  readonly failures: number;
}

/** Pure. */
export function after(before: CheckReading, { begun_ms, reason, failures }: Round): CheckReading {
  const asked_ms = begun_ms;
  if (reason === null)
    return { passed: true, passed_ms: begun_ms, asked_ms, failing_since_ms: null, reason: null };
  return {
    passed: failures >= failed_after ? false : before.passed,
    passed_ms: before.passed_ms,
    asked_ms,
    failing_since_ms: before.failing_since_ms ?? begun_ms,
    reason,
  };
}

function pauseOf({ passed }: CheckReading, failures: number, interval_ms: number): number {
  if (failures === 0) return interval_ms;
  return Math.min(interval_ms, passed === false ? failing_ms : doubt_ms);
}

/** Why none of the checks passed, the first one's reason; null: one has. */
async function failureOf(
  { checks, device, timeout_ms, signal }: CheckerSpec,
  round: number,
): Promise<CheckOutcome> {
  let reason: CheckOutcome = null;
  for (let at = 0; at < checks.length && !signal.aborted; at += 1) {
    const check = checks[(round + at) % checks.length];
    const outcome = check ? await outcomeOf(check, { device, timeout_ms, signal }) : null;
    if (outcome === null) return null;
    reason ??= outcome;
  }
  return reason;
}

async function outcomeOf(check: Check, way: CheckWay): Promise<CheckOutcome> {
  try {
    if (check.kind === 'dns') return await checkDns(check, way);
    // Loaded only where it is configured: HTTP and TLS cost memory.
    const { checkHttp } = await import('./http.ts');
    return await checkHttp(check, way);
  } catch (error) {
    return texts.check_failed(labelOf(check), messageOf(error));
  }
}
