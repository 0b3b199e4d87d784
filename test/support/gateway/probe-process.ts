/** Runs one prober with the rights and in the namespace it was started with, until it knows its link. Arguments: device, target. */
import { startProber } from '../../../drivers/links/probe/prober.ts';
import { deviceIndex } from '../../../src/platform/linux/bound-fd.ts';
import { every, sleep } from '../../../src/platform/time.ts';
import { recordingLog } from '../recording-log.ts';

const patience_ms = 5_000;

const [, , device = '', ip = ''] = process.argv;
const stopping = new AbortController();
const log = recordingLog();
const prober = startProber({
  device,
  ifindex: (await deviceIndex(device)) ?? 0,
  targets: () => [{ ip, port: 443 }],
  interval_ms: 50,
  timeout_ms: 500,
  tcp: true,
  signal: stopping.signal,
  log,
  onChange: () => undefined,
});
const known = new AbortController();
every(20, known.signal, () => {
  if (prober.read().latency_ms !== null) known.abort();
});
await sleep(patience_ms, known.signal);
known.abort();
console.log(
  JSON.stringify({ ...prober.read(), warnings: log.lines.filter(({ level }) => level === 'warn') }),
);
stopping.abort();
