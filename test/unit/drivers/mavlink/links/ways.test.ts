/** The links of one command: what is tried over each until its time is over, and what is left on none. */
import { expect, it } from 'vitest';
import { armOrder, returnOrder } from '../../../../../drivers/mavlink/commands/orders.ts';
import { texts } from '../../../../../drivers/mavlink/commands/texts.ts';
import { contactOver, fakeLink, read, vehicleOver } from './fake-link.ts';

const rtl = 6;
const beat = { custom_mode: 4, type: 2, autopilot: 3, base_mode: 129, system_status: 4, mavlink_version: 3 };

/** An ArduCopter that returns home when it is told so; each link to it accepts the attempts of these numbers only. */
const copter = { autopilot: 'ardupilot', kind: 'copter', armed: true, mode: 'GUIDED' } as const;

function copterOver(links: readonly { readonly accepts: (attempt: number) => boolean }[]) {
  const confirmations: number[][] = links.map(() => []);
  const discards: number[] = links.map(() => 0);
  const contacts = links.map(({ accepts }, index) => {
    let attempts = 0;
    const link = fakeLink({
      name: `link ${index}`,
      discard: () => {
        discards[index] = (discards[index] ?? 0) + 1;
      },
      send(bytes) {
        attempts += 1;
        if (!accepts(attempts)) return false;
        read(bytes, ({ name, fields }) => {
          if (name !== 'COMMAND_LONG') return;
          confirmations[index]?.push(fields.confirmation);
          const shown = { name: 'HEARTBEAT', fields: { ...beat, custom_mode: rtl } } as const;
          queueMicrotask(() => receive(shown, contacts[index]));
        });
        return true;
      },
    });
    return contactOver(link);
  });
  const { run, receive } = vehicleOver(contacts);
  for (const each of contacts) receive({ name: 'HEARTBEAT', fields: beat }, each);
  return { run, confirmations, discards };
}

it('A command that makes a vehicle safer is tried until a link accepts it, with a rising confirmation', async () => {
  const { run, confirmations } = copterOver([{ accepts: (attempt) => attempt > 4 }]);
  expect(await run(returnOrder(copter))).toEqual({ acknowledged: false });
  expect(confirmations).toEqual([[4]]);
});

it('A command that no link accepted in its time was not sent, which is known', async () => {
  const { run } = copterOver([{ accepts: () => false }]);
  await expect(run(returnOrder(copter), 2_000)).rejects.toThrow(texts.not_sent(texts.link_stalled('Falcon')));
});

it('Any other command goes over the first link that accepts it, and is refused at once where none does', async () => {
  const { run, confirmations } = copterOver([{ accepts: () => false }, { accepts: () => true }]);
  await expect(run(armOrder())).rejects.toThrow(/outcome unknown$/u);
  expect(confirmations[0]).toEqual([]);
  expect(confirmations[1]?.slice(0, 1)).toEqual([0]);
  const none = copterOver([{ accepts: () => false }, { accepts: () => false }]);
  await expect(none.run(armOrder())).rejects.toThrow(texts.not_sent(texts.link_stalled('Falcon')));
});

it('What has not left this machine when a command ends is discarded on each link that it was sent over', async () => {
  const { run, confirmations, discards } = copterOver([
    { accepts: () => true },
    { accepts: () => true },
    { accepts: () => false },
  ]);
  await run(returnOrder(copter));
  expect(confirmations).toEqual([[0], [0], []]);
  expect(discards).toEqual([1, 1, 0]);
});
