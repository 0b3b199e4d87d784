/** A refusal as the outcome: known when the older message was not sent, and unknown when it may be to an earlier command. */
import { expect, it } from 'vitest';
import {
  armOrder,
  gotoOrder,
  modeOrder,
  speedOrder,
} from '../../../../../drivers/mavlink/commands/orders.ts';
import { texts } from '../../../../../drivers/mavlink/commands/texts.ts';
import { modeNumbers } from '../../../../../drivers/mavlink/vehicles/modes.ts';
import { situationOf } from '../../../../../drivers/mavlink/vehicles/situation.ts';
import { contactOver, fakeLink, read, vehicleOver } from '../links/fake-link.ts';

const guided = 4;
const unsupported = 3;
const older = new Set(['SET_MODE', 'SET_POSITION_TARGET_GLOBAL_INT']);
const near = { lat: 47.4, lon: 8.5, alt_m: 30 };
const to_kit = { progress: 0, result_param2: 0, target_system: 245, target_component: 191 };

/** A copter of ArduPilot in GUIDED that answers each command alike, as not supported unless told otherwise, on a link that accepts no older messages. */
function oldCopter(result = unsupported) {
  const refused: string[] = [];
  const rivals: number[] = [];
  const link = fakeLink({
    send(bytes) {
      let is_accepted = true;
      read(bytes, ({ name, fields }) => {
        is_accepted = !older.has(name);
        if (!is_accepted) refused.push(name);
        if (name !== 'COMMAND_INT' && name !== 'COMMAND_LONG') return;
        const ack = { command: fields.command, result, ...to_kit };
        queueMicrotask(() => receive({ name: 'COMMAND_ACK', fields: ack }));
      });
      return is_accepted;
    },
  });
  const seen = (_place: unknown, at_ms: number): void => void rivals.push(at_ms);
  const contact = contactOver(link, { rivals: { isAt: () => false, seen } });
  const { run, receive } = vehicleOver([contact]);
  const beat = { custom_mode: guided, type: 2, autopilot: 3, base_mode: 129, system_status: 4 };
  receive({ name: 'HEARTBEAT', fields: { ...beat, mavlink_version: 3 } });
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
  contact.receive({ name: 'COMMAND_ACK', fields: { command: 300, result: 0, ...to_kit } }, long_after_ms);
  expect(rivals).toEqual([long_after_ms]);
});
