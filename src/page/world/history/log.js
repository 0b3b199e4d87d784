/** What this page saw happen: conditions that came and went, links, detections. Kept in memory while the page is open. */

/** @typedef {{ readonly key: string, readonly title: string, readonly level: 'bad' | 'warn' }} Condition */

/**
 * @typedef {object} Entry
 * @property {string} key of the condition, or of the thing that was seen
 * @property {'alarm' | 'change' | 'seen'} kind
 * @property {'bad' | 'warn' | 'info'} level
 * @property {string} title
 * @property {number} since_ms
 * @property {number | null} until_ms null: it lasts
 * @property {string} href
 */

const entries_max = 300;

export class Log {
  /** @type {Entry[]} newest first */
  entries = [];
  /** @type {Map<string, Entry>} */
  #open = new Map();
  #isFirst = true;

  /**
   * Opens an entry for each new condition and closes ended ones. What lasted already when the page was opened has no
   * known beginning and is entered as a change only when it ends.
   * @param {readonly (Condition & { readonly href: string })[]} conditions
   * @param {number} time_ms
   */
  follow(conditions, time_ms) {
    const now = new Set(conditions.map(({ key }) => key));
    for (const { key, title, level, href } of conditions) {
      if (this.#open.has(key)) continue;
      /** @type {Entry} */
      const entry = { key, kind: 'alarm', level, title, since_ms: time_ms, until_ms: null, href };
      this.#open.set(key, entry);
      if (!this.#isFirst) this.add(entry);
    }
    for (const [key, entry] of this.#open) {
      if (now.has(key)) continue;
      this.#open.delete(key);
      const ended = { ...entry, until_ms: time_ms };
      const at = this.entries.indexOf(entry);
      if (at >= 0) this.entries[at] = ended;
    }
    this.#isFirst = false;
  }

  /** @param {Entry} entry */
  add(entry) {
    this.entries.unshift(entry);
    this.entries.length = Math.min(this.entries.length, entries_max);
  }
}
