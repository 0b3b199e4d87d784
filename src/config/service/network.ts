/** Networks in the configuration of the service. */
import { isIP } from 'node:net';

/** Whether the text is a network such as `10.20.0.0/16` or `fd00:1::/64`, with at least so many bits of its address given. */
export function isNetwork(text: string, bits_min = 0): boolean {
  const [address = '', bits = '', ...more] = text.split('/');
  const family = isIP(address);
  if (family === 0 || more.length > 0 || !/^\d{1,3}$/u.test(bits)) return false;
  return Number(bits) >= bits_min && Number(bits) <= (family === 6 ? 128 : 32);
}
