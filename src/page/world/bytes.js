/** Formats rates and amounts of data. */

/**
 * @param {number} bps bits per second
 * @returns {string}
 */
export function rate(bps) {
  if (bps < 1e6) return `${Math.round(bps / 1e3)} kb/s`;
  return `${(bps / 1e6).toFixed(bps < 1e8 ? 1 : 0)} Mb/s`;
}

/**
 * @param {number} bytes
 * @returns {string}
 */
export function size(bytes) {
  if (bytes < 1e3) return `${bytes} B`;
  if (bytes < 1e6) return `${(bytes / 1e3).toFixed(0)} kB`;
  return bytes < 1e9 ? `${(bytes / 1e6).toFixed(1)} MB` : `${(bytes / 1e9).toFixed(1)} GB`;
}
