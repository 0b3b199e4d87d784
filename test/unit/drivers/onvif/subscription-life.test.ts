/** The life of a subscription to events: pulls that are cut, losses of seconds, limits of cameras, restarts, two ways that stand in for each other. */
import { describe, expect, it } from 'vitest';
import { PullLength } from '../../../../drivers/onvif/events/pull-point.ts';
import { texts } from '../../../../drivers/onvif/texts.ts';
import type { FakeCamera } from '../../../fakes/fake-onvif-camera.ts';
import { isStatus, labOfEachTest, said } from '../../../support/cameras/onvif-lab.ts';
import { elapse } from '../../../support/elapse.ts';
import { eventually } from '../../../support/eventually.ts';
import type { RecordingOutbox } from '../../../support/recording-outbox.ts';

const lab = labOfEachTest();
const alarm = 'tns1:VideoSource/MotionAlarm';
const motion = (detected: boolean) => said('motion', (data) => data['detected'] === detected);
const edges = ({ drafts }: RecordingOutbox): readonly unknown[] =>
  drafts.filter(said('motion')).map(({ data }) => [data?.['detected'], data?.['reason']]);
const asked_s = (camera: FakeCamera): readonly number[] =>
  camera.requests.flatMap(({ body }) => /<Timeout>PT(\d+)S/u.exec(body)?.[1] ?? []).map(Number);

describe('A camera that closes idle pulls after 10 s', () => {
  // Tapo C220 1.1.6 (agsh/onvif#314); the state that it sends first makes the first pull succeed.
  it('has one subscription, and one motion as long as it lasts', async () => {
    const camera = await lab.start();
    camera.events.idle_max_ms = 10_000;
    camera.events.set(alarm, 'State', 'false');
    const { outbox, log } = lab.run({ cameras: [await lab.entry(camera)], pull_s: 20 });
    await camera.next('PullMessages');
    await elapse(25_000);
    camera.events.set(alarm, 'State', 'true');
    await outbox.until(motion(true));
    await elapse(45_000);
    camera.events.set(alarm, 'State', 'false');
    await outbox.until(motion(false));
    expect(edges(outbox)).toEqual([
      [true, undefined],
      [false, undefined],
    ]);
    expect(camera.count('CreatePullPointSubscription')).toBe(1);
    expect(asked_s(camera).filter((seconds) => seconds === 20).length).toBeLessThanOrEqual(2);
    expect(Math.max(...asked_s(camera).slice(2))).toBeLessThan(10);
    expect(log.at('warn')).toEqual([]);
  });
});

describe('The length of a pull', () => {
  it('follows what was cut, by steps, and is tried again after an hour', () => {
    const length = new PullLength(20);
    expect(length.seconds(0)).toBe(20);
    // The answer came at once: the subscription is gone.
    length.cut(20, 300, 0);
    expect(length.seconds(0)).toBe(20);
    length.cut(20, 10_000, 0);
    expect(length.seconds(1)).toBe(6);
    // A router drops it without a sign: it failed after its whole time.
    length.cut(6, 14_000, 1);
    expect(length.seconds(2)).toBe(3);
    length.cut(3, 1_500, 2);
    expect(length.seconds(3)).toBe(1);
    expect(length.seconds(3_600_003)).toBe(20);
  });

  it('is not below five seconds after the first cut, which may have another cause', () => {
    const length = new PullLength(20);
    length.cut(20, 2_000, 0);
    expect(length.seconds(1)).toBe(5);
    length.cut(5, 4_000, 1);
    expect(length.seconds(2)).toBe(2);
  });

  it('is shorter for a connection that is dropped without a sign while it is idle', async () => {
    const { camera, outbox } = await lab.startServed();
    let pulls = 0;
    camera.misbehave('PullMessages', () => {
      pulls += 1;
      return pulls > 1 && (asked_s(camera).at(-1) ?? 0) > 3 ? 'hang' : 'normal';
    });
    await eventually('it is pulled for shorter', () => (asked_s(camera).at(-1) ?? 9) <= 3);
    camera.events.set(alarm, 'State', 'true');
    await outbox.until(motion(true));
    expect(camera.count('CreatePullPointSubscription')).toBeLessThanOrEqual(2);
  });

  it('is two seconds for a camera that answers at the end of the time alone', async () => {
    const camera = await lab.start();
    camera.events.holdsEvents = true;
    const { outbox } = lab.run({ cameras: [await lab.entry(camera)], pull_s: 20 });
    await camera.next('PullMessages');
    let waited_ms = 0;
    for (const state of [true, false, true, false]) {
      await elapse(2_000);
      camera.events.set(alarm, 'State', String(state));
      const since_ms = performance.now();
      outbox.clear();
      await outbox.until(motion(state));
      waited_ms = performance.now() - since_ms;
    }
    expect(waited_ms).toBeLessThan(2_500);
  });
});

describe('Motion', () => {
  it('outlives a subscription that is replaced within seconds and reports it again', async () => {
    const { camera, outbox } = await lab.startServed();
    await camera.next('PullMessages');
    camera.events.set(alarm, 'State', 'true');
    await outbox.until(motion(true));
    camera.events.forgetAll();
    camera.events.set(alarm, 'State', 'true');
    await eventually('it subscribes again', () => camera.count('CreatePullPointSubscription') === 2);
    await elapse(30_000);
    expect(edges(outbox)).toEqual([[true, undefined]]);
    camera.events.set(alarm, 'State', 'false');
    await outbox.until(motion(false));
  });

  it('ends with the report of the next subscription that it is over', async () => {
    const { camera, outbox } = await lab.startServed();
    await camera.next('PullMessages');
    camera.events.set(alarm, 'State', 'true');
    await outbox.until(motion(true));
    camera.events.forgetAll();
    camera.events.set(alarm, 'State', 'false');
    await outbox.until(motion(false));
    expect(edges(outbox).at(-1)).toEqual([false, undefined]);
  });

  it('ends with the reason when no subscription follows within 10 s', async () => {
    const { camera, outbox } = await lab.startServed();
    await camera.next('PullMessages');
    camera.events.set(alarm, 'State', 'true');
    await outbox.until(motion(true));
    for (const name of ['CreatePullPointSubscription', 'Subscribe'])
      camera.misbehave(name, { fault: 'ter:Busy' });
    camera.events.forgetAll();
    const since_ms = performance.now();
    await outbox.until(motion(false));
    expect(performance.now() - since_ms).toBeLessThan(20_000);
    expect(JSON.stringify(edges(outbox).at(-1))).toContain('event subscription lost');
  });
});

describe('A camera with one pull point', () => {
  // onvif/specs#592, roleoroleo/onvif_simple_server#50, home-assistant/core#37711.
  it('is pulled again at once after a power cut of the gateway: the next start ends what was left', async () => {
    const camera = await lab.start();
    camera.events.pull_points_max = 1;
    const cameras = [await lab.entry(camera)];
    const first = lab.run({ cameras });
    await first.outbox.until(isStatus('online'));
    await camera.next('PullMessages');
    // The last request of the run does not arrive.
    camera.misbehave('Unsubscribe', 'hang');
    await first.stop();
    expect(camera.events.size).toBe(1);
    camera.misbehave('Unsubscribe', 'normal');
    const second = lab.run({ cameras });
    await camera.next('PullMessages');
    expect(camera.events.size).toBe(1);
    camera.events.set(alarm, 'State', 'true');
    await second.outbox.until(motion(true));
  });

  it('is asked again after 1, 3 and 5 minutes, then seldom, with the words of both ways, until it is free', async () => {
    const camera = await lab.start();
    camera.events.pull_points_max = 0;
    camera.misbehave('Subscribe', {
      fault: 'ter:ActionNotSupported',
      reason: 'Optional Action Not Implemented',
    });
    const { outbox, log } = lab.run({ cameras: [await lab.entry(camera)] });
    await outbox.until(isStatus('online'));
    const since_ms = performance.now();
    const tries = (): number => camera.count('Subscribe');
    let known = 0;
    const times: number[] = [];
    await eventually(
      'five tries',
      () => {
        if (tries() > known) times.push(Math.round((performance.now() - since_ms) / 60_000));
        known = tries();
        return times.length >= 5;
      },
      3 * 3_600_000,
    );
    expect(times).toEqual([0, 1, 4, 9, 24]);
    const reasons = log.lines.filter(({ sentence }) => sentence === texts.events_unavailable);
    expect(reasons).toHaveLength(1);
    expect(reasons[0]?.facts['reason']).toMatch(
      /^pull point: .*Maximum number of pull points reached.*; webhook: .*Optional Action Not Implemented/u,
    );
    camera.events.pull_points_max = 1;
    await eventually('it is pulled', () => camera.count('PullMessages') > 0, 3_600_000);
    camera.events.set(alarm, 'State', 'true');
    await outbox.until(motion(true));
    expect(log.at('info').filter((sentence) => sentence === texts.events_available)).toHaveLength(1);
  });
});

describe('A camera that reads the time of a subscription wrongly', () => {
  // Seconds as milliseconds or not at all: others renew with absolute times then (openvideolibs/python-onvif-zeep-async, has_broken_relative_time).
  it('is told the end of it as a time', async () => {
    const camera = await lab.start();
    camera.events.lifetime_ms = 3_000;
    camera.misbehave('Renew', () => {
      camera.events.lifetime_ms = 180_000;
      return 'normal';
    });
    await lab.serve(camera);
    await camera.next('PullMessages');
    const renewals = camera.requests.filter(({ operation }) => operation === 'Renew');
    expect(renewals).toHaveLength(1);
    expect(renewals[0]?.body).toMatch(/TerminationTime>20\d\d-/u);
    await elapse(60_000);
    expect(camera.count('CreatePullPointSubscription')).toBe(1);
    expect(asked_s(camera).at(-1)).toBe(5);
  });
});

describe('A camera whose user may not subscribe', () => {
  // A Bosch answers to CreatePullPointSubscription with 401 (home-assistant/core#91089).
  it('is asked once in each way, and again after 15 minutes: each time counts as a refused login', async () => {
    const camera = await lab.start();
    for (const name of ['CreatePullPointSubscription', 'Subscribe'])
      camera.misbehave(name, { fault: 'ter:NotAuthorized', reason: 'Sender not authorized' });
    const { outbox } = lab.run({ cameras: [await lab.entry(camera)] });
    await outbox.until(isStatus('online'));
    await elapse(14 * 60_000);
    expect(camera.count('CreatePullPointSubscription') + camera.count('Subscribe')).toBe(2);
    await elapse(2 * 60_000);
    expect(camera.count('CreatePullPointSubscription') + camera.count('Subscribe')).toBe(4);
  });
});

describe('A camera that has pull points and a webhook', () => {
  const options = { webhook: { listen: '127.0.0.1' } };

  it('calls once it cannot be pulled any more', async () => {
    const camera = await lab.start();
    const { outbox } = lab.run({ cameras: [await lab.entry(camera)], ...options });
    await camera.next('PullMessages');
    camera.misbehave('CreatePullPointSubscription', { fault: 'ter:ActionNotSupported' });
    camera.events.forgetAll();
    await camera.next('Subscribe');
    await camera.next('SetSynchronizationPoint');
    camera.events.set(alarm, 'State', 'true');
    await expect(outbox.until(motion(true))).resolves.toBeDefined();
  });

  it('is pulled once its webhook is not renewed any more', async () => {
    const camera = await lab.start();
    camera.misbehave('CreatePullPointSubscription', { fault: 'ter:Busy' });
    const { outbox } = lab.run({ cameras: [await lab.entry(camera)], ...options });
    await camera.next('Subscribe');
    await camera.next('SetSynchronizationPoint');
    camera.events.set(alarm, 'State', 'true');
    await outbox.until(motion(true));
    camera.misbehave('CreatePullPointSubscription', 'normal');
    camera.misbehave('Renew', { fault: 'ter:ResourceUnknownFault' });
    await eventually('it is pulled', () => camera.count('PullMessages') > 0, 600_000);
    await elapse(15_000);
    expect(edges(outbox)).toEqual([[true, undefined]]);
  });
});
