/** Checks the map file that the configuration of the service names. A faulty one is a warning: the kit works without it. */
import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import { systemReason } from '../../errors.ts';
import { texts } from '../texts.ts';

/** PMTiles version 3. */
const beginning = Buffer.from('PMTiles\u0003', 'latin1');

/** Returns a sentence with the fault and the remedy; undefined: the file can be used. */
export async function mapFault(file: string): Promise<string | undefined> {
  try {
    await using handle = await open(file, constants.O_RDONLY | constants.O_NONBLOCK);
    if (!(await handle.stat()).isFile()) return unusable(file, 'is not a file');
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(beginning.length), 0, beginning.length, 0);
    const isArchive = bytesRead === beginning.length && buffer.equals(beginning);
    return isArchive ? undefined : unusable(file, texts.no_archive);
  } catch (error) {
    return unusable(file, texts.cannot_be_read(systemReason(error)));
  }
}

function unusable(file: string, reason: string): string {
  return texts.map_unusable(file, reason);
}
