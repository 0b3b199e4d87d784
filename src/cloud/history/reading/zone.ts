/** Buckets of a time zone: its hours and days, through changes of its clock. */

/** Changes of a clock happen on quarters of an hour. */
const quarter_ms = 900_000;
const kept_max = 50_000;

export class Zone {
  readonly #format: Intl.DateTimeFormat;
  readonly #kept = new Map<number, number>();

  constructor(name: string) {
    this.#format = new Intl.DateTimeFormat('en', { timeZone: name, timeZoneName: 'longOffset' });
  }

  /** Start of the bucket that holds the time. The hour that comes twice in autumn is two (timescaledb#4884), and none begins behind its time (#9136). */
  startOf(time_ms: number, bucket_ms: number): number {
    const offset_ms = this.offsetAt(time_ms);
    const local_ms = time_ms + offset_ms;
    const start_ms = Math.floor(local_ms / bucket_ms) * bucket_ms;
    const same_ms = start_ms - offset_ms;
    // The clock may have changed since the bucket began.
    const other_ms = start_ms - this.offsetAt(same_ms);
    return other_ms <= time_ms ? other_ms : same_ms;
  }

  /** Milliseconds that the clocks of the zone are ahead of UTC. */
  offsetAt(time_ms: number): number {
    const quarter = Math.floor(time_ms / quarter_ms);
    const known = this.#kept.get(quarter);
    if (known !== undefined) return known;
    const name = this.#format.formatToParts(time_ms).find(({ type }) => type === 'timeZoneName')?.value ?? '';
    const [, sign, hours = '0', minutes = '0', seconds = '0'] =
      /GMT([+-])(\d\d):(\d\d)(?::(\d\d))?/u.exec(name) ?? [];
    const ahead_s = Number(hours) * 3_600 + Number(minutes) * 60 + Number(seconds);
    const offset_ms = (sign === '-' ? -1 : 1) * ahead_s * 1_000;
    if (this.#kept.size >= kept_max) this.#kept.clear();
    this.#kept.set(quarter, offset_ms);
    return offset_ms;
  }
}
