/** What was thrown, in words. */
import { readFile } from 'node:fs/promises';
import { expect, it, test } from 'vitest';
import { DeviceUnreachable, systemReason } from '../../src/platform/errors.ts';

function coded(code: string): Error {
  return Object.assign(new Error(`connect ${code} 10.0.0.7:554`), { code });
}

test.each([
  ['EACCES', 'permission denied'],
  ['ENOENT', 'no such file or directory'],
  ['ECONNREFUSED', 'connection refused'],
  ['EISDIR', 'is a directory'],
  ['EHOSTUNREACH', 'no route to host'],
  ['ENOTFOUND', 'name or service not known'],
])('%s is named in the standard words: %s', (code, words) => {
  expect(systemReason(coded(code))).toBe(words);
});

it('is the message of what no system has thrown', () => {
  expect(systemReason(new DeviceUnreachable('no answer'))).toBe('no answer');
  expect(systemReason(coded('ERR_TLS_HANDSHAKE_TIMEOUT'))).toBe(
    'connect ERR_TLS_HANDSHAKE_TIMEOUT 10.0.0.7:554',
  );
  expect(systemReason('text')).toBe('text');
});

it('leaves the call and the path to the sentence around it', async () => {
  const error: unknown = await readFile('/nowhere/file').catch((thrown: unknown) => thrown);
  expect(systemReason(error)).toBe('no such file or directory');
});
