/** Which vehicle sends from an address, by the hardware ids that it reports. */
import { expect, it } from 'vitest';
import { Hardware } from '../../../../../drivers/mavlink/reports/hardware.ts';
import { autopilotVersion } from '../../../../../drivers/mavlink/sim/telemetry.ts';

const none = '0000000000000000';
const [a, b] = ['00000000c0ffee01', '00000000c0ffee02'];
const long = (byte: number): string =>
  Buffer.from(Array.from({ length: 18 }, (_, at) => (at < 12 ? byte : 0))).toString('hex');
const uid2Of = (byte: number | undefined): number[] =>
  byte === undefined ? [] : [...Buffer.from(long(byte), 'hex')];

interface Answer {
  readonly uid?: string;
  /** Each byte of the longer id. */
  readonly uid2?: number;
  readonly in?: 1 | 2;
  readonly boots?: number;
}

it.each<{ what: string; answers: readonly Answer[]; names: readonly string[]; isTwofold?: true }>([
  { what: 'one id', answers: [{}, {}, {}], names: [a] },
  // PX4: the shorter id in MAVLink 1, both in MAVLink 2.
  {
    what: 'a longer id after the change to MAVLink 2',
    answers: [{ in: 1 }, { uid2: 7 }, { uid2: 7 }],
    names: [long(7), a],
  },
  {
    what: 'MAVLink 1 and 2 by turns',
    answers: [{ in: 1 }, { uid2: 7 }, { in: 1 }, { uid2: 7 }],
    names: [long(7), a],
  },
  // ArduPilot up to 4.1 (ArduPilot#19502).
  {
    what: 'no id in MAVLink 1',
    answers: [
      { uid: none, in: 1 },
      { uid: none, uid2: 7 },
    ],
    names: [long(7)],
  },
  { what: 'a second name, once', answers: [{}, { uid: b }, { uid: b }], names: [a, b] },
  { what: 'two ids by turns', answers: [{}, { uid: b }, {}], names: [a, b], isTwofold: true },
  // PX4-Autopilot#13882, MAVSDK#411: boards of one make that have one uid.
  {
    what: 'one uid and two longer ids by turns',
    answers: [{ uid2: 7 }, { uid2: 8 }, { uid2: 7 }],
    names: [long(7), a, long(8)],
    isTwofold: true,
  },
  {
    what: 'another id after a restart',
    answers: [{}, { uid: b, boots: 1 }, { uid: b, boots: 1 }],
    names: [b],
  },
  {
    what: 'another id after a restart that was none',
    answers: [{}, { uid: b, boots: 1 }, { boots: 1 }, { uid: b, boots: 1 }],
    names: [a, b],
    isTwofold: true,
  },
])('An address with $what', ({ answers, names, isTwofold = false }) => {
  const hardware = new Hardware();
  for (const [at, { uid = a, uid2, in: version = 2, boots = 0 }] of answers.entries()) {
    const fields = { ...autopilotVersion(uid ?? none), uid2: version === 1 ? [] : uid2Of(uid2) };
    hardware.receive(fields, { in: version, boots, now_ms: 30_000 * at });
  }
  expect([hardware.names, hardware.twofold_ms > 0]).toEqual([names, isTwofold]);
});
