/** The small files of devices: bounded, whole or not there, and no reason to stop when the disk fails. */
import { readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { DeviceMemory } from '../../../../src/toolkit/device/device-memory.ts';
import { readStateText, StateFile } from '../../../../src/toolkit/device/state-file.ts';
import { texts } from '../../../../src/toolkit/device/texts.ts';
import { recordingLog } from '../../../support/recording-log.ts';
import { withDirectory } from '../../../support/temporary.ts';

const schema = z.object({ mac: z.string().optional(), owed: z.array(z.int()).catch([]) });

describe('DeviceMemory', () => {
  it('begins empty and keeps its changes over restarts, in a file of the daemon alone', async () => {
    await withDirectory(async (dir) => {
      const file = join(dir, 'radio.json');
      const memory = await DeviceMemory.open(file, schema, recordingLog());
      expect(memory.facts).toEqual({ owed: [] });
      await memory.change({ mac: '02:00' });
      await memory.change({ owed: [1] });
      expect((await DeviceMemory.open(file, schema, recordingLog())).facts).toEqual({
        mac: '02:00',
        owed: [1],
      });
      expect((await stat(file)).mode & 0o777).toBe(0o600);
      await memory.change({ mac: undefined });
      expect(JSON.parse(await readFile(file, 'utf8'))).toEqual({ owed: [1] });
    });
  });

  it.each([
    ['holds no JSON', '{"mac":'],
    ['holds another shape', '{"mac":7}'],
    ['is larger than anything that is written', JSON.stringify({ mac: 'x'.repeat(300_000) })],
  ])('begins empty when the file %s', async (_what, text) => {
    await withDirectory(async (dir) => {
      const file = join(dir, 'radio.json');
      await writeFile(file, text);
      expect((await DeviceMemory.open(file, schema, recordingLog())).facts).toEqual({ owed: [] });
    });
  });

  it('logs once while the disk fails, and continues from memory', async () => {
    await withDirectory(async (dir) => {
      const folder = join(dir, 'state');
      const log = recordingLog();
      const memory = await DeviceMemory.open(join(folder, 'radio.json'), schema, log);
      await writeFile(folder, 'no folder');
      await memory.change({ mac: 'a' });
      await memory.change({ mac: 'b' });
      expect(memory.facts.mac).toBe('b');
      expect(log.at('warn')).toEqual([texts.state_not_saved]);
      await rm(folder);
      await memory.change({ mac: 'c' });
      expect(await readStateText(join(folder, 'radio.json'))).toBe('{"mac":"c","owed":[]}');
      expect(log.lines).toHaveLength(1);
    });
  });
});

describe('StateFile', () => {
  it('writes one value after the other, and leaves no other files', async () => {
    await withDirectory(async (dir) => {
      const file = new StateFile(join(dir, 'zone.json'), z.array(z.int()));
      await Promise.all([1, 2, 3, 4].map(async (value) => file.write([value])));
      expect(await file.read()).toEqual([4]);
      expect(await readdir(dir)).toEqual(['zone.json']);
      await file.remove();
      expect(await file.read()).toBeUndefined();
    });
  });

  it('continues after a failed write, and where its folder was deleted', async () => {
    await withDirectory(async (dir) => {
      const folder = join(dir, 'state');
      const file = new StateFile(join(folder, 'zone.json'), z.int());
      await writeFile(folder, 'no folder');
      await expect(file.write(1)).rejects.toThrow(/EEXIST|ENOTDIR/u);
      await rm(folder);
      await file.write(2);
      expect(await file.read()).toBe(2);
      await rm(folder, { recursive: true });
      await file.write(3);
      expect(await file.read()).toBe(3);
    });
  });
});
