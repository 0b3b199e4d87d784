/** How long motion takes from cameras to a subscriber of the broker, through a daemon of its own. */
import { randomUUID } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { connectAsync } from 'mqtt';
import { z } from 'zod';
import { sleep, within } from '../../../src/platform/time.ts';
import { startMosquitto } from '../../support/brokers/broker.ts';
import { startChild } from '../../support/child.ts';
import { eventually } from '../../support/eventually.ts';
import { command_file } from '../../support/kit/kit.ts';
import { monotonic_us } from '../../support/witness.ts';

export interface MotionDelayParts {
  readonly dir: string;
  /** The driver sections of the configuration. */
  readonly drivers: readonly object[];
  /** So many cameras must be online first. */
  readonly cameras: number;
  readonly edges: number;
  /** Waited before each edge. */
  readonly pauseMs: () => number;
  /** Lets a camera see an edge, and answers when it did, monotonic microseconds. */
  readonly see: (edge: number) => Promise<{ readonly at_us: number; readonly detected: boolean }>;
}

const online_within_ms = 60_000;
const heard_within_ms = 20_000;
const settle_ms = 3_000;
const forever = new AbortController().signal;
const asset = z.looseObject({ data: z.looseObject({ status: z.string() }) });
const motion = z.looseObject({ data: z.looseObject({ detected: z.boolean() }) });

/** Milliseconds, one for each edge. */
export async function motionDelays(parts: MotionDelayParts): Promise<readonly number[]> {
  const broker = await startMosquitto();
  const client = await connectAsync(broker.url);
  const config = join(parts.dir, 'motion.yaml');
  const dirs = { state_dir: join(parts.dir, 'state'), runtime_dir: join(parts.dir, 'run') };
  const settings = { kit_id: randomUUID(), broker: { url: broker.url }, ...dirs, drivers: parts.drivers };
  // JSON is YAML.
  await writeFile(config, JSON.stringify(settings));
  const online = new Set<string>();
  let onMotion: (detected: boolean) => void = () => undefined;
  client.on('message', (topic, payload) => {
    const text = payload.toString();
    if (topic.endsWith('/motion')) onMotion(motion.parse(JSON.parse(text)).data.detected);
    else if (text !== '' && asset.parse(JSON.parse(text)).data.status === 'online') online.add(topic);
  });
  await client.subscribeAsync(['k1/+/up/asset/+', 'k1/+/up/event/+/motion'], { qos: 1 });
  const daemon = startChild([command_file, 'run', '--config', config]);
  try {
    await eventually('all cameras are online', () => online.size === parts.cameras, online_within_ms);
    await sleep(settle_ms, forever);
    const delays: number[] = [];
    for (let edge = 0; edge < parts.edges; edge += 1) {
      await sleep(parts.pauseMs(), forever);
      let wanted: boolean | undefined;
      const heard = new Promise<number>((resolve) => {
        onMotion = (detected) => {
          if (wanted === undefined || detected === wanted) resolve(monotonic_us());
        };
      });
      const { at_us, detected } = await parts.see(edge);
      wanted = detected;
      const heard_us = await within(heard_within_ms, heard);
      if (heard_us === undefined) throw new Error(`edge ${edge} did not arrive in ${heard_within_ms} ms`);
      delays.push((heard_us - at_us) / 1_000);
    }
    return delays;
  } finally {
    await daemon.end('SIGTERM');
    await client.endAsync(true);
    await broker.stop();
  }
}
