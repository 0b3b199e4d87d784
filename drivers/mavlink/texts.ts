/** Words of the driver's facts in `kit-connector status`; tests refer to them by name. */
export const texts = {
  vehicle: (name: string, sysid: number) => `${name} (system ${sysid})`,
  offline: (ms: number) => `offline for ${Math.round(ms / 1_000)} s`,
  alarm: (reason: string) => `alarm: ${reason}`,
  mode_unknown: 'mode unknown',
  airborne: 'airborne',
  armed: (armed: boolean | null) => (armed === null ? 'unknown whether armed' : armed ? 'armed' : 'disarmed'),
  battery: (remaining_pct: number | null, voltage: number | null) => {
    const percent = remaining_pct === null ? [] : [`${remaining_pct} %`];
    const volts = voltage === null ? [] : [`${voltage.toFixed(1)} V`];
    return `battery ${[...percent, ...volts].join(', ')}`;
  },
} as const;
