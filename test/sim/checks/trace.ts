/** What happened, in order, for a person who looks for the cause; its hash shows whether two runs were the same. */
import { createHash } from 'node:crypto';

/** Lines that are kept: the end of a long story tells most. */
const lines_max = 20_000;

export class Trace {
  readonly lines: string[] = [];
  dropped = 0;
  readonly #hash = createHash('sha256');

  add(now_ms: number, who: string, text: string, facts: object = {}): void {
    const line = `${(now_ms / 1_000).toFixed(3).padStart(10)}  ${who.padEnd(10)} ${text}${said(facts)}`;
    this.#hash.update(line);
    this.lines.push(line);
    if (this.lines.length > lines_max) {
      this.lines.splice(0, lines_max / 10);
      this.dropped += lines_max / 10;
    }
  }

  /** Of all lines so far, also of those that are not kept. */
  get hash(): string {
    return this.#hash.copy().digest('hex').slice(0, 16);
  }

  /** As a text; long pauses are marked. */
  text(last = this.lines.length): string {
    const head = this.dropped > 0 ? [`(${this.dropped} earlier lines are not kept)`] : [];
    return [...head, ...this.lines.slice(-last)].join('\n');
  }
}

function said(facts: object): string {
  return Object.entries(facts)
    .filter(([, value]) => value !== undefined)
    .map(([key, value]) => `  ${key}=${typeof value === 'string' ? value : JSON.stringify(value)}`)
    .join('');
}
