/**
 * Carries Ethernet frames between virtual devices of two namespaces, late, lossy or not at all, as it is told: what
 * netem does where the kernel has it. Arguments: the wires as JSON. Orders come on standard input; it ends with that.
 */
import koffi from 'koffi';
import { createInterface } from 'node:readline';
import { z } from 'zod';
import { enterNamespace } from './enter-namespace.ts';
import { ioctl, openTun, type TunDevice } from './tun-device.ts';
import {
  type RelayOrder,
  relayOrder,
  type RelayWire,
  relayWire,
  type WireSettings,
  wireSettings,
} from './wan-relay.ts';

const tunsetcarrier = 0x4004_54e2;
/** Of Ethernet. */
const header_bytes = 14;
/** Timers are no finer than this. */
const tick_ms = 0.5;

/** One end of a wire. */
class Tap {
  readonly #end: RelayWire['near'];
  readonly #onFrame: (frame: Buffer) => void;
  #device: TunDevice | undefined;

  constructor(end: RelayWire['near'], onFrame: (frame: Buffer) => void) {
    this.#end = end;
    this.#onFrame = onFrame;
    this.plug();
  }

  plug(): void {
    const leave = enterNamespace(this.#end.namespace);
    try {
      this.#device = openTun(this.#end.device, 'tap', this.#onFrame);
    } finally {
      leave();
    }
  }

  unplug(): void {
    this.#device?.close();
    this.#device = undefined;
  }

  carrier({ on }: { readonly on: boolean }): void {
    const value = new Uint8Array(new Int32Array([on ? 1 : 0]).buffer);
    if (this.#device === undefined || ioctl(this.#device.fd, tunsetcarrier, value) !== 0)
      throw new Error(`carrier: errno ${koffi.errno()}`);
  }

  send(frame: Buffer): void {
    this.#device?.send(frame);
  }
}

/** One direction of a wire: frames leave in the order in which they came. */
class Way {
  readonly #send: (frame: Buffer) => void;
  readonly #queue: { readonly due_ms: number; readonly frame: Buffer }[] = [];
  readonly #outward: boolean;
  settings: WireSettings = wireSettings.parse({});
  #timer: NodeJS.Timeout | undefined;
  #line_free_ms = 0;
  #last_due_ms = 0;
  #seen = 0;
  #victim = 0;

  constructor(send: (frame: Buffer) => void, { outward }: { readonly outward: boolean }) {
    this.#send = send;
    this.#outward = outward;
  }

  take(frame: Buffer): void {
    const { rtt_ms, jitter_ms, rate_kbit, queue_ms_max, mtu_bytes, blackhole } = this.settings;
    const isTooLarge = mtu_bytes > 0 && frame.length > header_bytes + mtu_bytes;
    if (blackhole || isTooLarge || this.#isLost()) return;
    let due_ms = performance.now();
    if (rate_kbit > 0) {
      const start_ms = Math.max(this.#line_free_ms, due_ms);
      if (start_ms - due_ms > queue_ms_max) return;
      due_ms = start_ms + (frame.length * 8) / rate_kbit;
      this.#line_free_ms = due_ms;
    }
    if (this.#outward) due_ms += (Math.random() * 2 - 1) * jitter_ms;
    due_ms = Math.max(due_ms + rtt_ms / 2, this.#last_due_ms);
    this.#last_due_ms = due_ms;
    this.#queue.push({ due_ms, frame });
    if (this.#queue.length === 1) this.#arm();
  }

  #isLost(): boolean {
    const { loss_pct } = this.settings;
    if (!this.#outward || loss_pct === 0) return false;
    const run = Math.round(100 / loss_pct);
    const at = this.#seen % run;
    if (at === 0) this.#victim = Math.floor(Math.random() * run);
    this.#seen += 1;
    return at === this.#victim;
  }

  #arm(): void {
    const [head] = this.#queue;
    if (head === undefined) return;
    const wait_ms = head.due_ms - performance.now();
    if (wait_ms <= tick_ms) this.#release();
    else this.#timer = setTimeout(() => this.#release(), wait_ms);
  }

  #release(): void {
    clearTimeout(this.#timer);
    for (let head = this.#queue[0]; head; head = this.#queue[0]) {
      if (head.due_ms - performance.now() > tick_ms) break;
      this.#queue.shift();
      this.#send(head.frame);
    }
    this.#arm();
  }
}

class Wire {
  readonly #near: Tap;
  readonly #far: Tap;
  readonly #out: Way;
  readonly #back: Way;

  constructor({ near, far }: RelayWire) {
    this.#out = new Way((frame) => this.#far.send(frame), { outward: true });
    this.#back = new Way((frame) => this.#near.send(frame), { outward: false });
    this.#near = new Tap(near, (frame) => this.#out.take(frame));
    this.#far = new Tap(far, (frame) => this.#back.take(frame));
  }

  obey(order: RelayOrder): void {
    switch (order.order) {
      case 'set':
        this.#out.settings = order.settings;
        this.#back.settings = order.settings;
        return;
      case 'carrier':
        this.#near.carrier(order);
        return;
      case 'unplug':
        this.#near.unplug();
        return;
      case 'plug':
        this.#near.plug();
    }
  }
}

const wires = new Map(
  z
    .array(relayWire)
    .parse(JSON.parse(process.argv[2] ?? ''))
    .map((wire) => [wire.name, new Wire(wire)]),
);
const orders = createInterface(process.stdin);
orders.on('close', () => process.exit());
orders.on('line', (line) => {
  let error: string | null = null;
  try {
    const order = relayOrder.parse(JSON.parse(line));
    wires.get(order.wire)?.obey(order);
  } catch (fault) {
    error = String(fault);
  }
  console.log(JSON.stringify({ error }));
});
console.log('ready');
