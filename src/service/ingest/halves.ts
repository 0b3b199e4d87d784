/** Splits messages that could not be stored together, until the faulty one is isolated. */
import type { Reception } from './read-message.ts';

/** `some` holds more than one. */
export function halves<T>(some: readonly T[]): readonly (readonly T[])[] {
  const middle = Math.ceil(some.length / 2);
  return [some.slice(0, middle), some.slice(middle)];
}

/** Two parts that have no kit in common; `some` is of more than one kit. */
export function halvesByKit<T extends { readonly reception: Reception }>(
  some: readonly T[],
): readonly (readonly T[])[] {
  const kits = [...new Set(some.map(({ reception }) => reception.kit_id))];
  const [, second] = halves(kits);
  const isSecond = new Set(second);
  return [
    some.filter(({ reception }) => !isSecond.has(reception.kit_id)),
    some.filter(({ reception }) => isSecond.has(reception.kit_id)),
  ];
}

/** Two receptions of the same messages; what else was received stays with the first. */
export function halvesOf(reception: Reception): readonly Reception[] {
  const [first = [], second = []] = halves(reception.messages);
  return [
    { ...reception, packed: undefined, messages: first },
    { ...reception, packed: undefined, messages: second, cleared: [], faults: [] },
  ];
}

/** The same without the content of its messages: they count as received and as refused. */
export function refused(reception: Reception, reason: string): Reception {
  return {
    ...reception,
    packed: undefined,
    cleared: [],
    messages: reception.messages.map((message) => ({ ...message, data: null, refused: reason })),
  };
}
