/** What is remembered of one host over restarts: its certificate, the session, a refused login, and Stops that are owed. */
import { createHash } from 'node:crypto';
import { readFile, stat } from 'node:fs/promises';
import { z } from 'zod';
import type { DriverLog } from '../../src/driver/driver.ts';
import { DeviceRejected, messageOf } from '../../src/errors.ts';
import type { CheckCertificate } from '../../src/platform/pinned-http.ts';
import { type HostOptions, password_chars_max, portOf } from './options.ts';
import { refusedLogin, savedSession } from './session.ts';
import { StateFile } from './state.ts';

const hostMemory = z.object({
  /** SHA-256 of the certificate of the first contact. */
  fingerprint: z.string().optional(),
  session: savedSession.optional(),
  refused: refusedLogin.optional(),
  owed_stops: z.array(z.int()).catch([]),
});
type Facts = z.output<typeof hostMemory>;
type Change = { readonly [K in keyof Facts]?: Facts[K] | undefined };

export class Memory {
  readonly #file: StateFile<typeof hostMemory>;
  readonly #log: DriverLog;
  #facts: Facts;
  #isFailing = false;

  private constructor(file: StateFile<typeof hostMemory>, facts: Facts, log: DriverLog) {
    this.#file = file;
    this.#facts = facts;
    this.#log = log;
  }

  static async open(path: string, log: DriverLog): Promise<Memory> {
    const file = new StateFile(path, hostMemory);
    return new Memory(file, (await file.read()) ?? { owed_stops: [] }, log);
  }

  get facts(): Facts {
    return this.#facts;
  }

  /** Resolves also when the disk does not take it: then it is remembered until the next start only. */
  async change(change: Change): Promise<void> {
    this.#facts = hostMemory.parse({ ...this.#facts, ...change });
    try {
      await this.#file.write(this.#facts);
      this.#isFailing = false;
    } catch (error) {
      if (!this.#isFailing) {
        this.#log.warn(
          { reason: messageOf(error) },
          'what is known of the device cannot be kept on disk; it is lost at the next start',
        );
      }
      this.#isFailing = true;
    }
  }
}

/** A name for the state file of what cannot stand in a file name as it is. */
export function fileNameOf(kind: string, key: string): string {
  return `${kind}-${createHash('sha256').update(key).digest('hex').slice(0, 24)}.json`;
}

/** Trusts the certificate of the first contact and no other one afterwards. */
export function certificateCheck(options: HostOptions, memory: Memory, log: DriverLog): CheckCertificate {
  return async (fingerprint) => {
    const expected = options.certificate_sha256 ?? memory.facts.fingerprint;
    if (expected === undefined) {
      await memory.change({ fingerprint });
      log.info({ fingerprint }, 'the certificate of the first contact is the only one accepted from now on');
      return;
    }
    if (bare(expected) === bare(fingerprint)) return;
    throw new DeviceRejected(
      `shows another certificate than before (now ${fingerprint}); the password was not sent. If the device at ${options.host}:${portOf(options)} was replaced, reset or updated, set certificate_sha256 to this fingerprint`,
    );
  };
}

/** Bits that let everybody on the machine read or write. */
const world_bits = 0o006;

/** Throws DeviceRejected with the remedy: only a change of the configuration or of the file helps. */
export async function readPassword(file: string): Promise<string> {
  const { mode, text } = await readWhole(file);
  if ((mode & world_bits) !== 0) {
    throw new DeviceRejected(`everybody on this machine has access to ${file}; run "chmod o= ${file}"`);
  }
  const password = text.replace(/\r?\n$/u, '');
  if (password === '') throw new DeviceRejected(`${file} is empty; write the password into it`);
  if (password.length > password_chars_max) {
    throw new DeviceRejected(
      `the password in ${file} has more than ${password_chars_max} characters, which no such device takes`,
    );
  }
  return password;
}

async function readWhole(file: string): Promise<{ readonly mode: number; readonly text: string }> {
  try {
    return { mode: (await stat(file)).mode, text: await readFile(file, 'utf8') };
  } catch (error) {
    throw new DeviceRejected(`password_file ${file} cannot be read (${messageOf(error)})`, { cause: error });
  }
}

function bare(fingerprint: string): string {
  return fingerprint.replaceAll(':', '').toLowerCase();
}
