/**
 * The messages for logs (common.xml, LOG_*): the list of a vehicle, and the bytes of one. Both autopilots send what is asked for without
 * further requests: what is lost is asked for again.
 */
import type { Messages } from '../wire/messages.ts';
import type { Addressee, LogEntry } from '../vehicles/addressee.ts';

/** Of one request without any answer. */
const tries_max = 6;
const quiet_ms = 1_500;
const data_quiet_ms = 600;
const part_bytes = 90;
const all_logs = 0xffff;
/** A list may be long, and the link slow. */
const list_max_ms = 120_000;
const window_max_ms = 60_000;
/**
 * Before it knows the time a vehicle dates its logs 1970, 1980 or 2000 (mavlink/MAVSDK-Python#532, ArduPilot#9984, PX4-Autopilot#17097).
 * An earlier one is unknown, 0: several logs have it.
 */
const known_from_s = Date.UTC(2010, 0, 1) / 1_000;

/** Resolves with the logs that are not empty, oldest first as the vehicle counts; undefined: it does not answer. */
export async function listLogs(to: Addressee, signal: AbortSignal): Promise<readonly LogEntry[] | undefined> {
  const found = new Map<number, Messages['LOG_ENTRY']>();
  let ids: readonly number[] | undefined;
  const missing = (): readonly number[] | undefined => ids?.filter((id) => !found.has(id));
  for (let tries = 0; tries < tries_max && missing()?.length !== 0 && !signal.aborted; tries += 1) {
    const before = found.size;
    const [start = 0, end = all_logs] = firstRun(missing() ?? []);
    to.contact.send('LOG_REQUEST_LIST', { ...to.contact.target, start, end });
    await receive(to, 'LOG_ENTRY', { quiet_ms, max_ms: list_max_ms, signal }, (entry) => {
      // Of ArduPilot the first one is 1, of PX4 0.
      const first = entry.last_log_num - entry.num_logs + 1;
      if (ids === undefined || entry.last_log_num > (ids.at(-1) ?? -1))
        ids = Array.from({ length: entry.num_logs }, (_, at) => first + at);
      found.set(entry.id, entry);
      return missing()?.length === 0;
    });
    if (found.size > before) tries = 0;
  }
  if (!ids) return undefined;
  return [...found.values()]
    .filter(({ size, num_logs }) => size > 0 && num_logs > 0)
    .map(({ id, size, time_utc }) => ({
      id,
      bytes: size,
      time_utc: time_utc < known_from_s ? 0 : time_utc,
    }))
    .toSorted((a, b) => a.id - b.id);
}

/** Resolves with these bytes of a log; undefined: the vehicle does not send them. */
export async function readLog(
  to: Addressee,
  { id, from, count }: { readonly id: number; readonly from: number; readonly count: number },
  signal: AbortSignal,
): Promise<Uint8Array | undefined> {
  const bytes = new Uint8Array(count);
  const missing = new Set(Array.from({ length: Math.ceil(count / part_bytes) }, (_, part) => part));
  for (let tries = 0; tries < tries_max && missing.size > 0 && !signal.aborted; tries += 1) {
    const before = missing.size;
    const [first = 0, last = first] = firstRun([...missing].toSorted((a, b) => a - b));
    const ofs = first * part_bytes;
    const wanted = Math.min((last + 1) * part_bytes, count) - ofs;
    to.contact.send('LOG_REQUEST_DATA', { ...to.contact.target, id, ofs: from + ofs, count: wanted });
    await receive(to, 'LOG_DATA', { quiet_ms: data_quiet_ms, max_ms: window_max_ms, signal }, (data) => {
      const part = (data.ofs - from) / part_bytes;
      const length = Math.min(part_bytes, count - part * part_bytes);
      if (data.id !== id || !missing.has(part) || data.count < length) return false;
      bytes.set(data.data.slice(0, length), part * part_bytes);
      missing.delete(part);
      return missing.size === 0 || part === last;
    });
    if (missing.size < before) tries = 0;
  }
  return missing.size === 0 ? bytes : undefined;
}

/** Tells the vehicle that nothing more is read, so that it writes its log again. */
export function endReading(to: Addressee): void {
  to.contact.send('LOG_REQUEST_END', to.contact.target);
}

interface Wait {
  /** Without a message for this long nothing more comes. */
  readonly quiet_ms: number;
  readonly max_ms: number;
  readonly signal: AbortSignal;
}

/** Passes each message to `take` until that returns true, or the vehicle is quiet. */
async function receive<K extends 'LOG_DATA' | 'LOG_ENTRY'>(
  { contact, changes }: Addressee,
  name: K,
  { quiet_ms: wait_ms, max_ms, signal }: Wait,
  take: (fields: Messages[K]) => boolean,
): Promise<void> {
  let latest = contact.latest.last(name);
  let heard_ms = performance.now();
  await changes.until(
    () => {
      const message = contact.latest.last(name);
      if (message === latest || !message) return performance.now() - heard_ms > wait_ms || undefined;
      latest = message;
      heard_ms = performance.now();
      return take(message) || undefined;
    },
    max_ms,
    signal,
  );
}

/** The first and last of the numbers that follow each other; empty: there is none. */
function firstRun([first, ...others]: readonly number[]): readonly number[] {
  if (first === undefined) return [];
  const gap = others.findIndex((each, at) => each !== first + at + 1);
  return [first, first + (gap < 0 ? others.length : gap)];
}
