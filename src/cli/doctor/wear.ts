/** Checks the wear of the flash under a directory, as eMMC reports it (JEDEC JESD84-B51, EXT_CSD 267 to 269). */
import { realpath, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { type Finding, fail, ok, warn } from './finding.ts';
import { texts } from './texts.ts';
import { readTextUpTo, small_bytes_max } from '../../platform/bounded-file.ts';

/** A step is a tenth of the rated life; step 11 means that it is exceeded. */
const over_step = 11;
const late_step = 9;
/** Spare blocks: 2: most are used, 3: almost all are used. */
const [eol_warning, eol_urgent] = [2, 3];

/** Empty if the disk does not report wear. `sys`: mount point of sysfs. */
export async function checkWear(dir: string, sys = '/sys'): Promise<readonly Finding[]> {
  const device = await deviceOf(dir, sys);
  if (device === undefined) return [];
  const [life, eol] = await Promise.all([
    numbersIn(join(device, 'life_time')),
    numbersIn(join(device, 'pre_eol_info')),
  ]);
  // One value for each of the two memory types of the chip; 0: not reported.
  const step = Math.max(0, ...life);
  const spare = Math.max(0, ...eol);
  if (step === 0 && spare === 0) return [];
  const what = 'disk wear';
  const finding =
    step >= over_step
      ? texts.flash_worn_out(dir)
      : texts.flash_used(dir, step * 10, spare >= eol_warning ? '; few spare blocks are left' : '');
  if (step >= over_step || spare >= eol_urgent) return [fail(what, finding, texts.replace_flash)];
  return step >= late_step || spare >= eol_warning
    ? [warn(what, finding, texts.plan_flash_replacement)]
    : [ok(what, finding)];
}

/** The sysfs directory of the device, for a partition and for a whole disk. */
async function deviceOf(dir: string, sys: string): Promise<string | undefined> {
  const { dev } = await stat(dir, { bigint: true });
  const block = await realpath(join(sys, 'dev/block', `${majorOf(dev)}:${minorOf(dev)}`)).catch(
    () => undefined,
  );
  if (block === undefined) return undefined;
  for (const device of [join(block, 'device'), join(block, '../device')]) {
    if ((await numbersIn(join(device, 'life_time'))).length > 0) return device;
  }
  return undefined;
}

/** As makedev(3) of Linux packs them. */
function majorOf(dev: bigint): bigint {
  return ((dev >> 8n) & 0xfffn) | ((dev >> 32n) & 0xfffff000n);
}

function minorOf(dev: bigint): bigint {
  return (dev & 0xffn) | ((dev >> 12n) & 0xffffff00n);
}

/** `0x01 0x03` */
async function numbersIn(file: string): Promise<readonly number[]> {
  const text = await readTextUpTo(file, small_bytes_max).catch(() => '');
  return (text.match(/0x[0-9a-f]{1,2}\b/giu) ?? []).map(Number);
}
