/** What an error code of a camera means: for the session, and for the reader. */
import { describe, expect, it } from 'vitest';
import { afterAcceptance, faultOf } from '../../../../drivers/vendorcam/host/rsp-codes.ts';
import { texts } from '../../../../drivers/vendorcam/texts.ts';

describe('Error codes of the cameras', () => {
  it.each([
    [-1, 'bad_request'],
    [-5, 'sessions_full'],
    [-6, 'session'],
    [-7, 'credentials'],
    [-8, 'passing'],
    [-9, 'unsupported'],
    [-16, 'too_large'],
    [-21, 'session'],
    [-26, 'forbidden'],
    [-27, 'credentials'],
    [-99, 'channel_offline'],
    [-105, 'sessions_full'],
    [-500, 'sessions_full'],
    [-501, 'credentials'],
    [-502, 'credentials'],
    [-503, 'credentials'],
    [-505, 'passing'],
    [-506, 'credentials'],
    [-507, 'sessions_full'],
    [-508, 'unknown'],
    [7, 'unknown'],
  ] as const)('takes %i as %s', (code, kind) => {
    expect(faultOf(code, '')).toMatchObject({ code, kind, detail: '' });
  });

  it.each([
    ['Privacy mode', 'privacy', texts.privacy_mode],
    ['user is locked', 'credentials', texts.account_locked],
    ['login times reach max', 'sessions_full', texts.logins_full],
    ['login deny', 'credentials', texts.login_denied],
    // xannor/ha_reolink_rest#39, of a login.
    ['busy', 'passing', texts.code_busy],
    ['password wrong', 'credentials', texts.login_rejected],
    ['max session', 'sessions_full', texts.sessions_full],
    ['please login first', 'session', texts.code_session_lost],
  ] as const)('prefers the words "%s" to the number', (detail, kind, sentence) => {
    const fault = faultOf(-9, detail);
    expect(fault).toMatchObject({ code: -9, kind, detail });
    const [cause = '', remedy = ''] = sentence.split('; ');
    expect(fault.sentence.startsWith(`${cause} (error -9: ${detail})`)).toBe(true);
    expect(fault.sentence.endsWith(remedy)).toBe(true);
  });

  it.each([-500, -501, -503, -504, -505, -507])(
    'calls %i no wrong password and no locked account',
    (code) => {
      expect(faultOf(code, '').text).not.toMatch(/rejected|locked/u);
    },
  );

  it('that refuses what was accepted before is no evidence that the password is wrong', () => {
    const fault = afterAcceptance(faultOf(-7, 'login failed'));
    expect(fault).toMatchObject({ kind: 'credentials', text: texts.login_rejected_now });
    expect(fault.sentence).toContain('(error -7: login failed)');
    expect(afterAcceptance(faultOf(-506, '')).text).toBe(texts.account_locked);
  });

  it('names code and words of an unknown error', () => {
    expect(faultOf(-4_711, 'out of paper').sentence).toBe(texts.code_other(-4_711, ' (out of paper)'));
    expect(faultOf(-4_711, '').sentence).toBe(texts.code_other(-4_711, ''));
  });

  it('cuts the words of a device at 200 characters', () => {
    expect(faultOf(-1, 'x'.repeat(5_000)).detail).toHaveLength(200);
  });
});
