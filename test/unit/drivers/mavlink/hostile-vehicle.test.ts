/** A vehicle whose messages are intact and whose fields have any value: what is published fits its schema, and others are served. */
import { setImmediate as immediately } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { texts as link_texts } from '../../../../drivers/mavlink/links/texts.ts';
import { checksum } from '../../../../drivers/mavlink/wire/checksum.ts';
import { type Definition, definitions } from '../../../../drivers/mavlink/wire/definitions.ts';
import { texts as hub_texts } from '../../../../src/kit/hub/texts.ts';
import { withDrone } from './mavlink-lab.ts';

const rounds = 60;
/** What changes who the vehicle is: last, since the rest of it is ignored after that. */
const identities = new Set(['HEARTBEAT', 'AUTOPILOT_VERSION', 'HIGH_LATENCY2']);
const order = [
  ...definitions.filter(({ name }) => !identities.has(name)),
  ...definitions.filter(({ name }) => identities.has(name)),
];
const vehicles = [
  { autopilot: 'ardupilot', type: 2 },
  { autopilot: 'px4', type: 2 },
  { autopilot: 'ardupilot', type: 1, quadplane: true },
] as const;
/** Bytes that make extreme numbers, and NaN and infinity where four of them make a float. */
const extreme = [0, 0xff, 0x7f, 0x80, 1, 0xc0];

it.each([1, 20_261_125])(
  'A vehicle with any values in its messages breaks no feed, no driver and no other vehicle (seed %i)',
  async (seed) => {
    await withDrone({ airborne: true }, async (lab) => {
      const random = lehmer(seed);
      for (const [index, about] of vehicles.entries()) {
        const sysid = index + 2;
        const key = `mavlink:00000000c0ffee0${sysid}`;
        const drone = await lab.fly({ sysid, uid: key.slice('mavlink:'.length), airborne: true, ...about });
        await lab.sees('gps', ({ relative_alt_m }) => relative_alt_m !== null, key);
        const before = lab.outbox.drafts.length;
        for (const definition of order) {
          for (let round = 0; round < rounds; round += 1) {
            drone.sendRaw(frameOf(definition, { sysid, seq: round, random }));
            await immediately();
          }
        }
        expect(lab.outbox.drafts.length).toBeGreaterThan(before + rounds);
      }
      expect(await lab.command('return_home')).toMatchObject({ acknowledged: true });
      const faults = new Set<string>([hub_texts.feed_invalid, link_texts.frame_failed]);
      expect(lab.log.lines.filter(({ sentence }) => faults.has(sentence))).toEqual([]);
      expect(lab.broken).toEqual([]);
    });
  },
  60_000,
);

/** A frame with any payload and the right checksum. */
function frameOf(
  { id, crc_extra, full_length }: Definition,
  { sysid, seq, random }: { readonly sysid: number; readonly seq: number; readonly random: () => number },
): Uint8Array {
  const frame = new Uint8Array(12 + full_length);
  frame.set([0xfd, full_length, 0, 0, seq & 0xff, sysid, 1, id & 0xff, (id >>> 8) & 0xff, id >>> 16]);
  const isExtreme = random() < 0.5;
  for (let at = 0; at < full_length; at += 1) {
    const any = Math.floor(random() * 256);
    frame[10 + at] = isExtreme ? (extreme[any % extreme.length] ?? 0) : any;
  }
  const crc = checksum(frame, 1, 10 + full_length, crc_extra);
  frame.set([crc & 0xff, crc >>> 8], 10 + full_length);
  return frame;
}

function lehmer(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 48_271) % 2_147_483_647;
    return state / 2_147_483_647;
  };
}
