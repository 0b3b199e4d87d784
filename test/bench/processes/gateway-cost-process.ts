/**
 * One side of the comparison, alone in its process: `family` runs the drivers of the gateway in a hub at their default
 * rates, `systeminformation` asks the library for the same each second. Prints one line of JSON and ends.
 */
import { readFileSync } from 'node:fs';
import { networkInterfaces } from 'node:os';
import { threadCpuUsage } from 'node:process';
import {
  battery,
  currentLoad,
  mem,
  networkInterfaces as interfaces,
  networkStats,
  time,
} from 'systeminformation';
import { drivers } from '../../../drivers/index.ts';
import { every, sleep } from '../../../src/platform/time.ts';
import { startFakeGpsd } from '../../fakes/services/fake-gpsd.ts';
import { hubLab } from '../../support/kit/hub-lab.ts';
import type { GatewayCost } from '../devices/gateway-cost.bench.ts';

const family = ['gateway', 'links', 'location', 'power', 'clients'];
const settle_ms = 5_000;
/** As a receiver does; gpsd is played in this process, so its part is counted too. */
const fix_every_ms = 1_000;
const turn_tick_ms = 5;
const ticks_per_second = 100;

const [side, seconds] = [process.argv[2], Number(process.argv[3])];
const stopping = new AbortController();
const names = side === 'family' ? await startFamily() : startSystemInformation();
await sleep(settle_ms, stopping.signal);
const before_s = processorSeconds();
await sleep(seconds * 1_000, stopping.signal);
const cpu_pct = ((processorSeconds() - before_s) * 100) / seconds;
const cost: GatewayCost = { names, cpu_pct, turn_max_ms: await longestTurn(seconds) };
process.stdout.write(`${JSON.stringify(cost)}\n`, () => process.exit(0));

/** Those of the family that this version has. */
async function startFamily(): Promise<readonly string[]> {
  // A machine without a bridge has a local network too: whatever it is on.
  const lan = Object.keys(networkInterfaces()).find((name) => name !== 'lo') ?? 'lo';
  const gpsd = await startFakeGpsd();
  every(fix_every_ms, stopping.signal, () => {
    const time = new Date().toISOString();
    const fix = { class: 'TPV', device: '/dev/a', mode: 3, time, lat: 59.3293, lon: 18.0686, altHAE: 68.4 };
    gpsd.say(`${JSON.stringify(fix)}\r\n`);
  });
  const options: Readonly<Record<string, object>> = {
    clients: { interfaces: [lan] },
    location: { gpsd: { port: gpsd.port } },
  };
  const present = drivers.filter(({ name }) => family.includes(name));
  const lab = hubLab({ configured: family });
  for (const { name, load } of present) void lab.run(await load(), name, { options: options[name] ?? {} });
  return present.map(({ name }) => name);
}

function startSystemInformation(): readonly string[] {
  every(1_000, stopping.signal, () => {
    const all = [interfaces(), networkStats('*'), currentLoad(), mem(), battery(), Promise.resolve(time())];
    void Promise.allSettled(all);
  });
  return ['systeminformation'];
}

/**
 * The longest turn of the event loop over `for_s`, in processor time of its thread, which other programs do not change. Measured after the
 * cost, since its own timer costs more than some drivers.
 */
async function longestTurn(for_s: number): Promise<number> {
  let [max_ms, last_ms] = [0, threadMs()];
  every(turn_tick_ms, stopping.signal, () => {
    const now_ms = threadMs();
    max_ms = Math.max(max_ms, now_ms - last_ms);
    last_ms = now_ms;
  });
  await sleep(for_s * 1_000, stopping.signal);
  return max_ms;
}

function threadMs(): number {
  const { user, system } = threadCpuUsage();
  return (user + system) / 1_000;
}

/** Of this process and of the children that have ended, which is where the library leaves its work. */
function processorSeconds(): number {
  const stat = readFileSync('/proc/self/stat', 'utf8');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return fields.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks), 0) / ticks_per_second;
}
