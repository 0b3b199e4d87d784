/** Formats rates and amounts of data. */
import { quantity } from './units.ts';

/** @param bps bits per second */
export function rate(bps: number): string {
  if (bps < 1e6) return quantity(bps / 1e3, 'kb/s');
  return quantity(bps / 1e6, 'Mb/s', bps < 1e8 ? 1 : 0);
}

export function size(bytes: number): string {
  if (bytes < 1e3) return quantity(bytes, 'B');
  if (bytes < 1e6) return quantity(bytes / 1e3, 'kB');
  return bytes < 1e9 ? quantity(bytes / 1e6, 'MB', 1) : quantity(bytes / 1e9, 'GB', 1);
}
