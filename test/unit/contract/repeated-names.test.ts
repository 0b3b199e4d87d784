/** A name that an object has twice: the last one counts at every door, and what is recorded is what was read. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parseInSteps } from '../../../src/contract/batch/json-steps.ts';
import { finish, Pace } from '../../../src/contract/batch/steps.ts';
import { boundedText, message_limits, readJson } from '../../../src/contract/bounded-json.ts';
import { journalText, readDispatch, readJournaled } from '../../../src/kit/tasks/dispatch.ts';
import { asset_id, task_id } from '../../support/contract-samples.ts';

const twice = '{"lat":1,"at":{"a":1,"a":{"b":2}},"lat":47,"\\u006cat":48}';
const read = { lat: 48, at: { a: { b: 2 } } };

describe('A name that an object has twice', () => {
  it('has its last value, also where one of them is written with an escape sequence', () => {
    expect(readJson(twice, message_limits)).toEqual(read);
    expect(readJson(Buffer.from(twice), message_limits)).toEqual(read);
    // As a long batch is read.
    expect(finish(parseInSteps(boundedText(twice, message_limits), new Pace(), -1))).toEqual(read);
  });

  it('cannot make the task journal name another command than the executed one', () => {
    const text = `{"task_id":"${task_id}","asset_id":"${asset_id}","command_name":"land","payload":{"a":1},"created_at":"2026-11-21T10:00:00.000Z","deadline":"2026-11-21T10:01:00.000Z","command_name":"arm","payload":{"a":2}}`;
    const dispatch = readDispatch(Buffer.from(text), task_id);
    expect(dispatch.dispatch).toMatchObject({ command_name: 'arm', payload: { a: 2 } });
    const origin = { via: 'cloud', user: null, uid: null, requested_by: null } as const;
    const kept = journalText(dispatch, { origin, refused: false });
    expect(kept).not.toContain('land');
    expect(readJournaled(kept).dispatch).toMatchObject({ command_name: 'arm', payload: { a: 2 } });
  });

  it('is read by one parser: no other reads JSON of others, and no database looks into a text', () => {
    const root = join(import.meta.dirname, '../../..');
    const sources = ['src', 'drivers'].flatMap((folder) =>
      readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
        .filter((name) => name.endsWith('.ts'))
        .map((name) => join(folder, name)),
    );
    const found = sources.filter((file) =>
      /json_extract|json_each|jsonb|::json\b|from '(?:json5|jsonc|secure-json|@streamparser)/u.test(
        readFileSync(join(root, file), 'utf8'),
      ),
    );
    expect(found).toEqual([]);
  });
});
