/** HTTP digest against the examples of the specification. */
import { expect, it } from 'vitest';
import { digestLogin } from '../../../../../drivers/onvif/soap/digest-login.ts';

const nonce = '7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v';
const cnonce = 'f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ';
const request = {
  method: 'GET',
  path: '/dir/index.html',
  body: '',
  username: 'Mufasa',
  password: 'Circle of Life',
  count: 1,
  cnonce,
};
const challenge = (algorithm: string): string =>
  `Digest realm="http-auth@example.org", qop="auth, auth-int", algorithm=${algorithm}, nonce="${nonce}", opaque="FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS"`;

it('answers the example of RFC 7616, and the stronger of two challenges', () => {
  const md5 = digestLogin([challenge('MD5')], request);
  const sha = digestLogin([challenge('MD5'), challenge('SHA-256')], request);
  expect(md5).toContain('response="8ca523f5e9506fed4657c9700eebdbec"');
  expect(sha).toContain('response="753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1"');
  expect(sha).toContain('opaque="FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS"');
});

it('meets no challenge without a nonce, of an unknown algorithm or of an unknown quality', () => {
  const none = ['Digest realm="a"', challenge('token'), 'Digest realm="a", nonce="1", qop="auth-conf"'];
  expect(digestLogin(none, request)).toBeUndefined();
});

it('escapes the user name where it is shown, and hashes it as it is', () => {
  const login = digestLogin(['Digest realm="a", nonce="1"'], { ...request, username: 'a"b' });
  expect(login).toContain(String.raw`username="a\"b"`);
});
