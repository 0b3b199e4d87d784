/** Writes a small file as a whole: whenever the power fails, the old one is there or the new one. */
import { randomUUID } from 'node:crypto';
import { mkdir, open, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';

/** Readable by the daemon alone. Resolves when the text is on the disk; rejects, and leaves nothing behind, when it cannot be. */
export async function replaceFile(file: string, text: string): Promise<void> {
  const fresh = `${file}.${randomUUID()}`;
  try {
    // The folder may have been deleted since the start.
    await mkdir(dirname(file), { recursive: true, mode: 0o700 });
    await using handle = await open(fresh, 'wx', 0o600);
    await handle.writeFile(text);
    await handle.sync();
    await rename(fresh, file);
  } catch (error) {
    await rm(fresh, { force: true });
    throw error;
  }
}
