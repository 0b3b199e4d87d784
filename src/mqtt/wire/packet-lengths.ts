/**
 * MQTT.js keeps the encoded form of every length below 16,384 that a packet ever had, as a slice of the pool from which Node.js
 * cuts small buffers: each of them keeps a pool of up to 64 KiB in memory. Here all of them are slices of one table. This
 * has to be loaded before the library.
 */
import numbers from 'mqtt-packet/numbers.js';

/** Below these, one and two bytes are enough. */
const one_byte = 128;
const two_bytes = 16_384;
const bytes_max = 4;

const table = Buffer.allocUnsafeSlow(one_byte + 2 * (two_bytes - one_byte));
for (let number = 0; number < two_bytes; number += 1) table.set(encode(number), placeOf(number));

/** A Variable Byte Integer (MQTT 5, section 1.5.5). Empty where the number needs more than four bytes. */
numbers.genBufVariableByteInt = (number) => {
  if (number >= two_bytes) return Buffer.from(encode(number));
  const at = placeOf(number);
  return table.subarray(at, at + (number < one_byte ? 1 : 2));
};

function placeOf(number: number): number {
  return number < one_byte ? number : one_byte + 2 * (number - one_byte);
}

function encode(number: number): readonly number[] {
  const bytes: number[] = [];
  let rest = number;
  do {
    const digit = rest % 128;
    rest = Math.floor(rest / 128);
    bytes.push(rest > 0 ? digit | 128 : digit);
  } while (rest > 0 && bytes.length < bytes_max);
  return rest > 0 ? [] : bytes;
}
