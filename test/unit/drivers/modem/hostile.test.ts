/** The modem driver with a ModemManager whose modems vanish while they are read, or that refuses: through a real dbus-daemon. */
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
const objects = 'a{sa{sa{sv}}}';

describe.skipIf(peerMissing('dbus-daemon'))('a ModemManager', () => {
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

  it('that refuses with a long and unclean sentence is a lost device, whose reason is clean and short', async () => {
    const body = [`\u001B[2J\u202Eno\n${'x'.repeat(200_000)}`];
    const errorName = 'org.freedesktop.DBus.Error.Failed';
    const lab = await start(() => ({ type: 3, errorName, signature: 's', body }));
    const reason = await down(lab);
    expect(reason).not.toMatch(/[\p{Cc}\u202E]/u);
    expect(reason.length).toBeLessThan(500);
  });
});
