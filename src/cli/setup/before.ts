/** What an existing configuration says, which setup proposes again: its values are the defaults of the questions. */
import { existsSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { z } from 'zod';
import { no_broker } from '../../config/broker.ts';
import { parseSource } from '../../config/source.ts';
import { type SecretFiles, storedFile } from './files.ts';
import type { SetupAnswers } from './answers.ts';
import { hasCode } from '../../errors.ts';
import { file_bytes_max } from '../../config/bounds.ts';
import { readTextUpTo } from '../../platform/bounded-file.ts';

const text = z.string().optional().catch(undefined);
/** What is wrong in it is asked for as if it were missing. */
const readable = z.object({
  kit_id: z.uuid().optional().catch(undefined),
  kit_name: text,
  state_dir: text,
  runtime_dir: text,
  broker: z
    .object({
      url: z.string(),
      username: text,
      password_file: text,
      ca_file: text,
      cert_file: text,
      key_file: text,
    })
    .optional()
    .catch(undefined),
});

export interface Before {
  /** It names a broker or cannot be parsed: a user wrote it. */
  readonly isOwn: boolean;
  /** With the id, so that the kit keeps its identity. */
  readonly offered: Partial<Omit<SetupAnswers, 'kit_id'>> & { readonly kit_id?: string | undefined };
}

/** Undefined when the file does not exist. `isService`: secrets that it leaves out are in the store of systemd. */
export async function readBefore(file: string, isService: boolean): Promise<Before | undefined> {
  const source = await readTextUpTo(file, file_bytes_max).catch((error: unknown) => {
    if (hasCode(error, 'ENOENT')) return undefined;
    throw error;
  });
  if (source === undefined) return undefined;
  try {
    const { broker, ...kit } = readable.parse(parseSource(file, source).value);
    const { url, username, ...named } = broker ?? { url: no_broker };
    const files = filesOf(named, dirname(file), isService);
    return { isOwn: broker?.url !== no_broker, offered: { ...kit, broker_url: url, username, ...files } };
  } catch {
    return { isOwn: true, offered: {} };
  }
}

/** The configuration takes paths relative to its own directory. */
function filesOf(named: Partial<SecretFiles>, dir: string, isService: boolean): SecretFiles {
  const fileOf = (key: keyof SecretFiles): string | undefined => {
    const path = named[key];
    if (path !== undefined) return resolve(dir, path);
    const stored = storedFile(key);
    return isService && existsSync(stored) ? stored : undefined;
  };
  return {
    password_file: fileOf('password_file'),
    ca_file: fileOf('ca_file'),
    cert_file: fileOf('cert_file'),
    key_file: fileOf('key_file'),
  };
}
