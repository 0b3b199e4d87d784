/** Choices in the schema of a command. */
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { withChoices } from '../../../../src/toolkit/driver/choices.ts';
import { defineCommand } from '../../../../src/toolkit/driver/command.ts';
import { payloadFaults } from '../../../../src/cloud/api/payload.ts';

const command = defineCommand({
  name: 'ptz_preset',
  description: 'goes there',
  risk_level: 'low',
  input: z.strictObject({ preset_id: z.int().min(0).max(255).describe('of the list') }),
  handle: async () => Promise.resolve({}),
});

describe('withChoices', () => {
  it('shows each value with its title, and the service accepts these values only', () => {
    const { input_schema } = withChoices(command, 'preset_id', [
      { value: 1, title: 'Door' },
      { value: 2, title: '' },
    ]);
    expect(input_schema).toMatchObject({
      required: ['preset_id'],
      properties: {
        preset_id: {
          description: 'of the list',
          oneOf: [
            { const: 1, title: 'Door' },
            { const: 2, title: '2' },
          ],
        },
      },
    });
    expect(payloadFaults(input_schema, { preset_id: 2 })).toEqual([]);
    expect(payloadFaults(input_schema, { preset_id: 3 })).toHaveLength(1);
  });

  it.each([0, 257])('leaves the command as it is with %d choices', (count) => {
    const choices = Array.from({ length: count }, (_none, value) => ({ value, title: `${value}` }));
    expect(withChoices(command, 'preset_id', choices)).toBe(command);
  });

  it('lets the driver decide about a value that is not in the list', () => {
    const chosen = withChoices(command, 'preset_id', [{ value: 1, title: 'Door' }]);
    expect(() => chosen.read({ preset_id: 9 })).not.toThrow();
  });
});
