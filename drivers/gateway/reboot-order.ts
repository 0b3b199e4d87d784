/** The restart that was ordered last, as `reboot.json` of the instance keeps it until it is concluded. */
import { z } from 'zod';

export const rebootOrder = z.strictObject({ boot_id: z.string().min(1).max(64) });
