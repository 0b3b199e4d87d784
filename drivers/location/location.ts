/** Reports the kit's position from gpsd, or from the configuration where no receiver has a fix. */
import { noFeeds } from '../../src/contract/feeds.ts';
import { defineDriver, type DriverHost } from '../../src/driver/driver.ts';
import { aborted, every } from '../../src/platform/time.ts';
import { readTpv } from './gpsd-reports.ts';
import { watchGpsd } from './gpsd-session.ts';
import { type LocationOptions, locationOptions } from './options.ts';
import { type ReceiverState, Receivers } from './receivers.ts';
import { texts } from './texts.ts';

/** How often the state of a silent receiver is checked. */
const check_every_ms = 500;

export const location = defineDriver({
  name: 'location',
  feeds: noFeeds,
  options: locationOptions,
  async run({ gpsd, manual }, host) {
    if (manual) reportManual(manual, host);
    if (gpsd) {
      await runGpsd(gpsd, host);
      return;
    }
    // There is no device to connect to: an empty report marks the driver as running.
    host.reportKit({});
    await aborted(host.signal);
  },
});

type LocationHost = DriverHost<typeof noFeeds>;
type GpsdOptions = NonNullable<LocationOptions['gpsd']>;

function reportManual(manual: NonNullable<LocationOptions['manual']>, host: LocationHost): void {
  const { latitude, longitude, altitude_m, pinned } = manual;
  host.reportLocation({
    latitude,
    longitude,
    altitude: altitude_m ?? null,
    source: 'manual',
    age_ms: 0,
    pinned,
  });
}

async function runGpsd(options: GpsdOptions, host: LocationHost): Promise<void> {
  const over = new AbortController();
  const receivers = new Receivers(options.mute_s * 1_000, options.device, performance.now());
  const reportState = createStateReporter(options, host);
  every(check_every_ms, AbortSignal.any([over.signal, host.signal]), () =>
    reportState(receivers.state(performance.now()), receivers),
  );
  try {
    await watchGpsd(options, host.signal, (line) => {
      const now_ms = performance.now();
      const tpv = readTpv(line);
      // Any line shows that gpsd is alive; a position reported earlier in this run stays valid until the next report.
      if (!tpv) host.reportKit({});
      else if (receivers.note(tpv, now_ms)) {
        const best = receivers.best(now_ms);
        host.reportLocation(best ? { ...best.position, source: 'satellite', age_ms: best.age_ms } : null);
        reportState(receivers.state(now_ms), receivers);
      }
    });
  } finally {
    over.abort();
    // What its receivers did is no fact about a gpsd that is lost.
    host.reportStatus({});
  }
}

/** Reports each change of state in status and logs it once. */
function createStateReporter(
  options: GpsdOptions,
  host: LocationHost,
): (state: ReceiverState, all: Receivers) => void {
  let reported: string | undefined;
  return (state, all) => {
    const device = all.best(performance.now())?.device ?? options.device ?? null;
    const now = `${state} ${device}`;
    if (reported === now) return;
    const isSameState = reported?.startsWith(`${state} `) === true;
    reported = now;
    const shown = { receiver: state, ...(device ? { device } : {}) };
    host.reportStatus(state === 'fix' ? shown : { ...shown, reason: texts.states[state] });
    if (isSameState || state === 'waiting') return;
    if (state === 'mute') host.log.warn(shown, texts.states[state]);
    else host.log.info(shown, texts.states[state]);
  };
}
