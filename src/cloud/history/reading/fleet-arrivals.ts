/**
 * Events of several kits in the order of arrival. The order of two kits is not that of their commits, so a cursor has the place of each:
 * of one whose commit was slow, nothing is skipped.
 */
import { RequestProblem } from '../../api/problem.ts';
import { texts } from '../../texts.ts';
import { byArrival, type HistoryMessage } from '../message.ts';
import { type ArrivalPage, isBehind, placeBehind } from './arrivals.ts';
import { cursorAfter, type Place, readCursor } from './cursor.ts';
import { compareText } from './page.ts';
import { page_chars_max } from './reader.ts';

interface KitMessage {
  readonly kit_id: string;
  readonly message: HistoryMessage;
}

const id_bytes = 16;
const place_bytes = id_bytes + 6;

export class FleetArrivals {
  readonly #limit: number;
  readonly #places: Map<string, Place>;
  #kept: readonly KitMessage[] = [];
  readonly #ends = new Map<string, Place>();
  #more = false;

  constructor(places: ReadonlyMap<string, Place>, limit: number) {
    this.#places = new Map(places);
    this.#limit = limit;
  }

  get events(): readonly KitMessage[] {
    return this.#kept;
  }

  get more(): boolean {
    return this.#more;
  }

  after(kit_id: string): Place | undefined {
    return this.#places.get(kit_id);
  }

  add(kit_id: string, { messages, end, more }: ArrivalPage): void {
    this.#ends.set(kit_id, end);
    const all = [...this.#kept, ...messages.map((message) => ({ kit_id, message }))].sort(compare);
    let chars = 0;
    const excess = all.findIndex(({ message }, index) => {
      chars += message.data.length;
      return index === this.#limit || (index > 0 && chars > page_chars_max);
    });
    this.#kept = excess < 0 ? all : all.slice(0, excess);
    // Of a kit that gives way, what is left is behind the last message that stays.
    for (const { kit_id: id } of excess < 0 ? [] : all.slice(excess)) this.#ends.delete(id);
    this.#more ||= more || excess >= 0;
  }

  /** The place of each kit behind what is given. */
  get places(): ReadonlyMap<string, Place> {
    const last = new Map(this.#kept.map(({ kit_id, message }) => [kit_id, message as Place]));
    return new Map([...this.#places, ...last, ...this.#ends]);
  }
}

function compare(a: KitMessage, b: KitMessage): number {
  const difference = (a.message.arrived_ms ?? 0) - (b.message.arrived_ms ?? 0);
  return difference || compareText(a.kit_id, b.kit_id) || byArrival(a.message, b.message);
}

/** As a cursor: numbers for places between commits, and a cursor of its own for each within one. */
export function fleetCursorAfter(question: unknown, places: ReadonlyMap<string, Place>): string {
  const between = [...places].filter(([, place]) => isBehind(place));
  const within = [...places].filter(([, place]) => !isBehind(place));
  const bytes = Buffer.alloc(between.length * place_bytes);
  for (const [index, [kit_id, { arrived_ms = 0 }]] of between.entries()) {
    bytes.write(kit_id.replaceAll('-', ''), index * place_bytes, 'hex');
    bytes.writeUIntBE(arrived_ms, index * place_bytes + id_bytes, place_bytes - id_bytes);
  }
  const start = cursorAfter(question, placeBehind(0));
  const others = within.map(([kit_id, place]) => cursorAfter(question, { ...place, kit_id }));
  return [start, bytes.toString('base64url'), ...others].join('.');
}

/** Throws `bad-request` when it is no such cursor, or one of another question. */
export function readFleetCursor(question: unknown, cursor: string): ReadonlyMap<string, Place> {
  const [start = '', between = '', ...within] = cursor.split('.');
  readCursor(question, start);
  const bytes = Buffer.from(between, 'base64url');
  if (bytes.length % place_bytes !== 0) throw new RequestProblem('bad-request', texts.foreign_cursor);
  const places = new Map<string, Place>();
  for (let at = 0; at < bytes.length; at += place_bytes) {
    const hex = bytes.toString('hex', at, at + id_bytes);
    const kit_id = hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/u, '$1-$2-$3-$4-$5');
    places.set(kit_id, placeBehind(bytes.readUIntBE(at + id_bytes, place_bytes - id_bytes)));
  }
  for (const each of within) {
    const { kit_id = '', ...place } = readCursor(question, each);
    places.set(kit_id, place);
  }
  return places;
}
