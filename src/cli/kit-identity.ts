/** Creates the kit id at the first start, and records the machine on which it was created. */
import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { open, rename, rm, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import {
  identityFiles,
  type MachineFacts,
  machineFacts,
  machineText,
  readKitId,
} from '../kit/config/identity.ts';
import { ConfigInvalid } from '../platform/errors.ts';
import { makeDirectory } from './daemon/daemon.ts';
import { texts } from './texts.ts';
import { unwritable } from './setup/files.ts';

/** Readable by the group of the service, whose members may run `check` and `doctor`. */
const mode = 0o640;

export interface Wanted {
  /** For the sentence. */
  readonly file: string;
  readonly state_dir: string;
  /** The configuration names one. */
  readonly hasOwnId: boolean;
}

/**
 * Creates the id if neither the configuration nor an earlier start did. Throws `ConfigInvalid` on a machine that was never
 * booted: an id in an image would be shared by every kit flashed with it. The record of the machine is written once; a
 * failure to write it is ignored.
 */
export async function settleIdentity(
  { file, state_dir, hasOwnId }: Wanted,
  facts?: MachineFacts,
): Promise<void> {
  const known = facts ?? (await machineFacts());
  const files = identityFiles(state_dir);
  if (!hasOwnId && (await readKitId(state_dir)) === undefined) {
    if (!known.isBooted) throw new ConfigInvalid([`${file} kit_id: ${texts.no_machine_id}`]);
    await makeDirectory('state_dir', state_dir);
    await writeDurably(files.id, `${randomUUID()}\n`).catch(unwritable(files.id));
  }
  const text = machineText(known);
  if (text === '' || existsSync(files.machine) || !existsSync(state_dir)) return;
  await writeDurably(files.machine, text).catch(() => undefined);
}

/** Syncs the file and its directory: an id in use must survive a power cut. The owner is that of the directory. */
async function writeDurably(file: string, text: string): Promise<void> {
  const fresh = `${file}.${randomUUID()}`;
  const folder = dirname(file);
  try {
    const { uid, gid } = await stat(folder);
    {
      await using handle = await open(fresh, 'wx', mode);
      await handle.chmod(mode);
      // Only root may change the owner; other users keep the file.
      await handle.chown(uid, gid).catch(() => undefined);
      await handle.writeFile(text);
      await handle.sync();
    }
    await rename(fresh, file);
    await using names = await open(folder, 'r');
    await names.sync();
  } finally {
    await rm(fresh, { force: true });
  }
}
