/**
 * MQTT.js keeps the encoded form of every length below 16,384 that a packet ever had, as a slice of the pool from which Node.js
 * cuts small buffers: each of them holds on to a pool of up to 64 KiB for ever. Here they get memory of their own. This has to
 * be loaded before the library.
 */
import numbers from 'mqtt-packet/numbers.js';

const digits_max = 4;

/** A Variable Byte Integer (MQTT 5, section 1.5.5). Empty where the number needs more than four bytes. */
numbers.genBufVariableByteInt = (number) => {
  const bytes: number[] = [];
  let rest = number;
  do {
    const digit = rest % 128;
    rest = Math.floor(rest / 128);
    bytes.push(rest > 0 ? digit | 128 : digit);
  } while (rest > 0 && bytes.length < digits_max);
  const buffer = Buffer.allocUnsafeSlow(rest > 0 ? 0 : bytes.length);
  buffer.set(bytes.slice(0, buffer.length));
  return buffer;
};
