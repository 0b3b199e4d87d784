/** A kit and a service, each a process, with a broker between them. */
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { type Broker, startMosquitto } from '../brokers/broker.ts';
import { type Kit, withKit } from '../kit/kit.ts';
import { freePort } from '../ports.ts';
import { withDirectory } from '../temporary.ts';
import { type ServiceProcess, serviceProcess } from './service-process.ts';

export interface KitAndService {
  readonly kit: Kit;
  readonly service: ServiceProcess;
  readonly broker: Broker;
  /** Of the service: `service.db` is in it. */
  readonly dir: string;
}

/** `port`: of the service. `settings`: of its file. The service runs, the kit is not configured. */
export async function withKitAndService(
  { port, ...settings }: { readonly port?: number; readonly [key: string]: unknown },
  play: (scene: KitAndService) => Promise<void>,
): Promise<void> {
  const broker = await startMosquitto();
  try {
    await withDirectory(async (dir) => {
      const place = join(dir, 'service');
      await mkdir(place);
      const broker_of = { broker: { url: broker.url }, port: port ?? (await freePort()) };
      const service = await serviceProcess(place, { ...broker_of, ...settings });
      try {
        await service.start();
        await withKit({ rehearsed: false }, async (kit) => play({ kit, service, broker, dir: place }));
      } finally {
        await service.end('SIGKILL');
      }
    });
  } finally {
    await broker.stop();
  }
}
