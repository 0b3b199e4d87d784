/** The file of `kit-connector service enrol`, which `setup --from` takes in place of questions about the broker. */
import { randomUUID } from 'node:crypto';
import { dirname, join } from 'node:path';
import { z } from 'zod';
import { readTypedUpTo, table_bytes_max } from '../../platform/bounded-file.ts';
import { texts as file_texts } from '../../platform/texts.ts';
import { texts } from '../texts.ts';
import type { SetupFlags } from './answers.ts';
import { unwritable, writeSecret } from './files.ts';
import { withoutUnknown } from './text.ts';

export const enrolmentFile = z.strictObject({
  kit_id: z.uuid(),
  kit_name: z.string(),
  /** Address of the broker. */
  broker: z.string(),
  /** Left out: the id of the kit; empty: none is sent. */
  username: z.string().optional(),
  /** PEM texts, as far as they are needed. */
  ca: z.string().optional(),
  cert: z.string().optional(),
  key: z.string().optional(),
  password: z.string().optional(),
});

export interface Enrolled {
  /** That say the same as the file; others stay. */
  readonly flags: Partial<SetupFlags>;
  /** Its secrets, beside the configuration. */
  readonly placed: readonly string[];
}

/** Under names of their own: a kit goes on with its files until the new login is accepted. Rejects when it is no such file. */
export async function flagsOf(from: string, config: string): Promise<Enrolled> {
  const { kit_id, kit_name, broker, username = kit_id, ...secrets } = await readEnrolment(from);
  const [placed, suffix] = [new Array<string>(), randomUUID().slice(0, 8)];
  const place = async (name: keyof typeof secrets): Promise<string | undefined> => {
    const secret = secrets[name];
    if (secret === undefined) return undefined;
    const file = join(dirname(config), `mqtt-${name}-${suffix}`);
    placed.push(file);
    await writeSecret(file, secret.trimEnd()).catch(unwritable(file));
    return file;
  };
  const flags = {
    kitId: kit_id,
    kitName: kit_name,
    broker,
    username,
    ...withoutUnknown({
      ca: await place('ca'),
      cert: await place('cert'),
      key: await place('key'),
      passwordFile: await place('password'),
    }),
  };
  return { flags, placed };
}

async function readEnrolment(file: string): Promise<z.output<typeof enrolmentFile>> {
  const text = await readTypedUpTo(file, table_bytes_max).catch((cause: unknown) => {
    throw new Error(`--from: ${file} ${file_texts.unreadable(cause)}`, { cause });
  });
  try {
    return enrolmentFile.parse(JSON.parse(text));
  } catch (error) {
    throw new Error(texts.no_enrolment(file), { cause: error });
  }
}
