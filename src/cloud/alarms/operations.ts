/** The operations on alarms, independent of the transport. Every method throws `RequestProblem` when it rejects a request. */
import type { z } from 'zod';
import type { AlarmSeverity } from '../severity.ts';
import {
  type alarmList,
  type AlarmResource,
  type AlarmState,
  type changeAlarm,
  lasting_states,
} from '../api/alarm-resources.ts';
import { alarmResource } from '../api/views.ts';
import { RequestProblem } from '../api/problem.ts';
import type { Changes } from '../changes.ts';
import { maySee, type Principal } from '../principal.ts';
import type { StoredAlarm } from '../stored/stored.ts';
import { texts } from '../texts.ts';
import type { AlarmStore } from './alarm-store.ts';

export interface AlarmFilter {
  /** Left out: all but the closed ones. */
  readonly state?: readonly AlarmState[] | undefined;
  readonly severity?: readonly AlarmSeverity[] | undefined;
  readonly what?: readonly string[] | undefined;
  readonly assets?: readonly string[] | undefined;
  readonly limit: number;
  readonly cursor?: string | undefined;
}

interface AlarmParts {
  readonly store: AlarmStore;
  /** `kit` throws `not-found` for a kit that the key does not have. */
  readonly service: { readonly kit: (principal: Principal, kit_id: string) => Promise<unknown> };
  readonly changes: Changes;
}

interface Place {
  readonly kit_id: string;
  readonly alarm_id: string;
}

export class AlarmOperations {
  readonly #parts: AlarmParts;

  constructor(parts: AlarmParts) {
    this.#parts = parts;
  }

  /** `kits` left out: all of the key. */
  async list(
    principal: Principal,
    kits: readonly string[] | undefined,
    { state = lasting_states, severity, what, assets, limit, cursor }: AlarmFilter,
  ): Promise<z.output<typeof alarmList>> {
    for (const kit_id of kits ?? []) await this.#parts.service.kit(principal, kit_id);
    const after = cursor === undefined ? undefined : readCursor(cursor);
    if (cursor !== undefined && !after) throw new RequestProblem('bad-request', texts.cursor_of_list);
    const now_ms = Date.now();
    const query = { kits: kits ?? principal.kits, states: state, severities: severity, what, assets, after };
    const found = await this.#parts.store.alarms({ ...query, limit: limit + 1, now_ms });
    const listed = found.slice(0, limit);
    const last = found.length > limit ? listed.at(-1) : undefined;
    return {
      alarms: listed.map((alarm) => alarmResource(alarm, now_ms)),
      next: last ? `${last.since_ms}_${last.alarm_id}` : null,
    };
  }

  async get(principal: Principal, kit_id: string, alarm_id: string): Promise<AlarmResource> {
    return alarmResource(await this.#alarm(principal, { kit_id, alarm_id }), Date.now());
  }

  async change(
    principal: Principal,
    place: Place,
    { acknowledged, muted_until, note }: z.output<typeof changeAlarm>,
  ): Promise<AlarmResource> {
    await this.#alarm(principal, place);
    const now_ms = Date.now();
    const until_ms = typeof muted_until === 'string' ? Date.parse(muted_until) : muted_until;
    const edit = {
      muted_until_ms: until_ms,
      note,
      ...(acknowledged !== undefined && {
        acknowledged: acknowledged ? { by: principal.label, at_ms: now_ms } : null,
      }),
    };
    const changed = await this.#parts.store.changeAlarm(place.kit_id, place.alarm_id, {
      edit,
      revision: undefined,
    });
    if (changed === undefined || changed === 'changed') throw notFound(place);
    this.#parts.changes.publish([{ kind: 'alarm', kit_id: place.kit_id, alarm: changed }]);
    return alarmResource(changed, now_ms);
  }

  async #alarm(principal: Principal, place: Place): Promise<StoredAlarm> {
    const { kit_id, alarm_id } = place;
    const alarm = maySee(principal, kit_id) ? await this.#parts.store.alarm(kit_id, alarm_id) : undefined;
    if (!alarm) throw notFound(place);
    return alarm;
  }
}

function notFound({ alarm_id }: Place): RequestProblem {
  return new RequestProblem('not-found', texts.no_alarm(alarm_id));
}

/** Undefined: the text is no cursor of this list. */
function readCursor(text: string): { readonly since_ms: number; readonly alarm_id: string } | undefined {
  const [, since_ms, alarm_id] = /^(\d{1,15})_([0-9a-f-]{36})$/u.exec(text) ?? [];
  return alarm_id === undefined ? undefined : { since_ms: Number(since_ms), alarm_id };
}
