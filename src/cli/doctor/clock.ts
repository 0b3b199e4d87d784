/** Checks the clock: whether it is synchronised from the network, and its offset from a time server. */
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { messageOf } from '../../errors.ts';
import { durationInWords } from '../../platform/log/entry.ts';
import { type ClockEvidence, openClockEvidence, vouched } from '../../platform/clock-evidence.ts';
import { systemClock } from '../../platform/clock.ts';
import { type Finding, fail, ok, warn } from './finding.ts';
import { clockOffset } from './sntp.ts';
import { texts } from './texts.ts';
import { readTextUpTo, small_bytes_max } from '../../platform/bounded-file.ts';

/** A larger offset of positions and alarms misleads an operator. */
const tolerable_ms = 500;
/** Certificate checks fail, and history is stored under the wrong day. */
const wrong_ms = 60_000;
const remedy = texts.set_clock_by_ntp;

const timesyncd = [
  '/etc/systemd/timesyncd.conf',
  '/etc/systemd/timesyncd.conf.d',
  '/run/systemd/timesyncd.conf.d',
];

interface ClockCheck {
  /** Queried with SNTP; default: the server configured for systemd-timesyncd. */
  readonly server: string | undefined;
  /** `clock: trusted` in the configuration. */
  readonly trusted: boolean;
}

export async function checkClock(
  { server, trusted }: ClockCheck,
  signal: AbortSignal,
): Promise<readonly Finding[]> {
  return [
    setFinding(trusted ? vouched : await openClockEvidence()),
    ...(await offsetFinding(server ?? (await configuredServer()), signal)),
  ];
}

function setFinding(evidence: ClockEvidence): Finding {
  const { time_ms, synced } = systemClock({ evidence }).stamp();
  const now = new Date(time_ms).toISOString().slice(0, 19);
  if (synced) return ok('clock', `${now}Z`);
  return warn('clock', texts.clock_not_synchronised(now), texts.or_trust_clock(remedy));
}

async function offsetFinding(server: string | undefined, signal: AbortSignal): Promise<readonly Finding[]> {
  if (server === undefined) return [];
  const what = texts.clock_against(server);
  try {
    const offset_ms = await clockOffset(server, signal);
    const off = `${offsetText(Math.abs(offset_ms))} ${offset_ms > 0 ? 'behind' : 'ahead'}`;
    if (Math.abs(offset_ms) > wrong_ms) return [fail(what, off, remedy)];
    return [Math.abs(offset_ms) > tolerable_ms ? warn(what, off, remedy) : ok(what, off)];
  } catch (error) {
    return [warn(what, texts.no_answer(messageOf(error)), texts.open_ntp_port)];
  }
}

function offsetText(ms: number): string {
  return ms < 1_000 ? `${Math.round(ms)} ms` : durationInWords(ms / 1_000);
}

/** The first server of `NTP=`; a later file overrides an earlier one. */
async function configuredServer(): Promise<string | undefined> {
  let server: string | undefined;
  for (const file of await configurationFiles()) {
    const text = await readTextUpTo(file, small_bytes_max).catch(() => '');
    server = /^\s*NTP=\s*(\S+)/mu.exec(text)?.[1] ?? server;
  }
  return server;
}

async function configurationFiles(): Promise<readonly string[]> {
  const files: string[] = [];
  for (const path of timesyncd) {
    if (path.endsWith('.conf')) files.push(path);
    else
      files.push(
        ...(await readdir(path).catch(() => []))
          .toSorted((a, b) => a.localeCompare(b, 'en'))
          .map((name) => join(path, name)),
      );
  }
  return files;
}
