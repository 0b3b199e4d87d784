/** Joins the results of the probes and the checks of a link. Pure. */
import type { ProbeReading } from '../probe/api.ts';
import { texts } from '../texts.ts';
import type { CheckReading } from './api.ts';

/**
 * An expected answer is stronger evidence than an echo, both ways: checks that fail make a link unreachable whose probes are
 * answered, since a portal or an accelerator answers those itself; and a check that passed after the probes fell silent
 * shows that only the probes are filtered.
 */
export function joined(probe: ProbeReading | null, check: CheckReading | null): ProbeReading | null {
  if (!check) return probe;
  if (!probe) return byChecks(check);
  if (check.passed === false && probe.reachable !== false) {
    const failed = byChecks(check);
    return isOutdated(check, probe) ? { ...failed, decided_by: 'probes' } : failed;
  }
  if (probe.reachable !== false || !isNewer(check, probe)) return probe;
  return { ...byChecks(check), note: texts.only_checks_answer };
}

/** It passed in a round that began after the first probe without an answer: before that the link may have worked. */
function isNewer({ passed, passed_ms }: CheckReading, { silent_ms, since_ms }: ProbeReading): boolean {
  const silent_since_ms = silent_ms ?? since_ms ?? Number.NEGATIVE_INFINITY;
  return passed === true && passed_ms !== null && passed_ms > silent_since_ms;
}

/** It failed while no probe was answered either, and was not asked since: nothing has answered wrongly. */
function isOutdated({ asked_ms }: CheckReading, { since_ms }: ProbeReading): boolean {
  return asked_ms !== null && since_ms !== null && asked_ms < since_ms;
}

function byChecks({ passed, failing_since_ms, reason }: CheckReading): ProbeReading {
  return {
    reachable: passed,
    since_ms: passed === false ? failing_since_ms : null,
    silent_ms: null,
    latency_ms: null,
    jitter_ms: null,
    packet_loss_pct: passed === false ? 100 : null,
    method: 'none',
    reason: passed === true ? null : (reason ?? texts.first_probes),
    decided_by: 'checks',
    note: null,
  };
}
