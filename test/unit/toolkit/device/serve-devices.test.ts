/** Several devices of one driver: what happens to one does not touch the others. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import type { SessionState } from '../../../../src/toolkit/device/device-session.ts';
import { serveDevices } from '../../../../src/toolkit/device/configured-devices.ts';
import { DeviceRejected } from '../../../../src/platform/errors.ts';
import { texts } from '../../../../src/toolkit/device/texts.ts';
import type { DriverHost } from '../../../../src/toolkit/driver/driver.ts';
import { aborted } from '../../../../src/platform/time.ts';
import { recordingLog } from '../../../support/recording-log.ts';

type Tell = (state: SessionState) => void;

const feeds = {};
type Host = DriverHost<typeof feeds>;
interface Device {
  readonly name: string;
  readonly host?: string;
}

/** A host that records what happens to the assets. */
function hostOf(signal: AbortSignal, assets: string[]): Host {
  const unused = (): never => {
    throw new Error('not used here');
  };
  return {
    signal,
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
    stateFile: unused,
    reportStatus: unused,
    onOptions: unused,
  };
}

/** The identities are on disk. */
const bindings = { saved: async () => Promise.resolve() };

const gate = { name: 'gate' };
const mast = { name: 'mast' };

function start(devices: readonly Device[] = [gate, mast]) {
  const stopping = new AbortController();
  const tell = new Map<string, Tell>();
  const events: string[] = [];
  const assets: string[] = [];
  let change: (devices: readonly Device[]) => readonly string[] | undefined = () => undefined;
  const done = serveDevices<Device, typeof feeds>({
    host: hostOf(stopping.signal, assets),
    devices,
    bindings,
    onStart: (given) => {
      change = given;
    },
    onEnd: ({ name }) => void events.push(`${name} is forgotten`),
    serve: async ({ name, host: at = name }, session) => {
      events.push(`${at} starts`);
      tell.set(name, session.onState);
      session.host.announce({ asset_key: `key:${at}`, name, type: 'camera', protocol: 'onvif' });
      await aborted(session.host.signal);
      await Promise.resolve();
      events.push(`${at} ends`);
    },
  });
  done.catch(() => undefined);
  return {
    stopping,
    events,
    assets,
    done,
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

describe('serveDevices', () => {
  it('continues while one device of two rejects the connector', async () => {
    const run = start();
    run.say('gate', rejected('wrong password'));
    run.say('mast', { state: 'up' });
    await Promise.resolve();
    expect(run.ended).toEqual([]);
    run.stopping.abort();
    await expect(run.done).resolves.toBeUndefined();
    expect(run.ended).toEqual(['gate', 'mast']);
  });

  it('ends with every reason when all devices reject the connector at the same time', async () => {
    const run = start();
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
    const { say, done } = start();
    say('gate', rejected('wrong password'));
    say('mast', rejected('locked', { may_pass: true }));
    await expect(done).rejects.toMatchObject({ may_pass: true });
  });

  it('serves nothing when its signal has aborted before', async () => {
    const events: string[] = [];
    const done = serveDevices<Device, typeof feeds>({
      host: hostOf(AbortSignal.abort(), []),
      devices: [gate],
      bindings,
      serve: async ({ name }) => void events.push(name),
    });
    await expect(done).resolves.toBeUndefined();
    expect(events).toEqual([]);
  });

  it('ends only once the identities of its devices are on disk', async () => {
    const disk = Promise.withResolvers<void>();
    const events: string[] = [];
    const done = serveDevices<Device, typeof feeds>({
      host: hostOf(AbortSignal.abort(), []),
      devices: [gate],
      bindings: { saved: async () => disk.promise },
      serve: async () => Promise.resolve(),
    }).then(() => events.push('ended'));
    await nextTurn();
    events.push('written');
    disk.resolve();
    await done;
    expect(events).toEqual(['written', 'ended']);
  });

  it('rejects with the error of a device that ends without a signal with one, and ends the others', async () => {
    const { signal } = new AbortController();
    const ended: string[] = [];
    const done = serveDevices<Device, typeof feeds>({
      host: hostOf(signal, []),
      devices: [gate, mast],
      bindings,
      serve: async ({ name }, { host }) => {
        if (name === 'gate') throw new Error('disk gone');
        await aborted(host.signal);
        ended.push(name);
      },
    });
    await expect(done).rejects.toThrow('disk gone');
    expect(ended).toEqual(['mast']);
  });
});

describe('serveDevices with another list', () => {
  it('starts what is new, ends what is gone with its assets, and leaves the rest alone', async () => {
    const run = start();
    expect(run.change([{ name: 'mast' }, { name: 'yard' }])).toEqual([]);
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
    const run = start([
      { name: 'gate', host: 'a' },
      { name: 'mast', host: 'b' },
    ]);
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
    const run = start();
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
    const run = start();
    run.say('gate', rejected('wrong password'));
    run.change([{ ...gate, host: 'gate' }]);
    await nextTurn();
    run.say('gate', rejected('wrong password'));
    await expect(run.done).rejects.toThrow('gate wrong password');
    expect(run.change([gate])).toBeUndefined();
  });

  it('changes twice in a row without serving what was listed in between', async () => {
    const run = start([gate]);
    run.change([mast]);
    run.change([{ name: 'yard' }]);
    await nextTurn();
    expect(run.events.filter((event) => event.endsWith('starts'))).toEqual(['gate starts', 'yard starts']);
    run.stopping.abort();
    await run.done;
  });
});
