/**
 * The time since the page was opened. `performance.now()` stands still while a phone or a laptop sleeps (w3c/hr-time#115, mdn/content#4713):
 * what is an hour old would be shown as new. The time of day goes on, so what it ran ahead is added.
 */
const slept_min_ms = 3_000;
let time_ms = Date.now();
let ticked_ms = performance.now();

/** How long the device slept, or how far its clock was set forward: what came before is as old as that. */
export let slept_ms = 0;

export function elapsed_ms(): number {
  const [now_ms, tick_ms] = [Date.now(), performance.now()];
  const ahead_ms = now_ms - time_ms - (tick_ms - ticked_ms);
  if (ahead_ms > slept_min_ms) slept_ms += ahead_ms;
  [time_ms, ticked_ms] = [now_ms, tick_ms];
  return tick_ms + slept_ms;
}
