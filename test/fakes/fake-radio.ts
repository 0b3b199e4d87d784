/** An OpenWrt radio on the loopback: HTTP or HTTPS, sessions, rights, staged settings with rollback, and every misbehaviour. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { SimRadio, type SimRadioOptions } from '../../drivers/vendorradio/sim/sim-radio.ts';
import {
  type Args,
  sim_errors,
  type SimError,
  type SimReply,
  type SimRequest,
} from '../../drivers/vendorradio/sim/wifi.ts';
import { sleep } from '../../src/platform/time.ts';
import { freePort } from '../support/ports.ts';

export interface FakeRadioOptions extends SimRadioOptions {
  /** PEM; plain HTTP without it. */
  readonly tls?: { readonly cert: string; readonly key: string };
}

export type Mood = 'well' | 'mute' | 'slow' | 'invalid JSON' | 'login page' | 'no ubus' | 'no batches';

const slow_ms = 400;

export class FakeRadio extends SimRadio {
  mood: Mood = 'well';
  /** Answers of one method, by `object method`, instead of the usual one: a status, or a whole error. */
  readonly answers = new Map<string, readonly unknown[] | SimError>();
  override away_ms = 200;
  readonly asked: string[] = [];
  requests = 0;
  /** Requests under way at once, at most. */
  busiest = 0;
  #busy = 0;

  constructor({ tls, ...about }: FakeRadioOptions = {}) {
    super(about);
    this.tls = tls;
  }

  count(call: string): number {
    return this.asked.filter((each) => each === call).length;
  }

  /** Power on, after `lose` on the same port again. */
  async start(): Promise<void> {
    await this.listen(this.port || (await freePort()));
  }

  /** Another radio at the address, or the same after a factory reset; from the next `start` on. */
  showCertificate(tls: { readonly cert: string; readonly key: string }): void {
    this.tls = tls;
  }

  /** rpcd restarts: its objects are gone for a while, and all sessions for good. */
  stopRpcd(): void {
    this.isRpcdUp = false;
    this.sessions.forgetAll();
  }

  protected override async serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    this.requests += 1;
    this.#busy += 1;
    this.busiest = Math.max(this.busiest, this.#busy);
    response.once('close', () => {
      this.#busy -= 1;
    });
    if (this.mood === 'no ubus') response.writeHead(404).end();
    else await super.serve(request, response);
  }

  protected override async reply(response: ServerResponse, body: string): Promise<void> {
    if (this.mood === 'mute') return;
    if (this.mood === 'slow') await sleep(slow_ms, this.signal);
    if (this.mood === 'invalid JSON') response.writeHead(200).end('{"jsonrpc":"2.0","id":1,"resu');
    else if (this.mood === 'login page') {
      response.writeHead(200).end('<!DOCTYPE html><html><body>Log in</body></html>');
    } else await super.reply(response, body);
  }

  protected override answerText(body: string): object {
    if (this.mood === 'no batches' && body.startsWith('[')) {
      return { jsonrpc: '2.0', id: null, error: sim_errors.parse };
    }
    return super.answerText(body);
  }

  protected override answer(request: SimRequest): SimReply {
    const [, object, name] = request.params ?? [];
    const call = `${String(object)} ${String(name)}`;
    if (request.method === 'call') this.asked.push(call);
    return (call === 'session login' && this.#scripted(call)) || super.answer(request);
  }

  protected override carryOut(sid: string, object: string, name: string, args: Args): SimReply {
    return this.#scripted(`${object} ${name}`) ?? super.carryOut(sid, object, name, args);
  }

  #scripted(call: string): SimReply | undefined {
    const answer = this.answers.get(call);
    if (!answer) return undefined;
    return 'code' in answer ? { error: answer } : { result: answer };
  }
}
