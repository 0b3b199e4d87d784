/** IPv4 targets over a link of IPv6 alone. */
import { describe, expect, it } from 'vitest';
import { Nat64, untranslated } from '../../../../../drivers/links/probe/nat64.ts';
import { eventually } from '../../../../support/eventually.ts';

const { signal } = new AbortController();
const day_ms = 86_400_000;

/** What name servers answered for the name that has IPv4 addresses alone (RFC 7050), and the prefix in it. */
describe('the prefix of a translating network', () => {
  it.each([
    ['the well-known one', ['64:ff9b::c000:aa'], '64:ff9b::c612:1'],
    ['one of the network', ['2001:db8:64::c000:ab', '2001:db8:64::c000:aa'], '2001:db8:64::c612:1'],
    ['none, as the answer of a portal for every name', ['2001:db8::80'], null],
    ['none without translation', [], null],
  ])('is found in %s', async (_name, answers, expected) => {
    let changes = 0;
    const nat64 = new Nat64(
      () => (changes += 1),
      signal,
      async () => answers,
    );
    expect(nat64.translated('198.18.0.1', 0)).toBeNull();
    await eventually('asked', () => expected === null || changes === 1);
    expect(nat64.translated('198.18.0.1', 1)).toBe(expected);
  });

  it('is asked for again, and forgotten when no name server shows it any more', async () => {
    const answers = [['64:ff9b::c000:aa'], []];
    const nat64 = new Nat64(
      () => undefined,
      signal,
      async () => answers.shift() ?? [],
    );
    nat64.translated('198.18.0.1', 0);
    await eventually('known', () => nat64.translated('198.18.0.1', 1) !== null);
    expect(nat64.translated('198.18.0.1', day_ms)).not.toBeNull();
    await eventually('forgotten', () => nat64.translated('198.18.0.1', day_ms + 1) === null);
  });
});

it.each([
  ['64:ff9b::808:808', '8.8.8.8'],
  ['64:ff9b::a00:1', '10.0.0.1'],
  // The prefix of RFC 8215 is for local use.
  ['64:ff9b:1::808:808', '64:ff9b:1::808:808'],
  ['2001:db8::1', '2001:db8::1'],
  ['192.0.2.1', '192.0.2.1'],
])('%s stands for %s', (address, plain) => {
  expect(untranslated(address)).toBe(plain);
});
