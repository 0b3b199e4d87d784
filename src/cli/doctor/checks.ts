/** Runs the checks of a doctor concurrently, each with a time limit, and returns the findings in a fixed order. */
import { messageOf } from '../../platform/errors.ts';
import { within } from '../../platform/time.ts';
import { version } from '../version.ts';
import { type Finding, fail, ok, plain, warn } from './finding.ts';
import { texts } from './texts.ts';

/** Limit of all checks. */
const total_ms = 20_000;
/** Then the signal of a check aborts; within the grace time it can still report what timed out. */
const check_ms = 8_000;
const grace_ms = 2_000;

export type Check = readonly [what: string, look: (over: AbortSignal) => Promise<readonly Finding[]>];

/** Never rejects: a failed check is a finding. Takes 20 s at most. */
export async function runChecks(checks: readonly Check[], signal: AbortSignal): Promise<readonly Finding[]> {
  const run = checks.map(async (check) => runCheck(check, signal));
  return ((await within(total_ms, Promise.all(run), signal)) ?? [[tooLong('doctor')]]).flat();
}

async function runCheck([what, look]: Check, signal: AbortSignal): Promise<readonly Finding[]> {
  const over = AbortSignal.any([signal, AbortSignal.timeout(check_ms)]);
  try {
    return (await within(check_ms + grace_ms, look(over), signal)) ?? [tooLong(what)];
  } catch (error) {
    return [fail(what, texts.check_failed(plain(messageOf(error))), texts.report_with_bundle)];
  }
}

function tooLong(what: string): Finding {
  return warn(what, texts.check_timed_out, texts.repeat_later);
}

/**
 * The findings, of which the warnings that `accepted` names are no longer any. A fault cannot be accepted. Of a name that fits nothing, because
 * it is misspelt or the risk is gone, there is a line.
 */
export function withAccepted(
  findings: readonly Finding[],
  accepted: readonly string[] = [],
): readonly Finding[] {
  const isAccepted = ({ level, what }: Finding): boolean => level === 'warn' && accepted.includes(what);
  const unused = accepted.filter((name) => !findings.some((each) => isAccepted(each) && each.what === name));
  return [
    ...findings.map((each) => (isAccepted(each) ? ok(each.what, texts.accepted(each.finding)) : each)),
    ...unused.map((name) => ok('accepted', texts.not_found_now(plain(name)))),
  ];
}

export function versionsFinding(): Finding {
  const { platform, arch, versions } = process;
  return ok('versions', texts.versions(version(), versions.node, platform, arch));
}

/** A warning of the configuration. */
export function splitWarning(sentence: string): Finding {
  return warn('configuration', ...warningHalves(sentence));
}

export function warningHalves(sentence: string): [finding: string, remedy: string] {
  return splitSentence(sentence.includes('; ') ? sentence : sentence.replace(/: (?=[^:]*$)/u, '; '));
}

/** Splits our sentences: the fault, a semicolon, and the remedy. */
export function splitSentence(
  sentence: string,
  otherwise: string = texts.correct_file,
): [finding: string, remedy: string] {
  const at = sentence.lastIndexOf('; ');
  return at < 0 ? [sentence, otherwise] : [sentence.slice(0, at), sentence.slice(at + 2)];
}
