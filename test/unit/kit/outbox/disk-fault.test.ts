import { expect, it } from 'vitest';
import { refusalOf } from '../../../../src/kit/outbox/disk-fault.ts';
import { texts } from '../../../../src/kit/outbox/texts.ts';

// microsoft/azure-pipelines-agent#2738, containers on Fedora: rights that are in order, and a label that is not.
it.each([
  ['of another user', { uid: 0, mode: 0o40_755 }, texts.not_the_owner('/state', 10_001)],
  ['without the right to write', { uid: 10_001, mode: 0o40_555 }, texts.not_the_owner('/state', 10_001)],
  ['below one that is refused', undefined, texts.not_the_owner('/state', 10_001)],
  ['of its own with all rights', { uid: 10_001, mode: 0o40_750 }, texts.forbidden_by_policy('/state')],
])('a folder %s that is refused has the remedy that helps', (_, stat, remedy) => {
  expect(refusalOf('/state', 10_001, stat)).toBe(remedy);
});
