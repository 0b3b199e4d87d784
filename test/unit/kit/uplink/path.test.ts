/** When the uplink leaves a session because of the kernel's routes. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import type { Route, RouteQuery, Routes } from '../../../../src/platform/linux/route-lookup.ts';
import { Path } from '../../../../src/kit/uplink/path.ts';
import { texts } from '../../../../src/kit/uplink/texts.ts';
import { recordingLog } from '../../../support/recording-log.ts';

const eth: Route = { ifindex: 2, interface: 'eth0', source_ip: '10.0.0.2' };
const sat: Route = { ifindex: 3, interface: 'sat0', source_ip: '100.64.0.2' };
const endpoints = { local_ip: '10.0.0.2', remote_ip: '198.18.0.1' };

/** A kernel whose answers the test sets; `bySource`: for packets of the session. */
function kernel(route: Route | null) {
  let now_ms = 0;
  const state = { route, bySource: route, listening: (): void => undefined };
  const asked: RouteQuery[] = [];
  const routes: Routes = {
    find: async (query) => {
      asked.push(query);
      return query.source_ip === undefined ? state.route : state.bySource;
    },
    watch: async (onChange) => {
      state.listening = onChange;
    },
  };
  const log = recordingLog();
  const waits: (() => void)[] = [];
  const path = new Path({
    routes,
    now: () => (now_ms += 1),
    pause: async () => new Promise<void>((resolve) => void waits.push(resolve)),
    log,
  });
  return {
    path,
    asked,
    waits,
    async change(next: Route | null, bySource: Route | null = next) {
      state.route = next;
      state.bySource = bySource;
      state.listening();
      await nextTurn();
    },
    /** The kernel has changed its tables and not reported it yet. */
    changeSilently: (next: Route) => {
      state.route = next;
      state.bySource = next;
    },
    passMinute: () => (now_ms += 60_000),
  };
}

/** A session that was opened on `route`; `meanwhile` happens before it is followed. */
async function followed(route: Route | null = eth, meanwhile?: (lab: ReturnType<typeof kernel>) => void) {
  const lab = kernel(route);
  const end = new AbortController();
  let moves = 0;
  await lab.path.run(end.signal);
  meanwhile?.(lab);
  const move = (): void => void (moves += 1);
  await lab.path.follow(endpoints, move, end.signal);
  return { ...lab, end, move, moves: () => moves };
}

describe('the path to the broker', () => {
  it('leaves a session once when another interface with another source takes over', async () => {
    const lab = await followed();
    expect(lab.path.interface).toBe('eth0');
    await lab.change(sat);
    await lab.change(sat);
    expect(lab.moves()).toBe(1);
  });

  it('names the interface of the last change, however late the kernel answers about an earlier one', async () => {
    const answers: (() => void)[] = [];
    const state = { way: eth, isSlow: false, changed: (): void => undefined };
    const find = async ({ source_ip }: RouteQuery): Promise<Route> => {
      const { way, isSlow } = state;
      if (isSlow && source_ip !== undefined) await new Promise<void>((resolve) => void answers.push(resolve));
      return way;
    };
    const watch = async (onChange: () => void): Promise<void> => void (state.changed = onChange);
    const path = new Path({ routes: { find, watch }, now: () => 0, log: recordingLog() });
    const end = new AbortController();
    await path.run(end.signal);
    await path.follow(endpoints, () => undefined, end.signal);
    state.isSlow = true;
    state.changed();
    await nextTurn();
    state.way = { ...sat, source_ip: eth.source_ip };
    state.isSlow = false;
    state.changed();
    await nextTurn();
    for (const answer of answers) answer();
    await nextTurn();
    expect(path.interface).toBe('sat0');
  });

  it('leaves a session whose address is gone from its interface', async () => {
    const lab = await followed();
    await lab.change({ ...eth, source_ip: '10.0.0.9' }, null);
    expect(lab.moves()).toBe(1);
  });

  it('leaves a session whose route moved while it was opened, before the kernel has reported that', async () => {
    const lab = await followed(eth, ({ changeSilently }) => changeSilently(sat));
    await lab.change(sat);
    expect(lab.moves()).toBe(1);
  });

  it('keeps a new session whose address the kernel did not state, as a temporary one of IPv6', async () => {
    const lab = await followed({ ...eth, source_ip: '10.0.0.3' });
    await lab.change({ ...eth, source_ip: '10.0.0.3' });
    expect(lab.moves()).toBe(0);
  });

  it('keeps a session with a fixed source, as in a VPN, and names its new interface', async () => {
    const lab = await followed();
    await lab.change({ ...sat, source_ip: endpoints.local_ip });
    expect([lab.moves(), lab.path.interface]).toEqual([0, 'sat0']);
  });

  it('keeps a session while no route leads to the broker, and when only a temporary address was renewed', async () => {
    const lab = await followed();
    await lab.change(null);
    await lab.change({ ...eth, source_ip: '10.0.0.3' }, eth);
    expect(lab.moves()).toBe(0);
  });

  it('hurries an attempt when the route changes, and not by other changes', async () => {
    const lab = kernel(null);
    await lab.path.run(new AbortController().signal);
    const first = lab.path.hurry();
    await lab.change(null);
    expect(first.aborted).toBe(false);
    await lab.change(sat);
    expect(first.aborted).toBe(true);
    const second = lab.path.hurry();
    await lab.change(sat);
    expect(second.aborted).toBe(false);
  });

  it('hurries an attempt when the link of the route answers again, and not right behind a change of the route', async () => {
    const lab = kernel(eth);
    await lab.path.run(new AbortController().signal);
    const first = lab.path.hurry();
    lab.path.linkIsBack();
    expect(first.aborted).toBe(true);
    await lab.change(sat);
    const second = lab.path.hurry();
    lab.path.linkIsBack();
    expect(second.aborted).toBe(false);
    lab.passMinute();
    lab.path.linkIsBack();
    expect(second.aborted).toBe(true);
  });

  it('hurries at most twelve times a minute', async () => {
    const lab = kernel(null);
    await lab.path.run(new AbortController().signal);
    let hurried = 0;
    const change = async (route: Route): Promise<void> => {
      const before = lab.path.hurry();
      await lab.change(route);
      if (before.aborted) hurried += 1;
    };
    for (let n = 0; n < 20; n += 1) await change(n % 2 === 0 ? sat : eth);
    expect(hurried).toBe(12);
    lab.passMinute();
    await change(sat);
    expect(hurried).toBe(13);
  });

  it('makes up for a move that came too early, without another change', async () => {
    const lab = await followed();
    const again = async (): Promise<void> => {
      await lab.change(eth);
      await lab.path.follow(endpoints, lab.move, lab.end.signal);
    };
    for (let n = 0; n < 12; n += 1) {
      await lab.change(sat);
      await again();
    }
    await lab.change(sat);
    await lab.change(sat);
    expect([lab.moves(), lab.waits.length]).toEqual([12, 1]);
    lab.passMinute();
    lab.waits[0]?.();
    await nextTurn();
    expect(lab.moves()).toBe(13);
  });

  it('knows no interface once the session is over, but that of the next attempt', async () => {
    const lab = await followed();
    lab.end.abort();
    await nextTurn();
    expect([lab.path.interface, lab.path.carrier]).toEqual([null, 'eth0']);
    await lab.change(sat);
    expect(lab.path.carrier).toBe('sat0');
  });

  it('logs where the kernel reports no changes', async () => {
    const log = recordingLog();
    const routes: Routes = {
      find: async () => null,
      watch: async () => Promise.reject(new Error('no netlink')),
    };
    await new Path({ routes, now: () => 0, log }).run(new AbortController().signal);
    expect(log.at('info')).toEqual([texts.routes_unknown]);
  });
});
