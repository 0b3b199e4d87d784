/** The login, the chosen kit, and the link to it. */
import { ask, reasonOf, Refused } from './api.ts';
import { field } from '../json.ts';
import { elapsed_ms } from './elapsed.ts';
import { kitsOf } from './kits.ts';
import { ServiceLink } from './link.ts';
import { addressOf, isOfFleet, readRoute } from './route.ts';
import { t } from '../words/words.ts';
import { emptyWorld, takeFrame } from './world.ts';
import { type Log, seenEntry } from './history/log.ts';
import type { Choices, Now, PageLink, ServerFrame } from '../types.d.ts';

const frames_kept = 20;
const events_kept = 50;
const retry_ms = 5_000;
const list_every_ms = 10_000;

export class Session {
  #choices: Choices;
  #onNews: () => void;
  #log: Log;
  #listed_ms = elapsed_ms();
  #world = emptyWorld();
  #socket: ServiceLink<ServerFrame> | undefined;
  #link: PageLink = { state: 'connecting', since_ms: elapsed_ms() };

  /**
   * @param choices written to: the login, the kits, the last error
   * @param parts `onNews` is called after each change
   */
  constructor(choices: Choices, { onNews, log }: { readonly onNews: () => void; readonly log: Log }) {
    this.#log = log;
    this.#choices = choices;
    this.#onNews = onNews;
  }

  now(): Now {
    const socket = this.#socket;
    return {
      world: this.#world,
      link: this.#link,
      time_ms: socket?.time_ms ?? Date.now(),
      isInStep: socket?.isInStep ?? false,
    };
  }

  /** Logs in with the key that the address may hold (`#key=`, with `&kit=`); else asks who is logged in already. */
  async start() {
    const key = fromAddress('key');
    if (key === null) return this.#begin();
    // The key must not stay in the address, nor in the history. The kit stays.
    const kit_id = fromAddress('kit');
    history.replaceState(
      null,
      '',
      `${location.pathname}${kit_id === null ? '' : addressOf('overview', kit_id)}`,
    );
    return this.login(key);
  }

  async login(key: string) {
    try {
      await ask('POST', '/api/session', { body: { api_key: key } });
      this.#choices.trouble = '';
      await this.#begin();
    } catch (error) {
      this.#choices.needsKey = true;
      this.#choices.trouble = reasonOf(error, t.trouble.noAnswer);
      this.#onNews();
    }
  }

  async logout() {
    await ask('DELETE', '/api/session').catch(() => undefined);
    location.reload();
  }

  /** Adds an event to the list for integrators. */
  note(event: string) {
    const time = new Date(this.#socket?.time_ms ?? Date.now()).toISOString();
    this.#choices.events = [`${time}  ${event}`, ...this.#choices.events].slice(0, events_kept);
  }

  /** Switches to this kit. */
  watch(kit_id: string) {
    this.#socket?.close();
    if (this.#choices.kit_id !== kit_id) this.#world = emptyWorld();
    this.#choices.kit_id = kit_id;
    this.#link = { state: 'connecting', since_ms: elapsed_ms() };
    this.#socket = new ServiceLink(
      {
        path: `/api/kits/${kit_id}/ws`,
        frame: { type: 'subscribe', assets: '*' },
        first: 'snapshot',
      },
      {
        onFrame: (frame) => this.#take(frame),
        onLink: (link) => this.#follow(link),
        onRefused: () => void this.#checkLogin(),
      },
    );
    this.#onNews();
  }

  #take(frame: ServerFrame) {
    if (frame.type === 'kit_gone') {
      void this.#leaveKit();
      return;
    }
    const seen = seenEntry(frame, this.#world);
    if (seen) this.#log.add(seen);
    takeFrame(this.#world, frame);
    this.#choices.frames = [frame, ...this.#choices.frames].slice(0, frames_kept);
    this.#onNews();
  }

  #follow(link: PageLink) {
    this.#link = link;
    this.note(link.state === 'live' ? 'connected to the service' : 'connection to the service lost');
    this.#onNews();
  }

  async #begin() {
    const choices = this.#choices;
    try {
      choices.session = { scopes: textsOf(field(await ask('GET', '/api/session'), 'scopes')) };
      choices.kits = kitsOf(await ask('GET', '/api/kits'));
      choices.kits_ms = elapsed_ms();
      choices.needsKey = false;
      choices.trouble = choices.kits.length === 0 ? t.trouble.noKit : '';
      this.#chooseKit();
    } catch (error) {
      if (error instanceof Refused && error.status === 401) {
        choices.needsKey = true;
      } else {
        choices.trouble = reasonOf(error, t.trouble.retrying);
        this.#beginLater();
      }
    }
    this.#onNews();
  }

  /** Watches the kit of the address; several kits without one begin with their list. */
  #chooseKit() {
    const { kits, kit_id } = this.#choices;
    const { kit_id: addressed, screen } = readRoute(location.hash);
    const wanted = addressed ?? kit_id;
    const chosen = kits.find(({ id }) => id === wanted) ?? kits[0];
    if (!chosen) return this.#beginLater();
    if (!isOfFleet(screen) && addressed !== chosen.id)
      history.replaceState(
        null,
        '',
        kits.length > 1 && wanted === null ? '#/kits' : addressOf('overview', chosen.id),
      );
    return this.watch(chosen.id);
  }

  /** Asks for the list of kits again, at most every 10 s; to be called while it is shown. */
  async refreshKits() {
    const now_ms = elapsed_ms();
    if (!this.#choices.session || now_ms - this.#listed_ms < list_every_ms) return;
    this.#listed_ms = now_ms;
    try {
      this.#choices.kits = kitsOf(await ask('GET', '/api/kits'));
      this.#choices.kits_ms = elapsed_ms();
      this.#onNews();
    } catch {
      // The list keeps its ages; the next time asks again.
    }
  }

  #beginLater() {
    setTimeout(() => void this.#begin(), retry_ms);
  }

  /** The kit was removed, or the key has it no longer. */
  async #leaveKit() {
    this.#socket?.close();
    this.#socket = undefined;
    this.#choices.kit_id = null;
    location.hash = '#/kits';
    await this.#begin();
  }

  /** Asks over HTTP: browsers do not report why a socket was refused. */
  async #checkLogin() {
    const status = await ask('GET', `/api/kits/${this.#choices.kit_id}`).then(
      () => 200,
      (error: unknown) => (error instanceof Refused ? error.status : 0),
    );
    if (status === 404) return this.#leaveKit();
    if (status !== 401 || this.#choices.needsKey) return;
    this.note('the session has ended');
    this.#choices.needsKey = true;
    this.#socket?.close();
    this.#socket = undefined;
    this.#onNews();
  }
}

/** Reads a value from the fragment (`#`) of the address, which no server receives. */
function fromAddress(name: string): string | null {
  return new URLSearchParams(location.hash.slice(1)).get(name);
}

function textsOf(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.map(String) : [];
}
