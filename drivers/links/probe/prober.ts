/** Asks the targets of one link in turn, for as long as the link exists, and reports the state of the link. */
import { DeviceRejected, messageOf } from '../../../src/platform/errors.ts';
import { reasonOf, deviceIndex } from '../../../src/platform/linux/bound-fd.ts';
import { knockTcp } from '../../../src/platform/linux/bound-tcp.ts';
import { sleep } from '../../../src/platform/time.ts';
import { texts } from '../texts.ts';
import {
  type DeviceFault,
  type Method,
  ProbeCourse,
  type ProbeReading,
  type ProbeTarget,
  window_probes,
} from './course.ts';
import { type Echo, IcmpEchoes } from './echoes.ts';
import type { DriverLog } from '../../../src/toolkit/driver/driver.ts';

export interface ProberSpec {
  readonly device: string;
  /** The intended interface: a device that was plugged in again has the name but another index. */
  readonly ifindex: number;
  /** As they can be asked over the link now; none: it is not probed. */
  readonly targets: () => readonly ProbeTarget[];
  /** Between two probes; the targets take turns. */
  readonly interval_ms: number;
  /** How long an answer may take. A satellite takes a second on a bad day: 3000 at least. */
  readonly timeout_ms: number;
  /** Whether TCP stands in where ICMP is not answered. */
  readonly tcp: boolean;
  /** Everything ends with it; a prober is stopped by nothing else. */
  readonly signal: AbortSignal;
  readonly log: DriverLog;
  /** Called when `reachable` of the next `read` differs from the last. */
  readonly onChange: () => void;
}

/** While the verdict may change, probes come at least so often, also on a link that is probed rarely to save data. */
const doubt_interval_ms = 1_000;

/**
 * Unreachable is reported after four probes in a row without an answer, each of which has
 * `timeout_ms`, and at once when the device is gone; reachable with the second answer.
 */
export function startProber(spec: ProberSpec): { readonly read: () => ProbeReading } {
  const { timeout_ms, tcp } = spec;
  const course = new ProbeCourse({ timeout_ms, tcp, targets: spec.targets().length });
  void run(spec, course);
  return { read: () => course.read(performance.now()) };
}

async function run(spec: ProberSpec, course: ProbeCourse): Promise<void> {
  const { device, targets, interval_ms, timeout_ms, signal } = spec;
  const icmp = new IcmpEchoes({ device, timeout_ms });
  const onEcho = changeLogger(spec, course);
  for (let sequence = 0; !signal.aborted; sequence += 1) {
    const target = course.choose(sequence, targets());
    if (target === undefined) course.lose(sequence, { reason: texts.no_targets, reachable: null });
    else void probe({ spec, course, icmp, onEcho }, sequence, target);
    await pause(course, interval_ms, signal);
  }
  icmp.close();
}

/** Until the next probe is due. A doubt that comes up meanwhile makes it due sooner. */
async function pause(course: ProbeCourse, interval_ms: number, signal: AbortSignal): Promise<void> {
  const began_ms = performance.now();
  while (!signal.aborted) {
    const step_ms = course.in_doubt ? Math.min(interval_ms, doubt_interval_ms) : interval_ms;
    const left_ms = began_ms + step_ms - performance.now();
    if (left_ms <= 0) return;
    await sleep(Math.min(left_ms, doubt_interval_ms), signal);
  }
}

interface Parts {
  readonly spec: ProberSpec;
  readonly course: ProbeCourse;
  readonly icmp: IcmpEchoes;
  /** Reports changes to the log and the driver. */
  readonly onEcho: () => void;
}

async function probe(
  { spec, course, icmp, onEcho }: Parts,
  sequence: number,
  target: ProbeTarget,
): Promise<void> {
  const fault = await deviceFault(spec);
  if (spec.signal.aborted) return;
  if (fault !== null) {
    course.lose(sequence, fault);
    onEcho();
    return;
  }
  const ask = async (method: Method): Promise<void> => {
    const echo = method === 'icmp' ? await icmp.ask(target.ip) : await knock(spec, target);
    if (spec.signal.aborted) return;
    course.settle(sequence, method, echo);
    onEcho();
  };
  await Promise.all(course.begin(sequence, target.ip, performance.now()).map(ask));
}

/** The fault when the device is not the intended one; null when it is. */
async function deviceFault({ device, ifindex }: ProberSpec): Promise<DeviceFault | null> {
  try {
    const index = await deviceIndex(device);
    if (index === ifindex) return null;
    if (index === null) return { reason: texts.device_gone, reachable: false };
    return { reason: texts.device_replaced, reachable: null };
  } catch (error) {
    return { reason: texts.cannot_probe(messageOf(error)), reachable: null };
  }
}

async function knock({ device, timeout_ms, signal }: ProberSpec, { ip, port }: ProbeTarget): Promise<Echo> {
  try {
    const echo = await knockTcp({ device, host_ip: ip, port, timeout_ms, signal });
    return 'rtt_ms' in echo ? echo : { reason: reasonOf(echo.code) };
  } catch (error) {
    const reason = messageOf(error);
    return error instanceof DeviceRejected ? { reason, refused: true } : { reason };
  }
}

/** Says once each way what a technician should know: the method, and targets that are silent alone. */
function changeLogger({ device, log, onChange }: ProberSpec, course: ProbeCourse): () => void {
  let { reachable } = course.read(performance.now());
  let { method } = course;
  let echoes = 0;
  const silent = new SilentTargets();
  const logMethod = (): void => {
    if (course.method === method) return;
    method = course.method;
    const facts = { link: device, reason: course.icmp_refusal };
    if (method === 'icmp') log.info(facts, texts.icmp_answered);
    else if (course.icmp_refusal === null) log.info(facts, texts.icmp_unanswered);
    else log.warn(facts, texts.icmp_unusable);
  };
  const logTargets = (): void => {
    echoes += 1;
    if (echoes % window_probes !== 0) return;
    const { fell_silent, answered } = silent.changes(course.silentTargets(), course.answeringTargets());
    if (fell_silent.length > 0) log.info({ link: device, targets: fell_silent }, texts.targets_silent);
    if (answered.length > 0) log.info({ link: device, targets: answered }, texts.target_answers);
  };
  return () => {
    logMethod();
    logTargets();
    const now = course.read(performance.now()).reachable;
    if (now === reachable) return;
    reachable = now;
    onChange();
  };
}

/** Which probe targets are silent while others answer, as the log has reported it. */
export class SilentTargets {
  #known: ReadonlySet<string> = new Set();

  /** What changed: targets that are silent now, and former silent ones that answered. While none answers, nothing is known of any. */
  changes(silent: readonly string[], answering: ReadonlySet<string>): Changes {
    const fell_silent = silent.filter((target) => !this.#known.has(target));
    const answered = [...this.#known].filter((target) => answering.has(target));
    this.#known = new Set([...this.#known, ...fell_silent].filter((target) => !answering.has(target)));
    return { fell_silent, answered };
  }
}

interface Changes {
  readonly fell_silent: readonly string[];
  readonly answered: readonly string[];
}
