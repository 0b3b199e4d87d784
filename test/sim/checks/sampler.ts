/** Looks at the running kit and service once a second: what must hold at any moment. */
import {
  memory_rows_burst_max,
  memory_rows_max,
  unchecked_rows_max,
} from '../../../src/kit/outbox/live/memory-limit.ts';
import type { Outbox } from '../../../src/kit/outbox/live/outbox.ts';
import { rowId } from '../../../src/kit/outbox/row.ts';
import { newestRowsOf } from '../world/service-tables.ts';
import type { Scene } from '../scene.ts';

/** Rows on disk that wait in memory to be sent: the live queue and a window. */
const queued_rows_max = 4_096 + 512;
/** A commit that is unanswered for longer means that the disk fails, and the kit must say so. */
const hang_told_after_ms = 15_000;
const log_lines_first = 300;
const log_lines_a_minute = 150;

export class Sampler {
  readonly #scene: Scene;
  /** Position of every newest value at the service when it was last looked at. */
  readonly #positions = new Map<string, number>();
  #hangs_since_ms: number | undefined;

  constructor(scene: Scene) {
    this.#scene = scene;
  }

  look(): void {
    const { kit, service } = this.#scene;
    const outbox = kit.run?.outbox;
    if (outbox && kit.isUp) this.#lookAtKit(outbox);
    if (service.run?.running && !service.run.stopping) this.#lookAtService();
    this.#lookAtLog();
  }

  #lookAtKit(outbox: Outbox): void {
    const { violation } = this.#complain();
    const { kit } = this.#scene;
    const { balanced, quarantined } = outbox.ledger();
    if (!balanced) violation(`the books do not balance: ${JSON.stringify(outbox.ledger())}`);
    if (quarantined > 0 && !this.#scene.refused)
      violation(`${quarantined} messages are in quarantine, and nobody refused any`);
    const in_memory = [...outbox.depth().values()].reduce((sum, { memory_rows }) => sum + memory_rows, 0);
    const unwritten_max = outbox.health().state === 'failing' ? memory_rows_max : memory_rows_burst_max;
    const in_memory_max = unwritten_max + unchecked_rows_max + queued_rows_max;
    if (in_memory > in_memory_max) violation(`more than ${in_memory_max} rows are in memory`);
    if (outbox.dispatch.delivery.cloud_acks)
      kit.acks_from_ms = Math.min(kit.acks_from_ms, this.#scene.world.now_ms);
    this.#lookAtHealth(outbox);
  }

  #lookAtHealth(outbox: Outbox): void {
    const { kit, world } = this.#scene;
    if (kit.port.hangs_until_ms > world.now_ms) this.#hangs_since_ms ??= world.now_ms;
    else this.#hangs_since_ms = undefined;
    const since_ms = Math.max(this.#hangs_since_ms ?? Infinity, 0);
    const is_told = outbox.health().state !== 'ok';
    const has_work = [...outbox.depth().values()].some(({ memory_rows }) => memory_rows > 500);
    if (world.now_ms - since_ms > hang_told_after_ms && has_work && !is_told)
      this.#complain().violation('the disk hangs, and the kit says that it is well');
  }

  /** Values at the service never go back in the kit's order. */
  #lookAtService(): void {
    const { disk, file } = this.#scene.service;
    const db = disk.connectionTo(file);
    // It is closed by a service that stops.
    if (!db) return this.#complain().violation('the service runs without its database');
    for (const { key, epoch, seq } of newestRowsOf(db)) {
      const position = rowId({ epoch, seq });
      const before = this.#positions.get(key) ?? -1;
      if (position < before)
        this.#complain().violation(`at the service the value of ${key.split(' ')[0]} went back`);
      this.#positions.set(key, position);
    }
  }

  #lookAtLog(): void {
    const { log_lines, world, kit } = this.#scene;
    const allowed = log_lines_first * Math.max(1, kit.starts) + (log_lines_a_minute * world.now_ms) / 60_000;
    if (log_lines > allowed)
      this.#complain().violation(`the log has more than ${log_lines_a_minute} lines a minute`);
  }

  #complain() {
    return { violation: (what: string) => this.#scene.violation(what) };
  }
}
