/** The part of systeminformation that this driver loads; its declarations know the whole only. */
declare module 'systeminformation/lib/system.js' {
  export { system } from 'systeminformation';
}
