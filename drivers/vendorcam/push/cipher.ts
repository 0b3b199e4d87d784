/** Hashes and ciphers of the vendor's own protocol. Their constants are published: security depends on the password alone. */
import { createCipheriv, createDecipheriv, createHash } from 'node:crypto';
import type { Frame } from './wire.ts';

const xor_key = Buffer.from('1f2d3c4b5a6978ff', 'hex');
const aes_iv = Buffer.from('0123456789abcdef');
const hash_chars = 31;
const aes_key_chars = 16;
const xml_begin = Buffer.from('<?xml');

/** Hash of a user name or password with the nonce of the device. */
export function hashOf(text: string): string {
  return createHash('md5').update(text).digest('hex').toUpperCase().slice(0, hash_chars);
}

/** Key under which a device encrypts what it sends after the login. */
export function aesKey(nonce: string, password: string): Buffer {
  return Buffer.from(hashOf(`${nonce}-${password}`).slice(0, aes_key_chars));
}

/** The cipher of the login; it is its own inverse. `id`: of the frame. */
export function xor(bytes: Buffer, id: number): Buffer {
  const offset = id & 0xff;
  return Buffer.from(
    bytes.map((byte, index) => byte ^ offset ^ (xor_key[(offset + index) % xor_key.length] ?? 0)),
  );
}

export function aesEncrypt(bytes: Buffer, key: Buffer): Buffer {
  const cipher = createCipheriv('aes-128-cfb', key, aes_iv);
  return Buffer.concat([cipher.update(bytes), cipher.final()]);
}

export function aesDecrypt(bytes: Buffer, key: Buffer): Buffer {
  const decipher = createDecipheriv('aes-128-cfb', key, aes_iv);
  return Buffer.concat([decipher.update(bytes), decipher.final()]);
}

/**
 * The XML in a frame; undefined when there is none. Firmware differs in what it encrypts and how, so the ciphers are tried
 * on the first bytes, the usual one first.
 */
export function textIn({ payload, id }: Frame, key: Buffer | undefined): string | undefined {
  const ways = [
    ...(key === undefined ? [] : [(bytes: Buffer) => aesDecrypt(bytes, key)]),
    (bytes: Buffer) => xor(bytes, id),
    (bytes: Buffer) => bytes,
  ];
  const begin = payload.subarray(0, xml_begin.length);
  const way = ways.find((read) => read(begin).equals(xml_begin));
  return way?.(payload).toString('utf8');
}
