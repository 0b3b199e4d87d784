import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { Webhook } from 'standardwebhooks';
import { makeSecret, rotated, signedHeaders } from '../../../../src/cloud/webhooks/signature.ts';
import { peerMissing, program } from '../../../support/peers.ts';
import { old_secret_ms } from '../../../../src/cloud/api/webhook-resources.ts';

const readme = new URL('../../../../src/cloud/webhooks/README.md', import.meta.url);
const body = '{"type":"alarm","data":{"text":"Zürich"}}';

describe('Signatures of webhooks', () => {
  it('are made with both secrets for a day after a rotation, and with the new one alone after it', () => {
    const now_ms = Date.now();
    const before = [{ text: makeSecret(), expires_ms: null }];
    const after = rotated(before, now_ms);
    const both = signedHeaders({ id: 'msg_1', body, now_ms }, after);
    for (const { text } of after) expect(new Webhook(text).verify(body, { ...both })).toBeDefined();
    const later = signedHeaders({ id: 'msg_1', body, now_ms: now_ms + old_secret_ms }, after);
    expect(later['webhook-signature']?.split(' ')).toHaveLength(1);
    expect(rotated(after, now_ms)).toHaveLength(2);
  });
});

describe('The lines of the manual that check a signature', () => {
  const lines = (language: string): string =>
    new RegExp(`\`\`\`${language}\\n([^]*?)\`\`\``, 'u').exec(readFileSync(readme, 'utf8'))?.[1] ?? '';
  const drivers = {
    js: {
      program: process.execPath,
      words: (code: string) => ['--input-type=module', '--eval', code],
      code: `for (const [s, h, b] of JSON.parse(process.argv[1])) console.log(verify(s, h, Buffer.from(b)));`,
    },
    python: {
      program: program('python3'),
      words: (code: string) => ['-c', code],
      code: `import json, sys\nfor s, h, b in json.loads(sys.argv[1]): print(str(verify(s, h, b.encode())).lower())`,
    },
  } as const;

  it.skipIf(peerMissing('python3')).each(['js', 'python'] as const)('are right, in %s', (language) => {
    const { program: runs, words, code } = drivers[language];
    const secrets = [makeSecret(), makeSecret()];
    const sign = (now_ms: number) =>
      signedHeaders(
        { id: 'msg_1', body, now_ms },
        secrets.map((text) => ({ text, expires_ms: null })),
      );
    const now_ms = Date.now();
    const cases = [
      [secrets[0], sign(now_ms), body],
      [secrets[1], sign(now_ms), body],
      [makeSecret(), sign(now_ms), body],
      [secrets[0], sign(now_ms), `${body} `],
      [secrets[0], { ...sign(now_ms), 'webhook-id': 'msg_2' }, body],
      [secrets[0], sign(now_ms - 3_600_000), body],
      [secrets[0], { ...sign(now_ms), 'webhook-signature': 'v1,\u00e9 v1' }, body],
    ];
    const program_text = `${lines(language)}\n${code}`;
    const { stdout, stderr } = spawnSync(runs, [...words(program_text), JSON.stringify(cases)], {
      encoding: 'utf8',
    });
    expect([stdout.trim().split('\n'), stderr]).toEqual([
      ['true', 'true', 'false', 'false', 'false', 'false', 'false'],
      '',
    ]);
  });
});
