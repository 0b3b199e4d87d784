/** What outlives a restart of the daemon: which links there were, what they have carried, and their peaks. */
import { renameSync } from 'node:fs';
import { z } from 'zod';
import { type CapState, capState } from '../../../src/contract/feeds.ts';
import { linkType, wans_max } from '../../../src/contract/kit.ts';
import type { DriverLog } from '../../../src/toolkit/driver/driver.ts';
import { messageOf } from '../../../src/platform/errors.ts';
import { texts } from '../texts.ts';
import { empty_ledger, usageLedger } from './usage.ts';
import { KeptFile } from '../kept-file.ts';
import { readTextUpToSync, table_bytes_max } from '../../../src/platform/bounded-file.ts';

/** Wear of the flash: one small file so often, and once more at the stop. */
export const save_every_ms = 60_000;
/** A link that was not seen for so long is forgotten: a stick that was plugged in once, a port that was renamed. */
export const forget_after_ms = 30 * 24 * 3_600_000;

const bps = z.number().nonnegative().nullable();
const linkRecord = z.object({
  type: linkType,
  /** When the machine last showed that it is a WAN link, UTC milliseconds; 0: never; null: the clock was not set. */
  seen_ms: z.number().nullable(),
  usage: usageLedger,
  /** Of the billing month that began on that day. */
  peak: z.object({ month: z.string().nullable(), rx_bps: bps, tx_bps: bps }),
  /** State of its data cap that was reported last; left out: `ok`. */
  cap: capState.optional(),
});
export type LinkRecord = z.output<typeof linkRecord>;

const memoryFile = z.object({ version: z.literal(1), links: z.record(z.string(), linkRecord) });

const blank: Omit<LinkRecord, 'type'> = {
  seen_ms: 0,
  usage: empty_ledger,
  peak: { month: null, rx_bps: null, tx_bps: null },
};

/** The records of all links, in one file that is replaced as a whole. */
export class Memory {
  readonly #file: KeptFile;
  readonly #log: DriverLog;
  readonly #links: Map<string, LinkRecord>;
  #isChanged = false;
  #saved_mono_ms: number;

  constructor(file: string, log: DriverLog, mono_ms: number) {
    this.#file = new KeptFile(file, log, { not_saved: texts.usage_not_saved, saved: texts.usage_saved });
    this.#log = log;
    this.#links = new Map(Object.entries(load(file, log)));
    // The first counters are saved at once: without them a killed daemon would start again from zero.
    this.#saved_mono_ms = this.#links.size === 0 ? mono_ms - save_every_ms : mono_ms;
  }

  names(): readonly string[] {
    return [...this.#links.keys()];
  }

  /** As `names`, sorted; a link seen before the clock was set counts as seen now. */
  newestFirst(): readonly string[] {
    const seen_ms = ({ seen_ms: seen }: LinkRecord): number => seen ?? Number.MAX_VALUE;
    return [...this.#links].sort(([, a], [, b]) => seen_ms(b) - seen_ms(a)).map(([name]) => name);
  }

  get(name: string): LinkRecord | undefined {
    return this.#links.get(name);
  }

  /**
   * Moves the records of interfaces that were renamed: the kernel gives an index once in a boot, so the same index under another
   * name is the same interface. `nameOf` gives the interface that has an index now. Returns the old names.
   */
  followRenames(boot_id: string, nameOf: (ifindex: number) => string | undefined): readonly string[] {
    const renamed = [...this.#links].flatMap(([name, { usage }]) => {
      const to = usage.last?.boot_id === boot_id ? nameOf(usage.last.ifindex) : undefined;
      return to === undefined || to === name || this.#links.has(to) ? [] : [{ name, to }];
    });
    for (const { name, to } of renamed) {
      const record = this.#links.get(name);
      if (record) this.#links.set(to, record);
      this.#links.delete(name);
      this.#isChanged = true;
      this.#log.info({ link: to, before: name }, texts.link_renamed);
    }
    return renamed.map(({ name }) => name);
  }

  /** Changes the record of a link, which is a blank one at first. */
  update(name: string, type: LinkRecord['type'], change: Partial<LinkRecord>): LinkRecord {
    const record = { ...blank, ...this.#links.get(name), type, ...change };
    this.#links.set(name, record);
    this.#isChanged = true;
    return record;
  }

  capState(name: string): CapState {
    return this.#links.get(name)?.cap ?? 'ok';
  }

  noteCap(name: string, cap: CapState): void {
    const record = this.#links.get(name);
    if (record) this.update(name, record.type, { cap });
  }

  /**
   * Forgets what is none of `kept`, what was not seen for a month (`evident` is seen now), and the oldest of too many.
   * `wall_ms` is null while the clock is not set.
   */
  prune(kept: ReadonlySet<string>, evident: ReadonlySet<string>, wall_ms: number | null): void {
    const age_ms = ({ seen_ms }: LinkRecord): number => (wall_ms ?? 0) - (seen_ms ?? wall_ms ?? 0);
    const byAge = [...this.#links].sort(([, a], [, b]) => age_ms(a) - age_ms(b));
    byAge.forEach(([name, record], at) => {
      const isOld = !evident.has(name) && wall_ms !== null && age_ms(record) > forget_after_ms;
      if (kept.has(name) && !isOld && at < wans_max) {
        // Its month begins when the clock is set.
        if (record.seen_ms === null && wall_ms !== null) this.update(name, record.type, { seen_ms: wall_ms });
        return;
      }
      this.#links.delete(name);
      this.#isChanged = true;
    });
  }

  /** Writes when something changed and the last writing is long enough ago; the caller does not wait. */
  saveSometimes(mono_ms: number): void {
    if (!this.#isChanged || mono_ms - this.#saved_mono_ms < save_every_ms) return;
    this.#saved_mono_ms = mono_ms;
    void this.save();
  }

  /** Resolves once all of it is on disk, or was refused, which is logged. */
  async save(): Promise<void> {
    if (!this.#isChanged) return this.#file.idle();
    this.#isChanged = false;
    const text = JSON.stringify({ version: 1, links: Object.fromEntries(this.#links) });
    if (!(await this.#file.write(text))) this.#isChanged = true;
    return undefined;
  }
}

function load(file: string, log: DriverLog): Readonly<Record<string, LinkRecord>> {
  let text: string;
  try {
    text = readTextUpToSync(file, table_bytes_max);
  } catch {
    return {};
  }
  try {
    return memoryFile.parse(JSON.parse(text)).links;
  } catch (error) {
    const kept = `${file}.broken`;
    log.warn({ file, kept, reason: messageOf(error) }, texts.usage_unreadable);
    try {
      renameSync(file, kept);
    } catch {
      // Without the right to rename it stays where it is until the next save.
    }
    return {};
  }
}
