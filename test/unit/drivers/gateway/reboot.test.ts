/** The command that restarts the gateway, with systemd-logind on a real message bus. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { gateway } from '../../../../drivers/gateway/gateway.ts';
import { texts } from '../../../../drivers/gateway/texts.ts';
import { notSent } from '../../../../src/platform/errors.ts';
import { type FakeLogind, startFakeLogind } from '../../../fakes/services/fake-logind.ts';
import { makeMessageBus, type MessageBusDaemon } from '../../../support/drivers/message-bus.ts';
import { startCommand } from '../../../support/drivers/started-command.ts';
import { eventually } from '../../../support/eventually.ts';
import { fakeMachine, type FakeMachine } from '../../../support/gateway/fake-machine.ts';
import { hubLab } from '../../../support/kit/hub-lab.ts';
import { peerMissing } from '../../../support/peers.ts';
import { makeDirectory } from '../../../support/temporary.ts';

const closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

let machine: FakeMachine;
let bus: MessageBusDaemon;
let logind: FakeLogind;
let state_dir: string;

const boot = async (id: string) => machine.write('proc/sys/kernel/random/boot_id', `${id}\n`);

/** The kit as it runs now; a second one is its next run. */
async function startKit(options: object = {}, dir = state_dir) {
  const lab = hubLab({ state_dir: dir });
  closing.push(lab.stop);
  const { roots } = machine;
  void lab.run(gateway, 'gateway', {
    options: { roots, bus: bus.address, commands: ['reboot'], ...options },
  });
  await eventually('the gateway is announced', () => lab.hub.assets().length === 1);
  const found = lab.hub.findCommand(lab.hub.assets()[0]?.id ?? '', 'reboot');
  return { ...lab, reboot: 'command' in found ? found.command : undefined };
}

/** A run of the kit orders the restart and ends before it has a result, as it does when the machine goes down. */
async function orderRestart(): Promise<void> {
  const kit = await startKit();
  const task = startCommand(kit.reboot);
  await eventually('the restart is ordered', () => task.notes.includes(texts.restarting));
  task.stop();
  await expect(task.done).rejects.toThrow(texts.restart_ordered);
  await kit.stop();
}

describe.skipIf(peerMissing('dbus-daemon'))('reboot of the gateway', () => {
  beforeEach(async () => {
    machine = await fakeMachine();
    closing.push(async () => machine.remove());
    state_dir = await makeDirectory();
    await boot('boot-1');
    bus = await makeMessageBus();
    closing.push(async () => bus.stop());
    await bus.start();
    logind = await startFakeLogind(bus.address, () => void bus.kill());
    closing.push(async () => logind.stop());
  });

  it('is not offered unless the configuration allows it', async () => {
    const { reboot } = await startKit({ commands: [] });
    expect(reboot).toBeUndefined();
  });

  it('is of high risk, needs approval, and is concluded by the run after the restart', async () => {
    const before = await startKit();
    expect(before.reboot).toMatchObject({ risk_level: 'high', requires_approval: true });
    await before.stop();
    await orderRestart();
    expect(logind.orders).toEqual([false]);
    await boot('boot-2');
    await machine.write('proc/uptime', '21.50 40.00\n');
    const after = await startKit();
    await expect(startCommand(after.reboot, { repeated: true }).done).resolves.toEqual({ uptime_s: 21 });
    expect(logind.orders).toHaveLength(1);
  });

  it('counts an answer that is lost with the bus as accepted, and is never ordered twice', async () => {
    logind.reboot = 'vanishes';
    await orderRestart();
    await boot('boot-2');
    const after = await startKit();
    await expect(startCommand(after.reboot, { repeated: true }).done).resolves.toHaveProperty('uptime_s');
    await expect(startCommand(after.reboot, { repeated: true }).done).rejects.toThrow(texts.order_unknown);
    expect(logind.orders).toHaveLength(1);
  });

  it('fails when only the connector was restarted', async () => {
    await orderRestart();
    const after = await startKit();
    await expect(startCommand(after.reboot, { repeated: true }).done).rejects.toThrow(texts.not_restarted);
    expect(logind.orders).toHaveLength(1);
  });

  it('a new task after a restart orders another one', async () => {
    await orderRestart();
    await boot('boot-2');
    const after = await startKit();
    const second = startCommand(after.reboot);
    await eventually('the next restart is ordered', () => logind.orders.length === 2);
    second.stop();
  });

  it.each(['no', 'challenge', 'na'] as const)(
    'is refused with the remedy when logind answers %s',
    async (can) => {
      logind.can = can;
      const { reboot } = await startKit();
      await expect(startCommand(reboot).done).rejects.toThrow(notSent(texts.reboot_not_allowed(can)));
      expect(logind.orders).toEqual([]);
    },
  );

  it('is refused with the words of logind, and a later run finds no order', async () => {
    logind.reboot = 'refuses';
    const { reboot } = await startKit();
    await expect(startCommand(reboot).done).rejects.toThrow(
      notSent(texts.logind_failed('Already in progress')),
    );
    await expect(startCommand(reboot, { repeated: true }).done).rejects.toThrow(texts.order_unknown);
  });

  it('is refused where the order cannot be recorded, and logind is not asked', async () => {
    const file = join(state_dir, 'file');
    await writeFile(file, '');
    const { reboot } = await startKit({}, file);
    await expect(startCommand(reboot).done).rejects.toThrow(
      /^cannot record the restart \(.+; command not sent$/u,
    );
    expect(logind.orders).toEqual([]);
  });

  it('is refused where there is no bus or no boot id', async () => {
    const lost = await startKit({ bus: `unix:path=${join(state_dir, 'none')}` });
    await expect(startCommand(lost.reboot).done).rejects.toThrow(
      /^D-Bus at unix:path=.+none: .+; command not sent$/u,
    );
    await lost.stop();
    const strange = await fakeMachine();
    closing.push(async () => strange.remove());
    const unknown = await startKit({ roots: strange.roots });
    await expect(startCommand(unknown.reboot).done).rejects.toThrow(/boot_id .*; command not sent/u);
    expect(logind.orders).toEqual([]);
  });
});
