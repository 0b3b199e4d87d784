/** Whether the base map can be drawn in this browser. It is not part of the choices: it belongs to the device. */

/** `missing`: without WebGL; the plain map is drawn */
export const base: { state: 'none' | 'ready' | 'missing'; attribution: string; fault: string } = {
  state: 'none',
  attribution: '',
  fault: '',
};
