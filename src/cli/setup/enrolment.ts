/** The file of `kit-connector service enrol`, which `setup --from` takes in place of questions about the broker. */
import { dirname, join } from 'node:path';
import { z } from 'zod';
import { readTypedUpTo, table_bytes_max } from '../../platform/bounded-file.ts';
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

/** The flags that say the same; others stay. Its secrets are put beside the configuration. Rejects when it is no such file. */
export async function flagsOf(from: string, config: string): Promise<Partial<SetupFlags>> {
  const { kit_id, kit_name, broker, username = kit_id, ...secrets } = await readEnrolment(from);
  const place = async (name: keyof typeof secrets): Promise<string | undefined> => {
    const secret = secrets[name];
    if (secret === undefined) return undefined;
    const file = join(dirname(config), `mqtt-${name}`);
    await writeSecret(file, secret.trimEnd()).catch(unwritable(file));
    return file;
  };
  return {
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
}

async function readEnrolment(file: string): Promise<z.output<typeof enrolmentFile>> {
  const text = await readTypedUpTo(file, table_bytes_max);
  try {
    return enrolmentFile.parse(JSON.parse(text));
  } catch (error) {
    throw new Error(texts.no_enrolment(file), { cause: error });
  }
}
