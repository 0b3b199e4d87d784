/** Several devices of one driver: what happens to one does not touch the others. */
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { afterAll, describe, expect, it } from 'vitest';
import { readFile, rm } from 'node:fs/promises';
import type { SessionState } from '../../../../src/toolkit/device/device-session.ts';
import {
  serveConfiguredDevices,
  type ServedEntry,
} from '../../../../src/toolkit/device/configured-devices.ts';
import { DeviceRejected } from '../../../../src/platform/errors.ts';
import { texts } from '../../../../src/toolkit/device/texts.ts';
import type { DriverHost } from '../../../../src/toolkit/driver/driver.ts';
import { aborted } from '../../../../src/platform/time.ts';
import { recordingLog } from '../../../support/recording-log.ts';
import { makeDirectory } from '../../../support/temporary.ts';

const feeds = {};
type Host = DriverHost<typeof feeds>;
interface Device {
  readonly name: string;
  readonly host: string;
}
type Served = ServedEntry<Device, typeof feeds>;
const folders: string[] = [];

afterAll(async () => {
  for (const folder of folders) await rm(folder, { recursive: true });
});

const gate = { name: 'gate', host: 'gate' };
const mast = { name: 'mast', host: 'mast' };
const yard = { name: 'yard', host: 'yard' };

interface Run {
  readonly devices?: readonly Device[];
  readonly signal?: AbortSignal;
  /** In place of one that runs until its signal aborts. */
  readonly serve?: (served: Served) => Promise<void>;
}

async function start({ devices = [gate, mast], signal, serve }: Run = {}) {
  const stopping = new AbortController();
  const tell = new Map<string, Served['onState']>();
  const events: string[] = [];
  const assets: string[] = [];
  const dir = await makeDirectory();
  folders.push(dir);
  const unused = (): never => {
    throw new Error('not used here');
  };
  let change: (devices: readonly Device[]) => readonly string[] | undefined = () => undefined;
  const started = Promise.withResolvers<void>();
  const host: Host = {
    signal: signal ?? stopping.signal,
    log: recordingLog(),
    announce: ({ asset_key }) => ({
      publish: unused,
      setPosition: unused,
      setOnline: (_online, reason) => void assets.push(`${asset_key} offline: ${reason}`),
      setHealth: () => undefined,
      remove: () => void assets.push(`${asset_key} removed`),
    }),
    files: { add: unused },
    retract: unused,
    reportKit: unused,
    reportLink: unused,
    reportLocation: unused,
    serveGateway: unused,
    publishGateway: unused,
    linkType: () => null,
    stateFile: (name) => join(dir, name),
    reportStatus: () => undefined,
    onOptions: unused,
  };
  const run = async ({ device: { name, host: at }, host: own, onState }: Served): Promise<void> => {
    events.push(`${at} starts`);
    tell.set(name, onState);
    own.announce({ asset_key: `key:${at}`, name, type: 'camera', protocol: 'onvif' });
    await aborted(own.signal);
    await Promise.resolve();
    events.push(`${at} ends`);
  };
  const done = serveConfiguredDevices<Device, typeof feeds, readonly Device[]>({
    host,
    options: devices,
    onOptions: (take) => {
      change = take;
      started.resolve();
    },
    devicesOf: (listed) => listed,
    portOf: () => 80,
    onEnd: ({ name }) => void events.push(`${name} is forgotten`),
    serve: serve ?? run,
  });
  done.catch(() => undefined);
  await started.promise;
  return {
    stopping,
    events,
    assets,
    done,
    dir,
    change: (next: readonly Device[]) => change(next),
    say: (name: string, state: SessionState) => tell.get(name)?.(state),
    get ended() {
      return events.filter((event) => event.endsWith(' ends')).map((event) => event.replace(' ends', ''));
    },
  };
}

const rejected = (reason: string, options?: { readonly may_pass: boolean }): SessionState => ({
  state: 'rejected',
  reason,
  error: new DeviceRejected(reason, options),
  retry_ms: 1,
});

describe('serveConfiguredDevices', () => {
  it('continues while one device of two rejects the connector', async () => {
    const run = await start();
    run.say('gate', rejected('wrong password'));
    run.say('mast', { state: 'up' });
    await Promise.resolve();
    expect(run.ended).toEqual([]);
    run.stopping.abort();
    await expect(run.done).resolves.toBeUndefined();
    expect(run.ended).toEqual(['gate', 'mast']);
  });

  it('ends with every reason when all devices reject the connector at the same time', async () => {
    const run = await start();
    run.say('gate', rejected('wrong password'));
    run.say('gate', { state: 'up' });
    run.say('mast', rejected('has another certificate'));
    expect(run.ended).toEqual([]);
    run.say('gate', rejected('locked the account'));
    await expect(run.done).rejects.toThrow(
      new DeviceRejected('mast has another certificate; gate locked the account'),
    );
    expect(run.ended).toEqual(['gate', 'mast']);
  });

  it('may pass as a whole when the rejection of one device may', async () => {
    const { say, done } = await start();
    say('gate', rejected('wrong password'));
    say('mast', rejected('locked', { may_pass: true }));
    await expect(done).rejects.toMatchObject({ may_pass: true });
  });

  it('serves nothing when its signal has aborted before', async () => {
    const { done, events } = await start({ signal: AbortSignal.abort() });
    await expect(done).resolves.toBeUndefined();
    expect(events).toEqual([]);
  });

  it('ends only once the identities of its devices are on disk', async () => {
    const { done, dir, stopping } = await start({
      devices: [gate],
      serve: async ({ host, bindings, entry }) => {
        await aborted(host.signal);
        bindings.claim(entry, 'key:gate');
      },
    });
    stopping.abort();
    await done;
    expect(await readFile(join(dir, 'identities.json'), 'utf8')).toContain('key:gate');
  });

  it('rejects with the error of a device that ends without a signal with one, and ends the others', async () => {
    const ended: string[] = [];
    const { done } = await start({
      serve: async ({ device: { name }, host }) => {
        if (name === 'gate') throw new Error('disk gone');
        await aborted(host.signal);
        ended.push(name);
      },
    });
    await expect(done).rejects.toThrow('disk gone');
    expect(ended).toEqual(['mast']);
  });
});

describe('serveConfiguredDevices with another list', () => {
  it('starts what is new, ends what is gone with its assets, and leaves the rest alone', async () => {
    const run = await start();
    expect(run.change([mast, yard])).toEqual([]);
    await nextTurn();
    expect(run.events).toEqual([
      'gate starts',
      'mast starts',
      'gate ends',
      'gate is forgotten',
      'yard starts',
    ]);
    expect(run.assets).toEqual(['key:gate removed']);
    run.stopping.abort();
    await run.done;
    expect(run.ended).toEqual(['gate', 'mast', 'yard']);
  });

  it('restarts a device with other options once it has ended, and those that swap their address after both', async () => {
    const run = await start({
      devices: [
        { name: 'gate', host: 'a' },
        { name: 'mast', host: 'b' },
      ],
    });
    run.change([
      { name: 'gate', host: 'b' },
      { name: 'mast', host: 'a' },
    ]);
    await nextTurn();
    const [, , ...later] = run.events;
    expect(later.slice(-2)).toEqual(['b starts', 'a starts']);
    expect(later.slice(0, -2).toSorted()).toEqual([
      'a ends',
      'b ends',
      'gate is forgotten',
      'mast is forgotten',
    ]);
    expect(run.assets.toSorted()).toEqual([
      `key:a offline: ${texts.device_changed}`,
      `key:b offline: ${texts.device_changed}`,
    ]);
    run.stopping.abort();
    await run.done;
  });

  it('tries a device again that rejects the connector, and names it', async () => {
    const run = await start();
    run.say('gate', rejected('wrong password'));
    expect(run.change([gate, mast])).toEqual(['gate']);
    await nextTurn();
    expect(run.events.slice(2)).toEqual(['gate ends', 'gate is forgotten', 'gate starts']);
    run.say('mast', rejected('wrong password'));
    await nextTurn();
    expect(run.ended).toEqual(['gate']);
    run.stopping.abort();
    await run.done;
  });

  it('is rejected once all that is left rejects the connector', async () => {
    const run = await start();
    run.say('gate', rejected('wrong password'));
    run.change([{ ...gate, host: 'other' }]);
    await nextTurn();
    run.say('gate', rejected('wrong password'));
    await expect(run.done).rejects.toThrow('gate wrong password');
    expect(run.change([gate])).toBeUndefined();
  });

  it('changes twice in a row without serving what was listed in between', async () => {
    const run = await start({ devices: [gate] });
    run.change([mast]);
    run.change([yard]);
    await nextTurn();
    expect(run.events.filter((event) => event.endsWith('starts'))).toEqual(['gate starts', 'yard starts']);
    run.stopping.abort();
    await run.done;
  });
});
