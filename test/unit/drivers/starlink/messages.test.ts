/** What a dish says, byte by byte: the encoding, the ring of seconds, positions, words. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { message_max_bytes } from '../../../../drivers/starlink/api/grpc.ts';
import {
  alertsText,
  causeOf,
  fixOf,
  qualityOf,
  reasonOf,
  window_s,
} from '../../../../drivers/starlink/starlink.ts';
import {
  decode,
  fields_max,
  floats,
  parseHistory,
  parseLocation,
  parseStatus,
  real,
  requests,
  text,
  uint,
} from '../../../../drivers/starlink/api/messages.ts';
import { texts } from '../../../../drivers/starlink/texts.ts';
import { DeviceUnreachable } from '../../../../src/platform/errors.ts';
import { bytes, double, float, varint } from '../../../fakes/fake-dish.ts';
import { forAll } from '../../../support/for-all.ts';

const status = (...parts: Buffer[]) => parseStatus(bytes(2004, Buffer.concat(parts)))!;

describe('the encoding', () => {
  it('requests with the tags that the dish supports', () => {
    expect([...requests.status]).toEqual([0xe2, 0x3e, 0]);
    expect([...requests.history]).toEqual([0xfa, 0x3e, 0]);
    expect([...requests.location]).toEqual([0xca, 0x3f, 0]);
  });

  it('reads back every number, text and run of floats', () => {
    forAll(
      fc.nat({ max: Number.MAX_SAFE_INTEGER }),
      fc.integer({ min: 1, max: 536_870_911 }),
      fc.double({ noNaN: true, noDefaultInfinity: true }),
      fc.array(fc.float({ noNaN: true, noDefaultInfinity: true })),
      (whole, field, value, list) => {
        expect(uint(decode(varint(field, whole)), field)).toBe(whole);
        expect(real(decode(double(field, value)), field)).toBe(value);
        const each = Buffer.concat(list.map((one) => float(7, one)));
        expect(floats(decode(each), 7)).toEqual(list);
      },
    );
  });

  it('uses the last value of a repeated field, and none of one with another type', () => {
    const fields = decode(Buffer.concat([varint(1, 5), varint(1, 6), bytes(2, 'a\u0000b\n')]));
    expect(uint(fields, 1)).toBe(6);
    expect(uint(fields, 2)).toBeUndefined();
    expect(text(fields, 1)).toBeUndefined();
    expect(text(fields, 2)).toBe('ab');
    expect(real(fields, 1)).toBeUndefined();
    expect(floats(fields, 1)).toEqual([]);
  });

  it.each([
    ['a length beyond the end', '0a7f00'],
    [texts.number_endless, '08ffffffffffffffffffffff01'],
    [texts.number_cut, '0880'],
    ['a group', '0b0c'],
    ['field number 0', '0000'],
    ['a fixed32 that is cut short', '0d0000'],
    ['a length of 2^60', '0a808080808080808010'],
  ])('refuses %s', (_what, hex) => {
    expect(() => decode(Buffer.from(hex, 'hex'))).toThrow(DeviceUnreachable);
  });

  it('refuses a message of more fields than a dish sends', () => {
    expect(() => decode(Buffer.alloc((fields_max + 1) * 2, varint(1, 0)))).toThrow(/fields/u);
  });

  it('decodes any bytes to facts or to one kind of error', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), fc.constantFrom(2004, 2006, 1017), (noise, field) => {
        const outcomes = [parseStatus, parseHistory, parseLocation].map((parse) => {
          try {
            return typeof parse(bytes(field, Buffer.from(noise)));
          } catch (error) {
            return error instanceof DeviceUnreachable ? 'unreachable' : error;
          }
        });
        for (const outcome of outcomes) expect(outcome).toMatch(/^(?:object|undefined|unreachable)$/u);
      }),
      { numRuns: 500 },
    );
  });

  it('has room for the history of a dish', () => {
    expect(message_max_bytes).toBeGreaterThan(900 * 4 * 10);
  });
});

describe('the ring of seconds', () => {
  const ring = (current: number, fill: (second: number) => [drop: number, latency: number]) => {
    const drop_rate = Array.from({ length: 900 }, () => 0);
    const latency_ms = Array.from({ length: 900 }, () => 999);
    for (let second = Math.max(0, current - 900); second < current; second += 1) {
      [drop_rate[second % 900], latency_ms[second % 900]] = fill(second);
    }
    return qualityOf({ current, drop_rate, latency_ms });
  };

  it('takes the newest minute, also across the end of the ring', () => {
    const current = 1_820;
    expect(ring(current, (second) => (second >= current - window_s ? [0, 40] : [1, 700]))).toEqual({
      latency_ms: 40,
      packet_loss_pct: 0,
    });
  });

  it('takes nothing from before the boot', () => {
    expect(ring(3, () => [0, 30])).toEqual({ latency_ms: 30, packet_loss_pct: 0 });
    expect(ring(0, () => [0, 30])).toEqual({ latency_ms: undefined, packet_loss_pct: undefined });
  });

  it('has no latency for a second that lost all its pings, and none of 0', () => {
    expect(ring(900, (second) => (second % 2 ? [1, 5] : [0, 50]))).toEqual({
      latency_ms: 50,
      packet_loss_pct: 50,
    });
    expect(ring(900, () => [1, 5])).toEqual({ latency_ms: undefined, packet_loss_pct: 100 });
    expect(ring(900, () => [0, 0])).toEqual({ latency_ms: undefined, packet_loss_pct: 0 });
  });

  it('omits values that are not shares or not numbers', () => {
    expect(ring(900, (second) => (second % 2 ? [Number.NaN, 40] : [0.5, Number.POSITIVE_INFINITY]))).toEqual({
      latency_ms: undefined,
      packet_loss_pct: 50,
    });
  });

  it('stays within bounds whatever the dish reports', () => {
    const any = fc.array(fc.float(), { maxLength: 50 });
    forAll(any, any, fc.nat(), (drop_rate, latency_ms, current) => {
      const { latency_ms: latency = 0, packet_loss_pct: loss = 0 } = qualityOf({
        current,
        drop_rate,
        latency_ms,
      });
      expect(Number.isFinite(latency) && latency >= 0).toBe(true);
      expect(loss >= 0 && loss <= 100).toBe(true);
    });
  });
});

describe('the position', () => {
  const place = (lat: number, lon: number, source: number) =>
    parseLocation(
      bytes(
        1017,
        Buffer.concat([
          bytes(1, Buffer.concat([double(1, lat), double(2, lon), double(3, 60)])),
          varint(3, source),
        ]),
      ),
    );

  it.each([4, 5, 6, 8, 9])('is a fix without a height when source %i found it', (source) => {
    expect(fixOf(place(59, 18, source)!, true)).toEqual({
      latitude: 59,
      longitude: 18,
      altitude: null,
      source: 'satellite',
      age_ms: 0,
    });
  });

  it.each([0, 1, 2, 3, 7, 10, 99])('is no fix when it comes from source %i', (source) => {
    expect(fixOf(place(59, 18, source)!, true)).toBeNull();
  });

  it('is no fix of the receiver when the receiver has none', () => {
    expect(fixOf(place(59, 18, 4)!, false)).toBeNull();
    expect(fixOf(place(59, 18, 4)!, undefined)).not.toBeNull();
    expect(fixOf(place(59, 18, 5)!, false)).not.toBeNull();
  });

  it('is none at 0, 0, beyond the poles, and without coordinates', () => {
    expect(place(0, 0, 6)).toBeUndefined();
    expect(place(91, 0, 6)).toBeUndefined();
    expect(place(0, 181, 6)).toBeUndefined();
    expect(place(Number.NaN, Number.NaN, 6)).toBeUndefined();
    expect(parseLocation(bytes(1017, varint(3, 6)))).toBeUndefined();
    expect(place(0, 18, 6)).toMatchObject({ latitude: 0 });
  });
});

describe('the words', () => {
  it('are empty for a dish that works', () => {
    expect(reasonOf(status(varint(1024, 1)))).toBeNull();
    expect(reasonOf(status())).toBeNull();
    expect(alertsText([])).toBeNull();
  });

  it('name the cause of an outage, also one that has no name yet and one that is left out because it is 0', () => {
    expect(reasonOf(status(bytes(1014, varint(1, 6))))).toBe('dish: obstructed');
    const causes = [5, 6, 7, 8, 2].map((outage) => causeOf(status(bytes(1014, varint(1, outage)))));
    expect(causes).toEqual(['no_satellite', 'obstructed', 'no_signal', 'no_answer', 'device']);
    expect(causeOf(status())).toBeNull();
    expect(reasonOf(status(bytes(1014, varint(1, 77))))).toBe('dish: outage of unknown cause');
    expect(reasonOf(status(bytes(1014, '')))).toBe('dish: outage of unknown cause');
  });

  it('name a blocked account before the outage that it causes', () => {
    const blocked = status(bytes(1014, varint(1, 8)), varint(1024, 2));
    expect(reasonOf(blocked)).toBe('dish: service is disabled: no active account');
    expect(reasonOf(status(varint(1024, 50)))).toBe('dish: service is disabled: code 50');
  });

  it('list the alerts, unknown ones by number', () => {
    expect(
      alertsText(status(bytes(1005, Buffer.concat([varint(9, 1), varint(3, 0), varint(21, 1)]))).alerts),
    ).toBe('melting snow, alert 21');
  });

  it('omit what the dish does not report', () => {
    expect(status()).toMatchObject({
      id: undefined,
      uptime_s: undefined,
      gps_valid: undefined,
      downlink_bps: undefined,
    });
    expect(parseStatus(bytes(3004, ''))).toBeUndefined();
  });
});
