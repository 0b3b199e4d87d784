import fc from 'fast-check';

/** Holds for any values of these. */
export function forAll<Values extends [unknown, ...unknown[]]>(
  ...about: [
    ...values: { [At in keyof Values]: fc.Arbitrary<Values[At]> },
    holds: (...values: Values) => boolean | void,
  ]
): void {
  fc.assert(fc.property(...about));
}
