/** The command that resets a modem, against a real dbus-daemon. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { texts } from '../../../../drivers/modem/texts.ts';
import type { Command } from '../../../../src/toolkit/driver/command.ts';
import { type FakeModemManager, startFakeModemManager } from '../../../fakes/services/fake-modem-manager.ts';
import { makeMessageBus, type MessageBusDaemon } from '../../../support/drivers/message-bus.ts';
import { startCommand } from '../../../support/drivers/started-command.ts';
import { eventually } from '../../../support/eventually.ts';
import { peerMissing } from '../../../support/peers.ts';
import { modemLab } from './modem-lab.ts';

const closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

describe.skipIf(peerMissing('dbus-daemon'))('reset_modem', () => {
  let bus: MessageBusDaemon;
  beforeAll(async () => {
    bus = await makeMessageBus();
    await bus.start();
  });
  afterAll(async () => bus.stop());

  async function start(options: object = { commands: ['reset'] }, imei?: string) {
    const manager = await startFakeModemManager(bus.address);
    closing.push(async () => manager.stop());
    manager.add({ index: 0, ...(imei === undefined ? {} : { imei }) });
    const lab = modemLab(bus.address, { timeout_s: 1, ...options });
    closing.push(lab.stop);
    await lab.isp('TestTel');
    await eventually('the gateway is announced', () => lab.hub.assets().length === 1);
    const found = () => {
      const answer = lab.hub.findCommand(lab.hub.assets()[0]?.id ?? '', 'reset_modem');
      return 'command' in answer ? answer.command : undefined;
    };
    return { lab, manager, found };
  }

  /** The modem leaves the bus with the reset, and is listed as another object when the test says so. */
  function losesModem(manager: FakeModemManager, imei?: string) {
    let resets = 0;
    manager.onReset = (index) => {
      resets += 1;
      manager.remove(index);
    };
    return {
      resets: () => resets,
      comeBack: () => manager.add({ index: 1, ...(imei === undefined ? {} : { imei }) }),
    };
  }

  const run = (command: Command | undefined) => startCommand(command, { payload: { interface: 'wwan0' } });

  it('is not offered unless the configuration allows it', async () => {
    const { found } = await start({});
    expect(found()).toBeUndefined();
  });

  it('is of high risk, names the interfaces, and is completed when the modem is listed again', async () => {
    const { found, manager } = await start();
    const command = found();
    expect(command).toMatchObject({ risk_level: 'high', requires_approval: true });
    expect(command?.input_schema).toMatchObject({ properties: { interface: { enum: ['wwan0'] } } });
    expect(() => command?.read({ interface: 'wwan7' })).toThrow(/expected ..wwan0/u);
    const modem = losesModem(manager);
    const task = run(command);
    await eventually('the modem restarts', () => task.notes.includes(texts.resetting));
    await eventually('no modem is offered', () => found() === undefined);
    modem.comeBack();
    await expect(task.done).resolves.toMatchObject({ interface: 'wwan0' });
    expect(modem.resets()).toBe(1);
    await eventually('the modem is offered again', () => found() !== undefined);
  });

  it('does not take another modem for the one that was reset', async () => {
    const { found, manager } = await start();
    const modem = losesModem(manager, '860000000009999');
    const task = run(found());
    await eventually('the modem restarts', () => task.notes.includes(texts.resetting));
    modem.comeBack();
    await eventually('the other modem is listed', () => found() !== undefined);
    task.stop();
    await expect(task.done).rejects.toThrow(texts.modem_not_back);
  });

  it('does not take another modem for a failed one that reports no IMEI', async () => {
    const { found, manager, lab } = await start(undefined, '');
    manager.add({ index: 7, port: 'wwan1', imei: '860000000009999' });
    await eventually('both are listed', () => lab.fact('modems') === 2);
    const modem = losesModem(manager);
    const task = run(found());
    let hasEnded = false;
    void task.done.finally(() => (hasEnded = true));
    await eventually('the modem restarts', () => task.notes.includes(texts.resetting));
    await eventually('one is listed', () => lab.fact('modems') === 1);
    expect(hasEnded).toBe(false);
    modem.comeBack();
    await expect(task.done).resolves.toMatchObject({ interface: 'wwan0' });
    expect(modem.resets()).toBe(1);
  });

  it('is seen to be back under its old number, where ModemManager restarted meanwhile', async () => {
    const { found, manager, lab } = await start();
    const task = run(found());
    await eventually('the modem restarts', () => task.notes.includes(texts.resetting));
    manager.stop();
    await lab.down(/./u);
    const next = await startFakeModemManager(bus.address);
    closing.push(async () => next.stop());
    next.add({ index: 0 });
    await expect(task.done).resolves.toMatchObject({ interface: 'wwan0' });
  });

  it('is accepted by a modem that is gone before it answers', async () => {
    const { found, manager } = await start();
    manager.reset = 'late';
    const modem = losesModem(manager);
    const task = run(found());
    await eventually('the modem restarts', () => task.notes.includes(texts.resetting));
    modem.comeBack();
    await expect(task.done).resolves.toMatchObject({ interface: 'wwan0' });
    expect(modem.resets()).toBe(1);
  });

  it('names no right where ModemManager refuses for another reason', async () => {
    const { found, manager } = await start();
    manager.reset = 'unsupported';
    await expect(run(found()).done).rejects.toThrow(
      `${texts.reset_refused('refused by the fake')}; command not sent`,
    );
  });

  it('is refused with the words of ModemManager and the right that it needs', async () => {
    const { found, manager } = await start();
    manager.reset = 'refused';
    await expect(run(found()).done).rejects.toThrow(/Device\.Control \(polkit\); command not sent$/u);
  });

  it('is sent once when the answer is lost, and waits for its effect', async () => {
    const { found, manager } = await start();
    manager.reset = 'unanswered';
    const modem = losesModem(manager);
    const task = run(found());
    await eventually('the modem is gone', () => modem.resets() === 1);
    modem.comeBack();
    await expect(task.done).resolves.toMatchObject({ interface: 'wwan0' });
    expect(modem.resets()).toBe(1);
  });
});
