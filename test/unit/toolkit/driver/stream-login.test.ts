/** Where the login of a stream may go: never over plain RTSP when the configuration protects it with TLS. */
import { describe, expect, it } from 'vitest';
import { streamWithLogin } from '../../../../src/toolkit/driver/stream-login.ts';
import { texts } from '../../../../src/toolkit/driver/texts.ts';

const login = { username: 'kit', password: "p@$&ss/:'" };

describe('the address of a stream', () => {
  it('holds the login, escaped', () => {
    expect(streamWithLogin('rtsp://10.1.1.9:554/sub', login, { needs_tls: false })).toEqual({
      rtsp_url: "rtsp://kit:p%40%24%26ss%2F%3A'@10.1.1.9:554/sub",
      stream_fault: null,
    });
  });

  it('is withheld with a reason where TLS protects the login and the stream has none', () => {
    const { rtsp_url, stream_fault } = streamWithLogin('rtsp://10.1.1.9:554/sub', login, { needs_tls: true });
    expect(rtsp_url).toBeNull();
    expect(stream_fault).toBe(texts.plain_rtsp);
  });

  it.each([
    ['rtsps', 'rtsps://10.1.1.9:322/sub', login],
    ['rtsp without a login', 'rtsp://10.1.1.9:554/sub', undefined],
  ])('is used over %s where TLS protects the login', (_, url, given) => {
    const { rtsp_url, stream_fault } = streamWithLogin(url, given, { needs_tls: true });
    expect(rtsp_url).toContain('10.1.1.9');
    expect(stream_fault).toBeNull();
  });
});
