/** Reads the texts of /proc. Pure: text in, numbers out; undefined where a value is missing. */

export interface CpuTimes {
  readonly busy: number;
  readonly total: number;
}

/** The line `cpu` of /proc/stat, in clock ticks since boot. Guest time is contained in user time already. */
export function parseCpu(stat: string): CpuTimes | undefined {
  const line = /^cpu +(.+)$/mu.exec(stat)?.[1];
  const ticks = line?.trim().split(/ +/u).slice(0, 8).map(Number);
  if (!ticks || ticks.length < 4 || !ticks.every(Number.isFinite)) return undefined;
  const total = ticks.reduce((sum, each) => sum + each, 0);
  const [, , , idle = 0, iowait = 0] = ticks;
  return { busy: total - idle - iowait, total };
}

/** Utilisation between two readings, percent with one decimal. The kernel's iowait may go backwards, hence the bounds. */
export function cpuPct(before: CpuTimes | undefined, now: CpuTimes | undefined): number | undefined {
  if (!before || !now || now.total <= before.total) return undefined;
  const share = (now.busy - before.busy) / (now.total - before.total);
  return tenths(Math.min(100, Math.max(0, share * 100)));
}

/** Memory that programs could not get without swapping, percent with one decimal. */
export function memPct(meminfo: string): number | undefined {
  const total = kibibytes(meminfo, 'MemTotal');
  const available = kibibytes(meminfo, 'MemAvailable');
  if (!total || available === undefined || available > total) return undefined;
  return tenths((1 - available / total) * 100);
}

/**
 * Memory of a control group in use, percent of its limit with one decimal, without the file cache that the kernel releases first.
 * Texts of memory.max, memory.current and memory.stat (cgroups(7), version 2). Undefined without a limit (`max`).
 */
export function groupMemPct(max: string, current: string, stat: string): number | undefined {
  const [limit, used] = [max, current].map((text) => Number.parseInt(text, 10));
  if (!limit || used === undefined || !Number.isFinite(limit + used)) return undefined;
  const cache = Number(/^inactive_file (\d+)$/mu.exec(stat)?.[1] ?? 0);
  return tenths(Math.min(100, (100 * Math.max(0, used - cache)) / limit));
}

/** Whole seconds since boot. */
export function uptime_s(uptime: string): number | undefined {
  const seconds = Number.parseFloat(uptime);
  return Number.isFinite(seconds) && seconds >= 0 ? Math.floor(seconds) : undefined;
}

function kibibytes(meminfo: string, key: string): number | undefined {
  const value = new RegExp(`^${key}: +(\\d+) kB$`, 'mu').exec(meminfo)?.[1];
  return value === undefined ? undefined : Number(value);
}

function tenths(value: number): number {
  return Math.round(value * 10) / 10;
}
