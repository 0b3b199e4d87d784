import { expect, it } from 'vitest';
import { SameStart } from '../../../../../drivers/mavlink/vehicles/vehicle.ts';
import type { Contact } from '../../../../../drivers/mavlink/vehicles/contact.ts';

function contactOf(booted_at_ms: number, isPresumed: boolean): Contact {
  const about: Partial<Contact> = { boots: 0, booted_at_ms, isPresumed };
  return about as Contact;
}

it.for([
  { who: 'the vehicle', booted_at_ms: 51_000, isPresumed: true, isOver: false },
  { who: 'a vehicle that started later', booted_at_ms: 60_000, isPresumed: true, isOver: true },
  { who: 'a vehicle that started earlier', booted_at_ms: 40_000, isPresumed: true, isOver: true },
  { who: 'a faster link of the vehicle', booted_at_ms: 40_000, isPresumed: false, isOver: false },
])(
  'What was begun before a silence goes on only with the vehicle that began it: $who',
  ({ booted_at_ms, isPresumed, isOver }) => {
    const start = new SameStart([contactOf(50_000, false)], 70_000);
    expect(start.isOver([contactOf(booted_at_ms, isPresumed)])).toBe(isOver);
  },
);
