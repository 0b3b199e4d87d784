/** The kit's position: from gpsd, and from the configuration where no receiver knows. */
import { noFeeds } from '../../src/contract/feeds.ts';
import { defineDriver, type DriverHost } from '../../src/driver/driver.ts';
import { aborted, every } from '../../src/platform/time.ts';
import { readTpv } from './gpsd-reports.ts';
import { watchGpsd } from './gpsd-session.ts';
import { type LocationOptions, locationOptions } from './options.ts';
import { type ReceiverState, Receivers } from './receivers.ts';

/** How often a silent receiver is looked at. */
const look_every_ms = 500;

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
    // There is no device to wait for: an empty report says that the driver does its work.
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
  const tell = createTeller(options, host);
  every(look_every_ms, AbortSignal.any([over.signal, host.signal]), () =>
    tell(receivers.state(performance.now()), receivers),
  );
  try {
    await watchGpsd(options, host.signal, (line) => {
      const now_ms = performance.now();
      const tpv = readTpv(line);
      // Any line shows that gpsd is there; a position that was reported earlier in this run stays until there is news.
      if (!tpv) host.reportKit({});
      else if (receivers.note(tpv, now_ms)) {
        const best = receivers.best(now_ms);
        host.reportLocation(best ? { ...best.position, source: 'satellite', age_ms: best.age_ms } : null);
        tell(receivers.state(now_ms), receivers);
      }
    });
  } finally {
    over.abort();
  }
}

/** Shows every change of state in status, and logs it once each way. */
function createTeller(
  options: GpsdOptions,
  host: LocationHost,
): (state: ReceiverState, all: Receivers) => void {
  let told: string | undefined;
  const sentences: Readonly<Record<ReceiverState, string>> = {
    fix: 'the receiver has a position',
    'no fix': 'the receiver has no position; it needs a view of the sky',
    mute: 'the receiver is mute; check its cable and what gpsd says of its device',
    waiting: 'waiting for the receiver',
  };
  return (state, all) => {
    const device = all.best(performance.now())?.device ?? options.device ?? null;
    const now = `${state} ${device}`;
    if (told === now) return;
    const isSameState = told?.startsWith(`${state} `) === true;
    told = now;
    const shown = { receiver: state, ...(device ? { device } : {}) };
    host.reportStatus(state === 'fix' ? shown : { ...shown, reason: sentences[state] });
    if (isSameState || state === 'waiting') return;
    if (state === 'mute') host.log.warn(shown, sentences[state]);
    else host.log.info(shown, sentences[state]);
  };
}
