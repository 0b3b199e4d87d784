/** The daemon is killed (SIGKILL) while it has a task, and starts again on the same buffer. */
import { type ChildProcess, fork } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { describe, expect, it } from 'vitest';
import { eventually } from '../../support/eventually.ts';
import { testDirectory } from '../../support/test-directory.ts';
import type { TaskAnswer, TaskProcessSettings, TaskQuestion } from '../../support/kit/task-process.ts';
import { texts } from '../../../src/kit/tasks/texts.ts';

const entry = new URL('../../support/kit/task-process.ts', import.meta.url);

class Connector {
  readonly #child: ChildProcess;
  readonly #heard: TaskAnswer[] = [];

  constructor(settings: TaskProcessSettings) {
    this.#child = fork(entry, [JSON.stringify(settings)], { execArgv: [] });
    this.#child.on('message', (answer: TaskAnswer) => this.#heard.push(answer));
  }

  ask(question: TaskQuestion): void {
    this.#child.send(question);
  }

  /** Takes the first answer of this kind, received already or yet to come. */
  async hear(kind: TaskAnswer['kind']): Promise<TaskAnswer> {
    for (;;) {
      const at = this.#heard.findIndex((answer) => answer.kind === kind);
      const [answer] = at < 0 ? [] : this.#heard.splice(at, 1);
      if (answer) return answer;
      await Promise.race([once(this.#child, 'message'), this.#died()]);
    }
  }

  async kill(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const exit = once(this.#child, 'exit');
    this.#child.kill('SIGKILL');
    await exit;
  }

  async #died(): Promise<never> {
    await once(this.#child, 'exit');
    throw new Error(`the connector ended (${this.#child.exitCode ?? this.#child.signalCode})`);
  }
}

interface Scene {
  readonly task_id: string;
  readonly start: () => Promise<Connector>;
  readonly dispatch: (connector: Connector) => void;
  /** How often the machine moved. */
  readonly moves: () => number;
}

async function scene(
  { repeatable }: { readonly repeatable: boolean },
  play: (scene: Scene) => Promise<void>,
): Promise<void> {
  const dir = await testDirectory();
  const settings = { file: join(dir, 'buffer.db'), effects: join(dir, 'effects'), repeatable };
  writeFileSync(settings.effects, '');
  const task_id = randomUUID();
  const created_at = new Date().toISOString();
  const deadline = new Date(Date.now() + 60_000).toISOString();
  const body = JSON.stringify({
    task_id,
    asset_id: randomUUID(),
    command_name: 'goto',
    created_at,
    deadline,
  });
  const connectors: Connector[] = [];
  try {
    await play({
      task_id,
      start: async () => {
        const connector = new Connector(settings);
        connectors.push(connector);
        await connector.hear('ready');
        return connector;
      },
      dispatch: (connector) => connector.ask({ kind: 'dispatch', task_id, body }),
      moves: () => readFileSync(settings.effects, 'utf8').split('\n').length - 1,
    });
  } finally {
    await Promise.all(connectors.map(async (connector) => connector.kill()));
  }
}

describe('a connector that is killed', () => {
  it('while a machine moves does not move it again, and reports an unknown outcome', async () => {
    await scene({ repeatable: false }, async ({ task_id, start, dispatch, moves }) => {
      const first = await start();
      dispatch(first);
      await first.hear('called');
      await first.kill();
      const second = await start();
      dispatch(second);
      await second.hear('taken');
      const over = { state: 'failed', result: { error: texts.interrupted } };
      await eventually('the end is recorded', async () => {
        second.ask({ kind: 'find', task_id });
        return isDeepStrictEqual(await second.hear('found'), { kind: 'found', ...over });
      });
      expect(moves()).toBe(1);
    });
  });

  it('once the dispatch was acknowledged has it in its journal, and moves the machine at most once', async () => {
    await scene({ repeatable: false }, async ({ task_id, start, dispatch, moves }) => {
      const first = await start();
      dispatch(first);
      await first.hear('taken');
      await first.kill();
      const moved_before = moves();
      const second = await start();
      second.ask({ kind: 'find', task_id });
      expect(await second.hear('found')).not.toMatchObject({ state: undefined });
      dispatch(second);
      await second.hear('taken');
      await second.kill();
      expect(moves()).toBeGreaterThanOrEqual(moved_before);
      expect(moves()).toBeLessThanOrEqual(1);
    });
  });

  it('before it could acknowledge takes the second delivery, and moves the machine at most once', async () => {
    await scene({ repeatable: false }, async ({ task_id, start, dispatch, moves }) => {
      const first = await start();
      dispatch(first);
      await first.kill();
      const second = await start();
      dispatch(second);
      await second.hear('taken');
      second.ask({ kind: 'find', task_id });
      expect(await second.hear('found')).not.toMatchObject({ state: undefined });
      expect(moves()).toBeLessThanOrEqual(1);
    });
  });

  it('runs a repeatable command again without being asked', async () => {
    await scene({ repeatable: true }, async ({ start, dispatch, moves }) => {
      const first = await start();
      dispatch(first);
      await first.hear('called');
      await first.kill();
      const second = await start();
      await second.hear('called');
      expect(moves()).toBe(2);
    });
  });
});
