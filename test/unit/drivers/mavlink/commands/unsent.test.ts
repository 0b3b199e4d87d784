/** A refusal as the outcome: known when the older message was not sent, and unknown when it may be to an earlier command. */
import { KnownMetadata } from '../../../../../drivers/mavlink/reports/metadata-fetch.ts';
import { expect, it } from 'vitest';
import { carryOut } from '../../../../../drivers/mavlink/commands/exchange.ts';
import {
  armOrder,
  gotoOrder,
  modeOrder,
  speedOrder,
} from '../../../../../drivers/mavlink/commands/orders.ts';
import { texts } from '../../../../../drivers/mavlink/commands/texts.ts';
import type { Link } from '../../../../../drivers/mavlink/links/link.ts';
import { LinkTally } from '../../../../../drivers/mavlink/links/link-tally.ts';
import { Outgoing } from '../../../../../drivers/mavlink/links/outgoing.ts';
import { Contact } from '../../../../../drivers/mavlink/vehicles/contact.ts';
import { modeNumbers } from '../../../../../drivers/mavlink/vehicles/modes.ts';
import { situationOf } from '../../../../../drivers/mavlink/vehicles/situation.ts';
import { parseDatagram } from '../../../../../drivers/mavlink/wire/framer.ts';
import { decode } from '../../../../../drivers/mavlink/wire/messages.ts';
import { Changes } from '../../../../../drivers/mavlink/vehicles/addressee.ts';
import type { Order } from '../../../../../drivers/mavlink/commands/ways.ts';

const guided = 4;
const unsupported = 3;
const older = new Set(['SET_MODE', 'SET_POSITION_TARGET_GLOBAL_INT']);
const near = { lat: 47.4, lon: 8.5, alt_m: 30 };

/** A copter of ArduPilot in GUIDED that answers each command alike, as not supported unless told otherwise, on a link that accepts no older messages. */
function oldCopter(result = unsupported) {
  const changes = new Changes();
  const refused: string[] = [];
  const rivals: number[] = [];
  const receive = (message: Parameters<Contact['receive']>[0]): void => {
    contact.receive(message, performance.now());
    changes.notify();
  };
  const link: Link = {
    name: 'field',
    high_latency: false,
    hasRoom: () => true,
    isNamed: () => false,
    discard: () => undefined,
    stats: () => new LinkTally().stats(),
    ended: Promise.resolve(),
    send(bytes) {
      let is_accepted = true;
      parseDatagram(bytes, {
        tally: new LinkTally(),
        frame: (frame) => {
          const message = decode(frame);
          if (!message) return;
          is_accepted = !older.has(message.name);
          if (!is_accepted) refused.push(message.name);
          if (message.name !== 'COMMAND_INT' && message.name !== 'COMMAND_LONG') return;
          const { command } = message.fields;
          const to = { progress: 0, result_param2: 0, target_system: 245, target_component: 191 };
          const ack = { command, result, ...to };
          queueMicrotask(() => receive({ name: 'COMMAND_ACK', fields: ack }));
        },
      });
      return is_accepted;
    },
  };
  const contact = new Contact({
    link,
    peer: 'copter',
    sysid: 1,
    compid: 1,
    out: new Outgoing({ sysid: 245, compid: 191, passive: false, signing: undefined }),
    rates: { position_hz: 2, attitude_hz: 4, status_hz: 1 },
    passive: false,
    isNamed: false,
    now_ms: performance.now(),
    rival: { isPresent: () => false, seen: (at_ms) => rivals.push(at_ms) },
    onText: () => undefined,
    onEvent: () => undefined,
    metadata: new KnownMetadata(),
    onMetadataFault: () => undefined,
  });
  const beat = { custom_mode: guided, type: 2, autopilot: 3, base_mode: 129, system_status: 4 };
  receive({ name: 'HEARTBEAT', fields: { ...beat, mavlink_version: 3 } });
  const to = {
    name: 'Falcon',
    contact,
    contacts: [contact],
    changes,
    watchStart: () => () => false,
    conflict: () => undefined,
  };
  const run = async (order: Order) =>
    carryOut(to, order, {
      signal: new AbortController().signal,
      progress: () => undefined,
      remaining_ms: () => 10_000,
    });
  return { contact, refused, rivals, run };
}

it.each(['set_mode', 'goto_waypoint'] as const)(
  '%s fails with the refusal of the vehicle, and its outcome is known',
  async (name) => {
    const { contact, refused, run } = oldCopter();
    const situation = situationOf(contact, performance.now());
    const numbers = modeNumbers('ardupilot', 'copter', 'LOITER');
    if (!numbers) throw new Error('copters have this mode');
    const order =
      name === 'set_mode'
        ? modeOrder('LOITER', numbers, situation)
        : gotoOrder(near, { amsl_m: 518, above_home_m: 30 }, situation);
    const failure = run(order);
    await expect(failure).rejects.toThrow(texts.fallback_unsent);
    await expect(failure).rejects.not.toThrow(/outcome unknown/u);
    expect(refused).toHaveLength(1);
  },
);

it.each([
  { name: 'arm', command: 400, result: unsupported, says: /refused arm \(UNSUPPORTED\)/u },
  { name: 'set_speed', command: 178, result: 0, says: /accepted set_speed/u },
])(
  '$name has an unknown outcome by an answer that may be the late one to an earlier $name',
  async (about) => {
    const { name, command, result, says } = about;
    const { contact, run } = oldCopter(result);
    contact.unanswered.sent(command, performance.now() - 5_000);
    const order = name === 'arm' ? armOrder() : speedOrder(5, situationOf(contact, performance.now()));
    const failure = run(order);
    await expect(failure).rejects.toThrow(says);
    await expect(failure).rejects.toThrow(/may be the late answer to an earlier command; outcome unknown$/u);
  },
);

it('An answer to a command that the kit has not sent shows another station with its ids, an answer to its own does not', async () => {
  const { contact, rivals, run } = oldCopter();
  await expect(run(armOrder())).rejects.toThrow(/refused arm/u);
  expect(rivals).toEqual([]);
  const long_after_ms = performance.now() + 300_000;
  const to = { progress: 0, result_param2: 0, target_system: 245, target_component: 191 };
  contact.receive({ name: 'COMMAND_ACK', fields: { command: 300, result: 0, ...to } }, long_after_ms);
  expect(rivals).toEqual([long_after_ms]);
});
