/** The modem driver with a ModemManager that lies: through a real dbus-daemon, which passes on any value of a valid type. */
import type { Message } from 'dbus-native';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { type BusService, ownName } from '../../../support/drivers/bus-service.ts';
import { eventually } from '../../../support/eventually.ts';
import { makeMessageBus, type MessageBusDaemon } from '../../../support/drivers/message-bus.ts';
import { peerMissing } from '../../../support/peers.ts';
import { modemLab } from './modem-lab.ts';

const mm = 'org.freedesktop.ModemManager1';
const root = '/org/freedesktop/ModemManager1';

type Variant = readonly [signature: string, value: unknown];
type Properties = readonly (readonly [name: string, value: Variant])[];

/** One entry of the list of modems. */
function listed(path: string, properties: Properties) {
  return [path, [[`${mm}.Modem`, properties]]] as const;
}

const connected: Properties = [
  ['State', ['i', 11]],
  ['Model', ['s', 'RM520N-GL']],
  ['Ports', ['a(su)', [['wwan0', 2]]]],
];
const good = listed(`${root}/Modem/7`, connected);
const objects = 'a{sa{sa{sv}}}';

describe.skipIf(peerMissing('dbus-daemon'))('a hostile ModemManager', () => {
  let bus: MessageBusDaemon;
  const closing: (() => Promise<void>)[] = [];
  beforeAll(async () => {
    bus = await makeMessageBus();
    await bus.start();
  });
  afterAll(async () => bus.stop());
  afterEach(async () => {
    for (const close of closing.splice(0).reverse()) await close();
  });

  /** Answers each call with what `reply` makes of it; undefined: no answer. */
  async function start(reply: (call: Message) => object | undefined) {
    const service: BusService = await ownName(bus.address, mm, (call) => {
      const answer = reply(call);
      const about = { type: 2, destination: call.sender ?? '', replySerial: call.serial ?? 0 };
      if (answer) service.send({ ...about, ...answer });
    });
    closing.push(async () => service.stop());
    const lab = modemLab(bus.address, { timeout_s: 1 });
    closing.push(lab.stop);
    return lab;
  }

  const list = (...modems: readonly unknown[]) => ({ signature: objects, body: [modems] });
  const down = async (lab: Awaited<ReturnType<typeof start>>): Promise<string> => {
    await eventually('down', () => lab.view()?.state === 'down');
    return lab.view()?.reason ?? '';
  };

  it('may list objects whose names are no paths: they are left out, the others are used', async () => {
    const names = [
      'Modem/1',
      `${root}/Modem/a b`,
      `${root}/Modem/${'1'.repeat(100_000)}_`,
      `${root}/Modem/-1`,
      '__proto__',
      '',
    ];
    const lab = await start(() => list(...names.map((name) => listed(name, connected)), good));
    await lab.reason(null);
    expect(lab.fact('modems')).toBe(1);
  });

  it('may name parts whose paths are none: they are not asked for', async () => {
    const asked: string[] = [];
    const lab = await start(({ member, path }) => {
      asked.push(path ?? '');
      const parts: Properties = [
        ['Sim', ['s', `${root}/SIM/0 \u0007`]],
        ['Bearers', ['as', [`${root}/Bearer/..`, `${root}/Bearer/1`]]],
      ];
      return member === 'GetManagedObjects'
        ? list(listed(`${root}/Modem/7`, [...connected, ...parts]))
        : { signature: 'a{sv}', body: [[['Connected', ['b', true]]]] };
    });
    await lab.reason(null);
    expect(asked).toEqual([root, `${root}/Bearer/1`]);
  });

  it('may list thousands of modems: the first eight are used', async () => {
    const many = Array.from({ length: 3_000 }, (_, index) => listed(`${root}/Modem/${index}`, []));
    const lab = await start(() => list(...many));
    await eventually('read', () => lab.fact('modems') === 8);
  });

  it('may lose each part while it is asked for: the modem itself is reported', async () => {
    const parts: Properties = [
      ['Sim', ['o', `${root}/SIM/0`]],
      ['Bearers', ['ao', Array.from({ length: 8 }, (_, index) => `${root}/Bearer/${index}`)]],
    ];
    const lab = await start(({ member }) =>
      member === 'GetManagedObjects'
        ? list(listed(`${root}/Modem/7`, [...connected, ...parts]))
        : { type: 3, errorName: 'org.freedesktop.DBus.Error.UnknownObject', signature: 's', body: ['gone'] },
    );
    await lab.reason(null);
    expect(lab.fact('modems')).toBe(1);
  });

  it('may send bytes without end: they are one value', async () => {
    const bytes: Properties = [['Model', ['ay', Array.from({ length: 50_000 }, () => 0)]]];
    const lab = await start(() => list(listed(`${root}/Modem/3`, bytes), good));
    await lab.reason(null);
    expect(lab.fact('modems')).toBe(2);
  });

  it('that refuses with a long and unclean sentence is a lost device, whose reason is clean and short', async () => {
    const body = [`\u001B[2J\u202Eno\n${'x'.repeat(200_000)}`];
    const errorName = 'org.freedesktop.DBus.Error.Failed';
    const lab = await start(() => ({ type: 3, errorName, signature: 's', body }));
    const reason = await down(lab);
    expect(reason).not.toMatch(/[\p{Cc}\u202E]/u);
    expect(reason.length).toBeLessThan(500);
  });
});
