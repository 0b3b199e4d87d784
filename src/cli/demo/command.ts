/** The subcommand `demo`. The package excludes this file, and with it the demo and its simulators. */
import type { Command } from 'commander';
import type { Act } from '../terminal/shell.ts';

export function addDemo(program: Command, act: Act): void {
  program
    .command('demo')
    .description('run a demo: embedded broker, simulated devices, this machine as the kit')
    .option('-v, --verbose', 'whole messages, including command definitions')
    .action(act(async () => (await import('./demo.ts')).demo));
}
