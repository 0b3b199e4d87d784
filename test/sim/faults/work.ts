/** Work: bursts, devices that come and go, commands, and operators who look after things. */
import { workOf } from './fault.ts';
import type { Scene } from '../scene.ts';

function aDevice({ devices }: Scene, n: number) {
  const device = devices.list[n % devices.list.length];
  if (!device) throw new RangeError('a story without devices');
  return device;
}

export const work = {
  burst: workOf({
    per_minute: 0.5,
    draw: (rng) => ({ n: Math.round(rng.scale(5, 400)), how: rng.pick(['0', '2', '5', '20']) }),
    apply: ({ kit, devices }, { n, how }) => kit.within(() => devices.burst(n, Number(how))),
  }),
  large: workOf({
    per_minute: 0.2,
    draw: (rng) => ({ n: Math.round(rng.scale(2_000, 300_000)), how: rng.pick(['0', '1']) }),
    apply: ({ kit, devices }, { n, how }) => kit.within(() => devices.burst(2, Number(how), n)),
  }),
  online: workOf({
    per_minute: 2,
    draw: (rng) => ({ n: rng.int(0, 40), how: rng.pick(['on', 'off']) }),
    apply: (scene, { n, how }) =>
      scene.kit.within(() => scene.devices.setOnline(aDevice(scene, n), how === 'on')),
  }),
  there: workOf({
    per_minute: 1,
    draw: (rng) => ({ n: rng.int(0, 40), how: rng.pick(['yes', 'no']) }),
    apply: (scene, { n, how }) =>
      scene.kit.within(() => scene.devices.setThere(aDevice(scene, n), how === 'yes')),
  }),
  command: workOf({
    per_minute: 4,
    draw: (rng) => ({
      ms: Math.round(rng.scale(5, 14_000)),
      n: rng.int(0, 1_000_000),
      how: rng.pick(['move', 'move', 'move', 'probe', 'stop', 'fail']),
    }),
    apply: (scene, { ms, n, how }) => {
      const { service, kit_id, devices, orders } = scene;
      const command = how === 'fail' ? 'move' : how;
      const payload = { n: orders.length + 1, takes_ms: ms, ...(how === 'fail' && { fails: true }) };
      const order = { n: payload.n, command, task_id: undefined as string | undefined };
      orders.push(order);
      const asset_id = devices.idOf(aDevice(scene, n));
      service.command(kit_id, { asset_id, command_name: command, payload }, (task_id) => {
        order.task_id = task_id;
        scene.note('operator', `asked for ${command}`, { n: payload.n, task_id });
      });
    },
  }),
  cancel: workOf({
    per_minute: 0.5,
    draw: (rng) => ({ n: rng.int(0, 1_000_000) }),
    apply: ({ service, orders, kit_id }, { n }) => {
      const order = orders[n % Math.max(1, orders.length)];
      if (order?.task_id) service.cancel(kit_id, order.task_id);
    },
  }),
  reload: workOf({
    per_minute: 0.5,
    draw: (rng) => ({ how: rng.pick(['policy', 'drivers']) }),
    apply: ({ kit }, { how }) => kit.reload(how === 'drivers' ? 'drivers' : 'policy'),
  }),
  look: workOf({
    per_minute: 1,
    draw: () => ({}),
    apply: ({ kit }) =>
      kit.within(({ app }) => {
        void Promise.allSettled([app.local.buffer(), app.local.report()]);
      }),
  }),
  retry: workOf({
    per_minute: 0.5,
    draw: () => ({}),
    apply: ({ kit }) =>
      kit.within(({ app }) => void app.local.retryQuarantined(undefined).catch(() => undefined)),
  }),
} as const;
