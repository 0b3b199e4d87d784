/** Findings about the configured devices of a driver and about assets that are offline. Pure. */
import { texts as vendorcamTexts } from '../../../drivers/vendorcam/texts.ts';
import type { StatusReport } from '../../local/api.ts';
import { type Finding, fail, ok, plain, warn } from './finding.ts';
import { texts } from './texts.ts';
import { localTime } from '../../platform/local-time.ts';

type DriverReport = StatusReport['drivers'][number];
type DeviceReport = NonNullable<DriverReport['devices']>[number];
type AssetReport = StatusReport['assets'][number];

/** For each device that is not served now what was tried, its answer, and the next attempt; and each weakness with its remedy. */
export function deviceFindings({ name, devices = [], next_try_at = null }: DriverReport): readonly Finding[] {
  const unserved = devices
    .filter(({ state, reason }) => (state === 'offline' || state === 'rejected') && reason !== null)
    .map((device) => deviceFinding(name, device, next_try_at));
  return [...unserved, ...devices.flatMap((device) => weaknessFinding(name, device))];
}

/** By which the kit is degraded although the device is configured so. */
function weaknessFinding(driver: string, { name, weakness }: DeviceReport): readonly Finding[] {
  if (weakness === undefined) return [];
  const [fault, remedy] = halves(plain(weakness));
  return [warn(`device ${plain(name)} of ${driver}`, fault, remedy ?? texts.correct_device)];
}

/** `driver_next`: next attempt of a driver whose devices all reject the connector. */
function deviceFinding(driver: string, device: DeviceReport, driver_next: string | null): Finding {
  const { name, tried, state, reason, tried_at, next_try_at } = device;
  const what = `device ${plain(name)} of ${driver}`;
  const at = tried_at === null ? '' : texts.tried_at(localTime(tried_at));
  const [answer, remedy] = halves(plain(reason ?? ''));
  const next = next_try_at === null ? [] : [texts.next_attempt(localTime(driver_next ?? next_try_at))];
  if (state === 'rejected') {
    const cure = [remedy ?? texts.correct_device, texts.reload_tries_now, ...next];
    return fail(what, texts.device_rejected(plain(tried), at, answer), cure.join('; '));
  }
  const cure = [remedy ?? texts.check_address, ...next];
  return warn(what, texts.device_not_served(plain(tried), at, answer), cure.join('; '));
}

/** Assets that are offline; assets of a device that has its own finding are left out. */
export function assetFindings({ assets, drivers }: StatusReport): readonly Finding[] {
  const explained = new Set(
    drivers
      .flatMap(({ devices = [] }) => devices)
      .filter(({ state }) => state === 'offline' || state === 'rejected')
      .map(({ asset_key }) => asset_key),
  );
  return assets.filter(({ status, key }) => status === 'offline' && !explained.has(key)).map(assetFinding);
}

function assetFinding({ name, key, type, reason, last_seen_at }: AssetReport): Finding {
  const what = `${type} ${plain(name)} (${key})`;
  const seen = last_seen_at === null ? '' : texts.last_seen(localTime(last_seen_at));
  const finding = `${texts.offline(plain(reason ?? texts.no_data_received))}${seen}`;
  // A battery camera sleeps most of the time.
  if (reason === vendorcamTexts.asleep) return ok(what, finding);
  return warn(what, finding, type === 'drone' ? texts.check_radio : texts.check_cable);
}

/** Splits a sentence of the connector into the fault and, after the last semicolon, the remedy. */
export function halves(sentence: string): [fault: string, remedy?: string] {
  const at = sentence.lastIndexOf('; ');
  return at < 0 ? [sentence] : [sentence.slice(0, at), sentence.slice(at + 2)];
}
