/** The driver instances that run: which of them a new configuration starts, stops and leaves alone. */
import { describe, expect, it } from 'vitest';
import { stop_deadline_ms } from '../../../../src/kit/hub/host.ts';
import { pass, startAppLab } from '../../../support/app-lab.ts';
import { useFakeTime } from '../../../support/fake-time.ts';

useFakeTime();

const instance = (name: string, options = `keys: [${name}]`, driver = 'drones'): string =>
  `  - { driver: ${driver}, name: ${name}, options: { ${options} } }\n`;
const configured = (...instances: readonly string[]): string =>
  `drivers:${instances.length === 0 ? ' []' : ''}\n${instances.join('')}`;

describe('the driver instances', () => {
  it('start with the configuration, and a stop waits until each of them has ended', async () => {
    const lab = await startAppLab(configured(instance('red'), instance('blue')));
    expect(lab.states()).toEqual({ red: 'up', blue: 'up' });
    await lab.stop();
    expect(lab.events).toEqual(['red starts', 'blue starts', 'red ends', 'blue ends']);
    expect(lab.states()).toEqual({ red: 'stopped', blue: 'stopped' });
  });

  it('keep running when they are as before, also when their order or that of their options is another', async () => {
    const two = (first: string, second: string): string => `${first}, ${second}`;
    const red = (...parts: readonly [string, string]): string => instance('red', two(...parts));
    const lab = await startAppLab(configured(red('keys: [red]', 'does: serve'), instance('blue')));
    const change = await lab.instances.change(
      (await lab.read(configured(instance('blue'), red('does: serve', 'keys: [red]')))).drivers,
    );
    expect(change).toEqual({ added: [], removed: [], changed: [], tried_again: [] });
    expect(lab.events).toEqual(['red starts', 'blue starts']);
  });

  it('start, stop and restart one by one, and the assets of one that is gone are removed', async () => {
    const lab = await startAppLab(configured(instance('red'), instance('blue'), instance('grey')));
    const next = configured(instance('red', 'keys: [red, ruby]'), instance('green'), instance('grey'));
    const change = await lab.instances.change((await lab.read(next)).drivers);
    await pass(0);
    expect(change).toEqual({ added: ['green'], removed: ['blue'], changed: ['red'], tried_again: [] });
    const stopped = ['blue ends', 'red ends'];
    const started = ['red+ruby starts', 'green starts'];
    expect(lab.events.slice(3)).toEqual([...stopped, ...started]);
    expect(lab.states()).toEqual({ red: 'up', green: 'up', grey: 'up' });
    expect(lab.hub.assets().map(({ key }) => key)).toEqual(['red', 'grey', 'ruby', 'green']);
    expect(lab.outbox.on(`asset/${lab.idOf('blue')}`).at(-1)).toBeNull();
  });

  it('take another list of devices without a restart, and restart for any other change', async () => {
    const fleet = (options: string): string => configured(instance('cameras', options, 'fleet'));
    const change = async (options: string) => lab.instances.change((await lab.read(fleet(options))).drivers);
    const lab = await startAppLab(fleet('keys: [a]'));
    expect(await change('keys: [a, b]')).toMatchObject({ changed: ['cameras'], tried_again: [] });
    expect(lab.events).toEqual(['fleet a starts', 'fleet takes a+b']);
    expect(await change('keys: [a, b]')).toMatchObject({ changed: [], tried_again: [] });
    expect(await change('keys: [b], tries: [b]')).toMatchObject({ changed: ['cameras'], tried_again: [] });
    await pass(0);
    expect(await change('keys: [b], tries: [b]')).toMatchObject({ changed: [], tried_again: ['cameras'] });
    expect(lab.events.slice(2)).toEqual(['fleet takes a+b', 'fleet b starts', 'fleet takes b']);
  });

  it('restart when another driver has their name', async () => {
    const lab = await startAppLab(configured(instance('red')));
    const next = configured(instance('red', 'keys: [red]', 'others'));
    expect(await lab.instances.change((await lab.read(next)).drivers)).toMatchObject({ changed: ['red'] });
    await pass(0);
    expect(lab.hub.drivers()).toMatchObject([{ name: 'red', driver: 'others', state: 'up' }]);
  });

  it('are tried again at once when their device rejected them, although their options are the same', async () => {
    const text = configured(instance('red', 'keys: [red], does: reject'), instance('blue'));
    const lab = await startAppLab(text);
    expect(lab.states()).toEqual({ red: 'rejected', blue: 'up' });
    expect(await lab.instances.change((await lab.read(text)).drivers)).toEqual({
      added: [],
      removed: [],
      changed: [],
      tried_again: ['red'],
    });
    await pass(0);
    expect(lab.events).toEqual(['red starts', 'blue starts', 'red starts']);
  });

  it('are abandoned when they do not stop in time, and the others change all the same', async () => {
    const lab = await startAppLab(configured(instance('red', 'keys: [red], does: hang'), instance('blue')));
    const { drivers } = await lab.read(configured(instance('red'), instance('green')));
    const changed = lab.instances.change(drivers);
    await pass(stop_deadline_ms - 1);
    expect(lab.events).not.toContain('green starts');
    await pass(1);
    expect(await changed).toEqual({ added: ['green'], removed: ['blue'], changed: ['red'], tried_again: [] });
    await pass(0);
    expect(lab.states()).toEqual({ red: 'up', green: 'up' });
  });

  it('do not start any more once they were stopped', async () => {
    const lab = await startAppLab(configured(instance('red')));
    await lab.instances.stop();
    await lab.instances.change((await lab.read(configured(instance('red'), instance('green')))).drivers);
    await pass(0);
    expect(lab.events).toEqual(['red starts', 'red ends']);
  });
});
