/** The thread that speaks SOAP: a reply that takes long to read stalls this thread and nothing else. */
import { type MessagePort, parentPort, workerData } from 'node:worker_threads';
import { InvariantBroken, messageOf } from '../../src/errors.ts';
import { GuardedCam, parseEnvelope } from './guarded-cam.ts';
import {
  cell_camera,
  cell_count,
  type FailureKind,
  type FromThread,
  type SoapOutcome,
  type ToThread,
} from './soap-messages.ts';
import { CertificateRefused, ReplyRefused } from './transport.ts';

const shared: unknown = workerData;
if (!parentPort || !(shared instanceof SharedArrayBuffer)) {
  throw new InvariantBroken('soap-worker.ts runs as a thread of the onvif driver only');
}
serve(parentPort, new Int32Array(shared));

function serve(port: MessagePort, marks: Int32Array): void {
  const cams = new Map<number, GuardedCam>();
  /** Says whose reply is being read, so that the other thread knows who stalls this one. */
  const mark = (camera: number, begun: boolean): void => {
    Atomics.add(marks, cell_count, 1);
    Atomics.store(marks, cell_camera, begun ? camera : -1);
  };
  const answer = (id: number, outcome: SoapOutcome): void => {
    port.postMessage({ id, outcome } satisfies FromThread);
  };
  port.on('message', (order: ToThread) => {
    switch (order.kind) {
      case 'open':
        cams.get(order.camera)?.close();
        cams.set(order.camera, new GuardedCam(order.connection, (begun) => mark(order.camera, begun)));
        return;
      case 'close':
        cams.get(order.camera)?.close();
        cams.delete(order.camera);
        return;
      case 'call':
        void perform(cams.get(order.camera), order.request).then((outcome) => answer(order.id, outcome));
        return;
      case 'parse':
        mark(order.camera, true);
        answer(order.id, read(order.xml));
        mark(order.camera, false);
    }
  });
}

async function perform(
  cam: GuardedCam | undefined,
  request: Extract<ToThread, { kind: 'call' }>['request'],
): Promise<SoapOutcome> {
  if (!cam) return failure('interrupted', 'the camera was closed meanwhile');
  const deadline = new AbortController();
  const timer = setTimeout(() => deadline.abort(), request.deadline_ms);
  try {
    return await cam.perform(request, deadline.signal);
  } catch (error) {
    if (deadline.signal.aborted) {
      return failure('deadline', `no complete answer within ${request.deadline_ms / 1_000} s`);
    }
    return failure(kindOf(error), reasonOf(error));
  } finally {
    clearTimeout(timer);
  }
}

function read(xml: string): SoapOutcome {
  try {
    return { kind: 'reply', body: parseEnvelope(xml), local_address: undefined };
  } catch (error) {
    return failure('malformed', messageOf(error));
  }
}

function failure(why: FailureKind, reason: string): SoapOutcome {
  return { kind: 'failure', why, reason };
}

function kindOf(error: unknown): FailureKind {
  if (error instanceof CertificateRefused) return 'certificate';
  return error instanceof ReplyRefused ? 'malformed' : 'unreachable';
}

/** Several addresses that failed come as one error without words. */
function reasonOf(error: unknown): string {
  if (error instanceof AggregateError && error.message === '') return messageOf(error.errors[0]);
  return messageOf(error);
}
