/** The links of one command: what is tried over each until its time is over, and what is left on none. */
import { KnownMetadata } from '../../../../../drivers/mavlink/reports/metadata-fetch.ts';
import { expect, it } from 'vitest';
import { carryOut } from '../../../../../drivers/mavlink/commands/exchange.ts';
import { armOrder, returnOrder } from '../../../../../drivers/mavlink/commands/orders.ts';
import { texts } from '../../../../../drivers/mavlink/commands/texts.ts';
import type { Link } from '../../../../../drivers/mavlink/links/link.ts';
import { LinkTally } from '../../../../../drivers/mavlink/links/link-tally.ts';
import { Outgoing } from '../../../../../drivers/mavlink/links/outgoing.ts';
import { Contact } from '../../../../../drivers/mavlink/vehicles/contact.ts';
import { parseDatagram } from '../../../../../drivers/mavlink/wire/framer.ts';
import { decode } from '../../../../../drivers/mavlink/wire/messages.ts';
import { Changes } from '../../../../../drivers/mavlink/vehicles/addressee.ts';

const rtl = 6;
const beat = { custom_mode: 4, type: 2, autopilot: 3, base_mode: 129, system_status: 4, mavlink_version: 3 };

/** An ArduCopter that returns home when it is told so; each link to it accepts the attempts of these numbers only. */
const copter = { autopilot: 'ardupilot', kind: 'copter', armed: true, mode: 'GUIDED' } as const;

function copterOver(links: readonly { readonly accepts: (attempt: number) => boolean }[]) {
  const changes = new Changes();
  const confirmations: number[][] = links.map(() => []);
  const discards: number[] = links.map(() => 0);
  const contacts = links.map(({ accepts }, index) => {
    let attempts = 0;
    const link: Link = {
      name: `link ${index}`,
      high_latency: false,
      hasRoom: () => true,
      isNamed: () => false,
      discard: () => {
        discards[index] = (discards[index] ?? 0) + 1;
      },
      stats: () => new LinkTally().stats(),
      ended: Promise.resolve(),
      send(bytes) {
        attempts += 1;
        if (!accepts(attempts)) return false;
        parseDatagram(bytes, {
          tally: new LinkTally(),
          frame: (frame) => {
            const message = decode(frame);
            if (message?.name !== 'COMMAND_LONG') return;
            confirmations[index]?.push(message.fields.confirmation);
            queueMicrotask(() => {
              const fields = { ...beat, custom_mode: rtl };
              contacts[index]?.receive({ name: 'HEARTBEAT', fields }, performance.now());
              changes.notify();
            });
          },
        });
        return true;
      },
    };
    return new Contact({
      link,
      peer: 'copter',
      sysid: 1,
      compid: 1,
      out: new Outgoing({ sysid: 245, compid: 191, passive: false, signing: undefined }),
      rates: { position_hz: 2, attitude_hz: 4, status_hz: 1 },
      passive: false,
      isNamed: false,
      now_ms: performance.now(),
      rival: { isPresent: () => false, seen: () => undefined },
      onText: () => undefined,
      onEvent: () => undefined,
      metadata: new KnownMetadata(),
      onMetadataFault: () => undefined,
    });
  });
  const [contact] = contacts;
  if (!contact) throw new Error('it has a link');
  for (const each of contacts) each.receive({ name: 'HEARTBEAT', fields: beat }, performance.now());
  const to = {
    name: 'Falcon',
    contact,
    contacts,
    changes,
    watchStart: () => () => false,
    conflict: () => undefined,
  };
  const run = async (order = returnOrder(copter), within_ms = 10_000) => {
    const due_ms = performance.now() + within_ms;
    return carryOut(to, order, {
      signal: new AbortController().signal,
      progress: () => undefined,
      remaining_ms: () => Math.max(0, due_ms - performance.now()),
    });
  };
  return { run, confirmations, discards };
}

it('A command that makes a vehicle safer is tried until a link accepts it, with a rising confirmation', async () => {
  const { run, confirmations } = copterOver([{ accepts: (attempt) => attempt > 4 }]);
  expect(await run()).toEqual({ acknowledged: false });
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
  await run();
  expect(confirmations).toEqual([[0], [0], []]);
  expect(discards).toEqual([1, 1, 0]);
});
