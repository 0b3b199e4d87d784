/** Checks the clock: whether somebody set it from the network, and how far it is off a time server. */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { messageOf } from '../../errors.ts';
import { saidDuration } from '../../platform/log-entry.ts';
import { systemClock } from '../../platform/clock.ts';
import { type Finding, fail, ok, warn } from './finding.ts';
import { clockOffset } from './sntp.ts';

/** Positions and alarms that are this far off mislead an operator. */
const tolerable_ms = 500;
/** Certificates are judged wrongly, and history goes to the wrong day. */
const wrong_ms = 60_000;
const remedy = 'let systemd-timesyncd or chrony set the clock (timedatectl set-ntp true)';

const timesyncd = [
  '/etc/systemd/timesyncd.conf',
  '/etc/systemd/timesyncd.conf.d',
  '/run/systemd/timesyncd.conf.d',
];

/** `server`: asked with SNTP; without it the one that systemd-timesyncd is told to use. */
export async function checkClock(
  server: string | undefined,
  signal: AbortSignal,
): Promise<readonly Finding[]> {
  return [setFinding(), ...(await offsetFinding(server ?? (await configuredServer()), signal))];
}

function setFinding(): Finding {
  const { time_ms, synced } = systemClock().stamp();
  const now = new Date(time_ms).toISOString().slice(0, 19);
  if (synced) return ok('clock', `${now}Z`);
  return warn('clock', `${now}Z, not set from the network since the boot`, remedy);
}

async function offsetFinding(server: string | undefined, signal: AbortSignal): Promise<readonly Finding[]> {
  if (server === undefined) return [];
  const what = `clock against ${server}`;
  try {
    const offset_ms = await clockOffset(server, signal);
    const off = `${offsetText(Math.abs(offset_ms))} ${offset_ms > 0 ? 'behind' : 'ahead'}`;
    if (Math.abs(offset_ms) > wrong_ms) return [fail(what, off, remedy)];
    return [Math.abs(offset_ms) > tolerable_ms ? warn(what, off, remedy) : ok(what, off)];
  } catch (error) {
    return [
      warn(
        what,
        `does not answer (${messageOf(error)})`,
        'check that UDP port 123 gets through, or name another server',
      ),
    ];
  }
}

function offsetText(ms: number): string {
  return ms < 1_000 ? `${Math.round(ms)} ms` : saidDuration(ms / 1_000);
}

/** The first server of `NTP=`; a later file counts before an earlier one. */
async function configuredServer(): Promise<string | undefined> {
  let server: string | undefined;
  for (const file of await configurationFiles()) {
    const text = await readFile(file, 'utf8').catch(() => '');
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
