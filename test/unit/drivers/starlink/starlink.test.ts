/** The Starlink driver against a dish that speaks real HTTP/2 and gRPC, and against one that does not. */
import { createServer, type Socket } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { message_max_bytes } from '../../../../drivers/starlink/api/grpc.ts';
import { Permit, refused_pause_ms, starlink } from '../../../../drivers/starlink/starlink.ts';
import { texts as dish_texts } from '../../../../drivers/starlink/texts.ts';
import { noFeeds } from '../../../../src/contract/feeds.ts';
import { texts } from '../../../../src/toolkit/device/texts.ts';
import { defineDriver } from '../../../../src/toolkit/driver/driver.ts';
import {
  denied_text,
  type DishMood,
  dishState,
  type FakeDish,
  startFakeDish,
} from '../../../fakes/fake-dish.ts';
import { driverConformance } from '../../../support/drivers/driver-conformance.ts';
import { elapse } from '../../../support/elapse.ts';
import { eventually } from '../../../support/eventually.ts';
import { hubLab } from '../../../support/kit/hub-lab.ts';
import { recordingLog } from '../../../support/recording-log.ts';
import { watchedDriver } from '../../../support/drivers/watched-driver.ts';

const closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

/** Lists the link that the dish belongs to, as the driver of the links does. */
const ports = defineDriver({
  name: 'ports',
  feeds: noFeeds,
  options: z.strictObject({}),
  async run(_options, host) {
    host.reportKit({ wans: [{ name: 'sat0', type: 'ethernet', status: 'online' }] });
    await new Promise<void>((resolve) => {
      host.signal.addEventListener('abort', () => resolve(), { once: true });
    });
  },
});

async function startDish(): Promise<FakeDish> {
  const dish = await startFakeDish();
  closing.push(async () => dish.lose());
  return dish;
}

function startLab(port: number, options: object = {}) {
  const lab = hubLab({ configured: ['dish', 'ports'] });
  closing.push(lab.stop);
  void lab.run(ports, 'ports');
  const quick = { port, host: '127.0.0.1', link: 'sat0', bind: false, interval_s: 1, timeout_s: 2 };
  const watched = watchedDriver(starlink);
  void lab.run(watched.driver, 'dish', { options: { ...quick, ...options } });
  const view = () => lab.hub.drivers().find(({ name }) => name === 'dish');
  return {
    ...lab,
    fixes: watched.fixes,
    link: () => lab.hub.links()[0],
    view,
    fact: (name: string) => view()?.facts[name],
    down: async () => eventually('the driver is down', () => view()?.state === 'down'),
    up: async () => eventually('the driver is up', () => view()?.state === 'up'),
  };
}

describe('the Starlink driver', () => {
  let dish: FakeDish | undefined;
  driverConformance({
    driver: starlink,
    options: () => ({ host: '127.0.0.1', port: dish?.port, link: 'sat0', bind: false, location: true }),
    peer: {
      start: async () => {
        dish ??= await startFakeDish();
        await dish.restore();
      },
      lose: async () => dish?.lose(),
      restore: async () => dish?.restore(),
      stop: async () => dish?.lose(),
    },
    without: {
      loss: 'the dish is no asset; how it is lost and found is tested below',
      commands: 'the dish takes none',
    },
  });
});

describe('a dish that works', () => {
  it('makes the Ethernet port a satellite link, with latency and loss from the ring', async () => {
    const dish = await startDish();
    dish.state.samples = Array.from({ length: 1_000 }, (_, second) => ({
      drop: second % 10 ? 0 : 0.5,
      latency_ms: 38,
    }));
    const { up, link, fact } = startLab(dish.port);
    await up();
    await eventually('the link is known', () => link()?.latency_ms === 38);
    expect(link()).toEqual({
      name: 'sat0',
      type: 'satellite',
      status: 'online',
      isp: 'Starlink',
      latency_ms: 38,
      packet_loss_pct: 5,
      reason: null,
      cause: null,
    });
    await eventually('the facts are there', () => fact('dish') === 'connected');
    expect(fact('down_mbps')).toBe(42);
    expect(fact('obstructed_pct')).toBe(1.3);
    expect(fact('firmware')).toBe('2026.06.22.mr1');
    expect(fact('location')).toBe('off');
    expect(dish.asked.has(1017)).toBe(false);
  });

  it('reports why the link is down, and that it is up again', async () => {
    const dish = await startDish();
    const { up, link } = startLab(dish.port);
    await up();
    dish.state.outage = 6;
    dish.state.samples.push(...Array.from({ length: 60 }, () => ({ drop: 1, latency_ms: 0 })));
    await eventually('the outage is told', () => link()?.reason === 'dish: obstructed');
    expect(link()).toMatchObject({ packet_loss_pct: 100 });
    expect(link()?.latency_ms ?? null).toBeNull();
    dish.state.outage = undefined;
    dish.state.disablement = 7;
    await eventually('the disablement is told', () => /allowance used up/u.test(link()?.reason ?? ''));
    dish.state.disablement = 1;
    await eventually('all is well', () => link()?.reason === null);
  });

  it('uses only the seconds since a restart, and logs it once', async () => {
    const dish = await startDish();
    const { up, link, log } = startLab(dish.port);
    await up();
    await eventually('the old latency', () => link()?.latency_ms === 40);
    Object.assign(dish.state, { uptime_s: 5, samples: [{ drop: 0, latency_ms: 90 }] });
    await eventually('the new latency', () => link()?.latency_ms === 90);
    expect(log.at('info').filter((line) => line === dish_texts.restarted)).toHaveLength(1);
  });

  it('works without a history, and logs it once', async () => {
    const dish = await startDish();
    dish.state.hasHistory = false;
    const { up, link, log } = startLab(dish.port);
    await up();
    await eventually('asked again', () => (dish.asked.get(1007) ?? 0) >= 2);
    expect(link()).toMatchObject({ type: 'satellite' });
    expect(link()?.latency_ms ?? null).toBeNull();
    expect(log.at('warn').filter((line) => /no history/u.test(line))).toHaveLength(1);
  });
});

describe('the position of the dish', () => {
  it('is the kit’s, as a satellite fix without a height', async () => {
    const dish = await startDish();
    dish.state.location = 'allowed';
    const { fixes, fact } = startLab(dish.port, { location: true });
    await eventually('the kit is somewhere', () => fact('location') === 'fresh');
    expect(fixes[0]).toEqual({
      latitude: 59.3293,
      longitude: 18.0686,
      altitude: null,
      source: 'satellite',
      age_ms: 0,
    });
  });

  it.each(['denied', 'denied in band'] as const)(
    'is asked for once when it is %s, with the remedy in the log',
    async (how) => {
      const dish = await startDish();
      dish.state.location = how;
      const { up, fixes, log, fact } = startLab(dish.port, { location: true });
      await up();
      await eventually('two rounds', () => (dish.asked.get(1004) ?? 0) >= 3);
      expect(dish.asked.get(1017)).toBe(1);
      expect(fixes).toEqual([]);
      expect(fact('location')).toBe('refused');
      const lines = log.lines.filter(({ sentence }) => /refused its position/u.test(sentence));
      expect(lines).toHaveLength(1);
      expect(lines[0]?.facts).toMatchObject({ reason: denied_text });
      expect(JSON.stringify(lines[0]?.facts)).toMatch(/Starlink app/u);
    },
  );

  it('is neither requested nor logged as refused again when the dish was lost and restored meanwhile', async () => {
    const dish = await startDish();
    dish.state.location = 'denied';
    const { up, down, log, fact } = startLab(dish.port, { location: true });
    await up();
    await eventually('asked', () => fact('location') === 'refused');
    await dish.lose();
    await down();
    await dish.restore();
    await up();
    const rounds = dish.asked.get(1004) ?? 0;
    await eventually('two rounds', () => (dish.asked.get(1004) ?? 0) >= rounds + 2);
    expect(dish.asked.get(1017)).toBe(1);
    expect(fact('location')).toBe('refused');
    expect(log.at('warn').filter((line) => /refused its position/u.test(line))).toHaveLength(1);
  });

  it('is requested again after the pause, and each change is logged once', () => {
    const log = recordingLog();
    const permit = new Permit();
    const at = (now_ms: number) => ({ now_ms, log });
    const refusal = { denied: true, reason: denied_text };
    expect(permit.mayAsk(0)).toBe(true);
    permit.received({ refusal }, at(0));
    expect(permit.mayAsk(refused_pause_ms - 1)).toBe(false);
    expect(permit.mayAsk(refused_pause_ms)).toBe(true);
    permit.received({ refusal }, at(refused_pause_ms));
    expect(log.at('warn')).toHaveLength(1);
    permit.received({}, at(refused_pause_ms * 2));
    permit.received({}, at(refused_pause_ms * 2));
    expect(log.at('info')).toEqual([dish_texts.position_available]);
    expect(permit.mayAsk(refused_pause_ms * 2)).toBe(true);
  });

  it('is not reported when it is old, or unknown', async () => {
    const dish = await startDish();
    Object.assign(dish.state, { location: 'allowed', source: 10 });
    const { fixes, fact } = startLab(dish.port, { location: true });
    await eventually('asked', () => fact('location') === 'no fix');
    dish.state.location = 'unknown';
    const asked = dish.asked.get(1017) ?? 0;
    await eventually('asked again', () => (dish.asked.get(1017) ?? 0) > asked + 1);
    expect(fixes).toEqual([]);
  });
});

describe('a dish that fails', () => {
  it('is lost when it is switched off, and restored', async () => {
    const dish = await startDish();
    const { up, down, link, view, log } = startLab(dish.port);
    await up();
    await dish.lose();
    await down();
    expect(view()?.reason).toMatch(new RegExp(`^dish of sat0 at 127\\.0\\.0\\.1 port ${dish.port}: `, 'u'));
    // What the link is stays known, and its figures have nobody who vouches for them.
    expect(link()).toMatchObject({ type: 'satellite' });
    expect(link()?.reason).toContain('dish of sat0');
    expect(link()).not.toHaveProperty('latency_ms');
    await dish.restore();
    await up();
    expect(log.at('warn').filter((line) => line === texts.is_unavailable('device'))).toHaveLength(1);
    expect(log.at('info').filter((line) => line === texts.is_back('device'))).toHaveLength(1);
  });

  it('names the route that bypass mode needs where nothing leads to it', async () => {
    const { down, view } = startLab(9_200, { host: '255.255.255.255' });
    await down();
    expect(view()?.reason).toContain('ip route add 255.255.255.255 dev sat0');
  });

  const faults: readonly (readonly [DishMood, string])[] = [
    ['hang', dish_texts.answer_timeout(300)],
    ['garbage', dish_texts.malformed('')],
    ['huge', dish_texts.answer_too_large(message_max_bytes)],
    ['cut short', dish_texts.length_wrong],
    ['no status', dish_texts.no_status],
    ['half closed', 'connection'],
    ['reset', dish_texts.connection_failed('')],
    ['not found', dish_texts.not_grpc('404', 'text/html')],
    ['compressed', dish_texts.compressed],
    ['failing', dish_texts.status_refused('out of order')],
    ['unimplemented', dish_texts.status_unknown('unknown method Handle')],
    ['router', dish_texts.not_a_dish],
    ['farewell', 'connection'],
  ];
  it.each(faults)('is down with the reason when its answer is: %s', async (mood, reason) => {
    const dish = await startDish();
    dish.state.mood = mood;
    // Only one that hangs is given up: an answer has time to arrive on a busy machine.
    const { down, up, view } = startLab(dish.port, { timeout_s: mood === 'hang' ? 0.3 : 10 });
    await down();
    expect(view()?.reason).toContain(reason);
    await eventually('the connection is closed', () => dish.connections() === 0);
    dish.state.mood = dishState().mood;
    await up();
  });

  it('is down with the reason when another protocol than HTTP/2 listens there', async () => {
    const sockets = new Set<Socket>();
    const server = createServer((socket) => {
      sockets.add(socket);
      socket.on('error', () => undefined);
      socket.end('SSH-2.0-OpenSSH_9.2\r\n');
    });
    await new Promise<void>((resolve) => {
      server.listen(0, '127.0.0.1', resolve);
    });
    closing.push(async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => {
        server.close(resolve);
      });
    });
    const address = server.address();
    const { down, view } = startLab(typeof address === 'object' ? (address?.port ?? 0) : 0, {
      timeout_s: 0.5,
    });
    await down();
    expect(view()?.reason).toMatch(/^dish of sat0 at 127\.0\.0\.1/u);
  });

  it('is reached through its interface only', async () => {
    const dish = await startDish();
    const right = startLab(dish.port, { link: 'lo', bind: true });
    await right.up();
    const wrong = startLab(dish.port, { link: 'no-such-if', bind: true });
    await wrong.down();
    expect(wrong.view()?.reason).toMatch(/no-such-if/u);
  });

  it('does not delay a stopping daemon', async () => {
    const dish = await startDish();
    dish.state.mood = 'hang';
    const lab = startLab(dish.port, { timeout_s: 60 });
    await eventually('asked', () => dish.asked.size > 0);
    await lab.stop();
    await eventually('the connection is closed', () => dish.connections() === 0);
    await elapse(0);
    expect(lab.view()?.state).toBe('stopped');
  });
});

describe('its settings', () => {
  it('need the name of the link, and an address that needs no name server', () => {
    expect(() => starlink.configure({})).toThrow(/link/u);
    expect(() => starlink.configure({ link: 'eth1', host: 'dishy.example' })).toThrow(/IP address/u);
  });
});
