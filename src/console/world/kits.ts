/** The kits of the key: on the socket for many kits while they are shown, over HTTP where that is not reachable. */
import { isRecord, listIn } from '../json.ts';
import { elapsed_ms } from './elapsed.ts';
import { ServiceLink } from './link.ts';
import type { Choices, FleetFrame, KitResource } from '../types.d.ts';

/** Without the socket the list is asked for every 10 s; then it is old. */
const old_ms = 30_000;

export class Fleet {
  #choices: Choices;
  #onNews: () => void;
  #socket: ServiceLink<FleetFrame> | undefined;
  #isLive = false;
  /** What came of a first list. */
  #isFirst = true;
  #kits: Map<string, KitResource> = new Map();

  /**
   * @param choices written to: the kits
   * @param onNews called after each change
   */
  constructor(choices: Choices, onNews: () => void) {
    this.#choices = choices;
    this.#onNews = onNews;
  }

  /** Whether the socket sends every change. */
  get isLive() {
    return this.#isLive;
  }

  /** Whether the list may be outdated. */
  get isOld() {
    return !this.#isLive && elapsed_ms() - this.#choices.kits_ms > old_ms;
  }

  /** Opens the socket while the kits are shown, and closes it afterwards. */
  follow(isShown: boolean) {
    if (!isShown) {
      this.#socket?.close();
      this.#socket = undefined;
      this.#isLive = false;
      this.#isFirst = true;
      return;
    }
    this.#socket ??= new ServiceLink(
      { path: '/api/ws', frame: { type: 'subscribe', summaries: true, kits: [] }, first: 'summaries' },
      {
        onFrame: (frame) => this.#take(frame),
        onLink: ({ state }) => {
          this.#isLive = state === 'live';
          // After a loss the whole list comes again.
          if (state === 'lost') this.#isFirst = true;
          this.#onNews();
        },
      },
    );
  }

  #take(frame: FleetFrame) {
    if (frame.type === 'heartbeat') this.#choices.kits_ms = elapsed_ms();
    if (frame.type !== 'summaries') return;
    if (this.#isFirst) this.#kits = new Map();
    this.#isFirst = false;
    for (const kit of frame.kits) this.#kits.set(kit.id, kit);
    for (const id of frame.gone ?? []) this.#kits.delete(id);
    this.#choices.kits_ms = elapsed_ms();
    // Until the first list is complete, the one from before is shown.
    if (frame.left === 0) this.#choices.kits = [...this.#kits.values()];
    this.#onNews();
  }
}

export function kitsOf(value: unknown): readonly KitResource[] {
  return listIn(value).filter(isKit);
}

/** The service checks what it sends against its own schema; here only the form is looked at. */
function isKit(value: unknown): value is KitResource {
  return isRecord(value) && typeof value['id'] === 'string' && typeof value['name'] === 'string';
}
