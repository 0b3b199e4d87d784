/** Keeps the last result over restarts, in one small file. */
import { type Speedtest, speedtest } from '../../src/contract/kit.ts';
import { readStateText } from '../../src/device/state-file.ts';
import { replaceFile } from '../../src/platform/replace-file.ts';

/** The last result, or undefined when there is none. Throws when the file holds anything else. */
export async function readLast(file: string): Promise<Speedtest | undefined> {
  const text = await readStateText(file);
  return text === undefined ? undefined : speedtest.parse(JSON.parse(text));
}

/** Replaces the file as a whole, so that a power cut leaves the old one or the new one. */
export async function writeLast(file: string, result: Speedtest): Promise<void> {
  await replaceFile(file, `${JSON.stringify(result)}\n`);
}
