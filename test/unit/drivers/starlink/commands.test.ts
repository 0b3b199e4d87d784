/** Restart, stow and unstow of a dish, over real HTTP/2 and gRPC. */
import { afterEach, describe, expect, it } from 'vitest';
import { gateway } from '../../../../drivers/gateway/gateway.ts';
import { starlink } from '../../../../drivers/starlink/starlink.ts';
import { texts } from '../../../../drivers/starlink/texts.ts';
import { notSent } from '../../../../src/platform/errors.ts';
import { refused_text, startFakeDish } from '../../../fakes/fake-dish.ts';
import { startCommand } from '../../../support/drivers/started-command.ts';
import { eventually } from '../../../support/eventually.ts';
import { hubLab } from '../../../support/kit/hub-lab.ts';

const closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

async function start(commands: readonly string[] = ['reboot', 'stow', 'unstow']) {
  const dish = await startFakeDish();
  closing.push(async () => dish.lose());
  const lab = hubLab({ configured: ['dish', 'gateway'] });
  closing.push(lab.stop);
  void lab.run(gateway, 'gateway');
  const options = {
    port: dish.port,
    host: '127.0.0.1',
    link: 'eth1.7',
    bind: false,
    interval_s: 1,
    timeout_s: 1,
  };
  void lab.run(starlink, 'dish', { options: { ...options, commands } });
  const find = (name: string) => {
    const found = lab.hub.findCommand(lab.hub.assets()[0]?.id ?? '', `${name}_dish_eth1_7`);
    return 'command' in found ? found.command : undefined;
  };
  const view = () => lab.hub.drivers().find(({ name }) => name === 'dish');
  await eventually('the dish is read', () => view()?.state === 'up' && lab.hub.assets().length === 1);
  const run = (name: string) => startCommand(find(name));
  return { dish, lab, find, run, view };
}

describe('The commands of a dish', () => {
  it('are not offered unless the configuration allows each of them', async () => {
    const { find } = await start(['stow']);
    await eventually('stow is offered', () => find('stow') !== undefined);
    expect(find('reboot')).toBeUndefined();
    expect(find('stow')).toMatchObject({ risk_level: 'high', requires_approval: true });
  });

  it('complete once the dish shows the effect', async () => {
    const { dish, run } = await start();
    await expect(run('stow').done).resolves.toHaveProperty('after_s');
    expect(dish.state.outage).toBe(2);
    await expect(run('unstow').done).resolves.toHaveProperty('after_s');
    expect(dish.state.outage).toBeUndefined();
    await expect(run('reboot').done).resolves.toHaveProperty('after_s');
    expect(dish.asked.get(1001)).toBe(1);
  });

  it('survive the loss of the dish that a restart is, and are sent once', async () => {
    const { dish, run, view } = await start();
    dish.state.orders = 'deaf';
    const task = run('reboot');
    await eventually('the dish was asked', () => dish.asked.get(1001) === 1);
    await dish.lose();
    await eventually('the dish is lost', () => view()?.state === 'down');
    await dish.restore();
    await expect(task.done).resolves.toHaveProperty('after_s');
    expect(dish.asked.get(1001)).toBe(1);
  });

  it('fail with an unknown outcome when no effect is seen in time', async () => {
    const { dish, run } = await start();
    dish.state.orders = 'ignored';
    const task = run('reboot');
    await eventually('the dish accepted', () => task.notes.includes(texts.order_accepted));
    const before = dish.asked.get(1004) ?? 0;
    await eventually('the dish is read again', () => (dish.asked.get(1004) ?? 0) > before + 1);
    task.stop();
    await expect(task.done).rejects.toThrow(texts.effect_not_seen.reboot);
    expect(dish.asked.get(1001)).toBe(1);
  });

  it('are refused in the words of the dish, and not sent to one that is lost', async () => {
    const { dish, find, run, view } = await start();
    dish.state.orders = 'refused';
    await expect(run('stow').done).rejects.toThrow(notSent(texts.order_refused(refused_text)));
    const stow = find('stow');
    await dish.lose();
    await eventually('the dish is lost', () => view()?.state === 'down');
    await expect(startCommand(stow).done).rejects.toThrow(notSent(texts.dish_absent));
  });
});
