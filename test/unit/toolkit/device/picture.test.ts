/** What counts as a picture. */
import { describe, expect, it } from 'vitest';
import { expectPicture, picture_bytes_max } from '../../../../src/toolkit/device/pictures/picture.ts';
import { samplePicture } from '../../../../src/toolkit/device/pictures/sample-picture.ts';
import { texts } from '../../../../src/toolkit/device/texts.ts';

describe('expectPicture', () => {
  it('takes a whole JPEG, also with some bytes behind its end', () => {
    const picture = samplePicture();
    expect(expectPicture(picture, 'image/jpeg')).toBe(picture);
    const padded = Buffer.concat([picture, Buffer.alloc(1_000)]);
    expect(expectPicture(padded, undefined)).toBe(padded);
  });

  it.each([
    ['a login page', Buffer.from('<html>log in</html>'), 'text/html'],
    ['nothing', Buffer.alloc(0), undefined],
    ['a JPEG that ends early', samplePicture().subarray(0, -2), 'image/jpeg'],
    [
      'the two markers alone, apart',
      Buffer.concat([Buffer.from([0xff, 0xd9]), Buffer.alloc(5_000)]),
      'image/jpeg',
    ],
  ])('refuses %s', (_what, bytes, type) => {
    expect(() => expectPicture(bytes, type)).toThrow(texts.picture_not_jpeg(type ?? texts.no_type));
  });

  it('refuses a picture above the limit', () => {
    const large = Buffer.concat([samplePicture(), Buffer.alloc(picture_bytes_max)]);
    expect(() => expectPicture(large, 'image/jpeg')).toThrow(texts.picture_too_large(picture_bytes_max));
  });

  it('names what came instead of a picture, without control characters', () => {
    const named = texts.picture_not_jpeg('a ]52;c;x b');
    expect(() => expectPicture(Buffer.from('<svg'), 'a\u001b]52;c;x\r\nb')).toThrow(named);
  });
});
