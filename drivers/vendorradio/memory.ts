/** What is remembered of one radio over restarts: its certificate and its MAC address. And its secrets, read from their files. */
import { createHash } from 'node:crypto';
import { readFile, stat } from 'node:fs/promises';
import { z } from 'zod';
import type { DriverLog } from '../../src/driver/driver.ts';
import { DeviceRejected, messageOf } from '../../src/errors.ts';
import { replaceFile } from '../../src/platform/replace-file.ts';

const radioMemory = z.object({
  /** SHA-256 of the certificate of the first contact. */
  fingerprint: z.string().optional(),
  /** Of the radio that answered last, so that its peers know it before it has answered again. */
  mac: z.string().optional(),
});
type Facts = z.output<typeof radioMemory>;

export class Memory {
  readonly #path: string;
  readonly #log: DriverLog;
  #facts: Facts;
  #isFailing = false;

  private constructor(path: string, facts: Facts, log: DriverLog) {
    this.#path = path;
    this.#facts = facts;
    this.#log = log;
  }

  static async open(path: string, log: DriverLog): Promise<Memory> {
    const text = await readFile(path, 'utf8').catch(() => '{}');
    return new Memory(path, parsed(text), log);
  }

  get facts(): Facts {
    return this.#facts;
  }

  /** Resolves also when the disk does not take it: then it is remembered until the next start only. */
  async change(change: Facts): Promise<void> {
    this.#facts = { ...this.#facts, ...change };
    try {
      await replaceFile(this.#path, JSON.stringify(this.#facts));
      this.#isFailing = false;
    } catch (error) {
      const reason = messageOf(error);
      if (!this.#isFailing) {
        this.#log.warn(
          { reason },
          'what is known of the radio cannot be kept on disk; it is lost at the next start',
        );
      }
      this.#isFailing = true;
    }
  }
}

function parsed(text: string): Facts {
  try {
    return radioMemory.safeParse(JSON.parse(text)).data ?? {};
  } catch {
    return {};
  }
}

/** A name for the state file of what cannot stand in a file name as it is. */
export function fileNameOf(address: string): string {
  return `radio-${createHash('sha256').update(address.toLowerCase()).digest('hex').slice(0, 24)}.json`;
}

interface Pinning {
  /** From the configuration. */
  readonly pinned: string | undefined;
  readonly memory: Memory;
  readonly address: string;
  readonly log: DriverLog;
}

/** Trusts the certificate of the configuration, else that of the first contact, and no other one afterwards. */
export function certificateCheck({ pinned, memory, address, log }: Pinning) {
  return async (fingerprint: string): Promise<void> => {
    const expected = pinned ?? memory.facts.fingerprint;
    if (expected === undefined) {
      await memory.change({ fingerprint });
      log.info({ fingerprint }, 'the certificate of the first contact is the only one accepted from now on');
      return;
    }
    if (bare(expected) === bare(fingerprint)) return;
    throw new DeviceRejected(
      `shows another certificate than before (now ${fingerprint}); the password was not sent. If the radio at ${address} was replaced, reset or updated, set certificate_sha256 to this fingerprint`,
    );
  };
}

function bare(fingerprint: string): string {
  return fingerprint.replaceAll(':', '').toLowerCase();
}

/** Bits that let everybody on the machine read or write. */
const world_bits = 0o006;

/** The text of a secret's file. Throws DeviceRejected with the remedy: only a change of the configuration or of the file helps. */
export async function readSecret(key: string, file: string): Promise<string> {
  const { mode, text } = await readWhole(key, file);
  if ((mode & world_bits) !== 0) {
    throw new DeviceRejected(`everybody on this machine has access to ${file}; run "chmod o= ${file}"`);
  }
  const secret = text.replace(/\r?\n$/u, '');
  if (secret === '') throw new DeviceRejected(`${file} is empty; write into it what ${key} should hold`);
  return secret;
}

async function readWhole(key: string, file: string) {
  try {
    return { mode: (await stat(file)).mode, text: await readFile(file, 'utf8') };
  } catch (error) {
    throw new DeviceRejected(`${key} ${file} cannot be read (${messageOf(error)})`, { cause: error });
  }
}
