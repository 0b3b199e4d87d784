/** Where an open buffer file is: somebody may have deleted or replaced it, its log, or their folder. */
import { rmSync } from 'node:fs';
import { watchPlaces } from '../../../platform/files/file-identity.ts';

export interface Place {
  /** `log_lost`: only the log, or its index, was deleted or replaced. */
  readonly look: () => 'kept' | 'log_lost' | 'lost';
  /** The next file must not find the log of this one. A log that came with another file is left. */
  readonly removeLog: () => void;
}

/** To be called when the file and its log exist. */
export function placeOf(file: string): Place {
  const log = `${file}-wal`;
  const displaced = watchPlaces([file, log, `${file}-shm`]);
  return {
    look: () => {
      const paths = displaced();
      if (paths.includes(file)) return 'lost';
      return paths.length > 0 ? 'log_lost' : 'kept';
    },
    removeLog: () => {
      if (!displaced().includes(log)) rmSync(log, { force: true });
    },
  };
}
