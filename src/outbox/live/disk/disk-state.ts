/** The health of the disk, as the requests to the store show it; logs every change once. */
import { messageOf, StorageUnavailable } from '../../../errors.ts';
import type { OutboxLog } from '../../api.ts';
import { failing, type DiskHealth, type Done, type Opened, type Salvage } from '../../protocol.ts';
import { texts } from '../../texts.ts';

const salvage_sentences: Readonly<Record<Salvage['kind'], string>> = {
  damaged: texts.file_damaged,
  too_new: texts.file_too_new,
  other_kit: texts.file_other_kit,
  replaced: texts.file_replaced,
};

export class DiskState {
  readonly #log: OutboxLog;
  #health: DiskHealth;
  #salvage: Salvage | undefined;

  constructor(opened: Opened, log: OutboxLog) {
    this.#log = log;
    this.#health = opened.health;
    if (opened.salvage) this.#moved(opened.salvage);
    if (opened.machine_changed) {
      log.warn({ epoch: opened.epoch }, texts.file_copied);
    }
    if (opened.health.state !== 'ok') log.error({ reason: opened.health.detail }, texts.disk_failed);
  }

  get health(): DiskHealth {
    return this.#health;
  }

  /** What happened to the file that was there, at the start or since. */
  get salvage(): Salvage | undefined {
    return this.#salvage;
  }

  /** Messages are sent from memory. */
  get is_failing(): boolean {
    return this.#health.state === 'failing';
  }

  /** A commit was answered. */
  answered({ health, salvage }: Done): void {
    const { state, detail } = health;
    if (state !== this.#health.state) {
      if (state === 'ok') this.#log.info({}, texts.disk_recovered);
      else this.#log.warn({ reason: detail }, texts.disk_full);
    }
    this.#health = health;
    if (salvage) this.#moved(salvage);
  }

  /** A request was refused, or is not answered. */
  refused(error: unknown): void {
    const detail = messageOf(error);
    if (!this.is_failing) this.#log.error({ reason: detail }, texts.disk_failed);
    this.#health = failing(detail, error instanceof StorageUnavailable ? error.fault : undefined);
  }

  #moved(salvage: Salvage): void {
    this.#salvage = salvage;
    this.#log.error({ ...salvage }, salvage_sentences[salvage.kind]);
  }
}
