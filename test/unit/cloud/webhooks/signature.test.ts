import { describe, expect, it } from 'vitest';
import { Webhook } from 'standardwebhooks';
import { makeSecret, rotated, signedHeaders } from '../../../../src/cloud/webhooks/signature.ts';
import { old_secret_ms } from '../../../../src/cloud/api/webhook-resources.ts';

const body = '{"type":"alarm","data":{"text":"Zürich"}}';

describe('Signatures of webhooks', () => {
  it('are accepted by the library of Standard Webhooks', () => {
    const secret = makeSecret();
    const headers = signedHeaders({ id: 'msg_1', body, now_ms: Date.now() }, [
      { text: secret, expires_ms: null },
    ]);
    expect(new Webhook(secret).verify(body, { ...headers })).toEqual(JSON.parse(body));
    expect(() => new Webhook(secret).verify(`${body} `, { ...headers })).toThrow(
      'No matching signature found',
    );
    expect(() => new Webhook(makeSecret()).verify(body, { ...headers })).toThrow(
      'No matching signature found',
    );
  });

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
