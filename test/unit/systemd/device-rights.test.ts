/** What the unit and the polkit rule let the daemon do with devices: what its drivers need, and no more. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';

const folder = join(import.meta.dirname, '../../../systemd');
const read = (file: string): string => readFileSync(join(folder, file), 'utf8');

describe('The unit', () => {
  it('opens serial ports of USB, of the board, of i.MX and of Tegra, and no other device', () => {
    const allowed = [...read('kit-connector.service').matchAll(/^DeviceAllow=(.*)$/gmu)].map(
      ([, each]) => each,
    );
    // Documentation/admin-guide/devices.txt of Linux: ttyACM, ttyUSB, ttyS, ttyAMA, ttymxc; ttyTHS has a dynamic number.
    const numbers = ['166', '188', '4', '204', '207', 'ttyTHS'];
    expect(allowed).toEqual(numbers.map((number) => `char-${number} rw`));
    expect(read('kit-connector.service')).toMatch(/^DevicePolicy=closed$/mu);
  });
});

describe('The polkit rule', () => {
  it('grants the position of modems to the user of the service, and nothing else', () => {
    const rule = read('kit-connector.polkit.rules');
    const actions = [...rule.matchAll(/action\.id === '([^']+)'/gu)].map(([, id]) => id);
    expect(actions).toEqual(['org.freedesktop.ModemManager1.Location']);
    expect(rule).toContain("subject.user === 'kit-connector'");
    expect([...rule.matchAll(/action\.id/gu)]).toHaveLength(1);
  });
});
