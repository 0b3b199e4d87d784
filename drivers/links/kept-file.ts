/** A file that is replaced as a whole. Logs each change of the disk's state once. */
import { messageOf } from '../../src/platform/errors.ts';
import { replaceFile } from '../../src/platform/replace-file.ts';
import type { DriverLog } from '../../src/toolkit/driver/driver.ts';

interface Sentences {
  readonly not_saved: string;
  readonly saved: string;
}

export class KeptFile {
  readonly #file: string;
  readonly #log: DriverLog;
  readonly #sentences: Sentences;
  #writing: Promise<boolean> = Promise.resolve(true);
  #isFailing = false;

  constructor(file: string, log: DriverLog, sentences: Sentences) {
    this.#file = file;
    this.#log = log;
    this.#sentences = sentences;
  }

  /** Resolves with whether the text is on the disk. */
  async write(text: string): Promise<boolean> {
    this.#writing = this.#writing.then(async () => this.#replace(text));
    return this.#writing;
  }

  /** Resolves when nothing is being written. */
  async idle(): Promise<void> {
    await this.#writing;
  }

  async #replace(text: string): Promise<boolean> {
    const file = this.#file;
    try {
      await replaceFile(file, text);
      if (this.#isFailing) this.#log.info({ file }, this.#sentences.saved);
      this.#isFailing = false;
    } catch (error) {
      if (!this.#isFailing) this.#log.warn({ file, reason: messageOf(error) }, this.#sentences.not_saved);
      this.#isFailing = true;
    }
    return !this.#isFailing;
  }
}
