// `--reason` of every command that writes: it goes into the audit log.
import type { CommandUnknownOpts } from '@commander-js/extra-typings'

/** Commands whose requests change something. */
const WRITING = [
  ...['apply', 'delete', 'confirm', 'refuse', 'sync', 'refresh', 'token create', 'token revoke', 'token exchange', 'join-token create'],
  ...['join-token delete', 'restore confirm', 'server-key rotate', 'server-key revoke', 'suspend', 'resume'],
] as const

/** Adds the option to those that are loaded and have none. */
export function addReasons(program: CommandUnknownOpts): void {
  for (const words of WRITING) {
    const named = (at: CommandUnknownOpts | undefined, word: string) => at?.commands.find((one) => one.name() === word)
    const command = words.split(' ').reduce<CommandUnknownOpts | undefined>(named, program)
    if (command === undefined || command.options.some(({ long }) => long === '--reason')) continue
    command.option('--reason <text>', 'reason to record in the audit log')
  }
}

export function reasonGiven(command: CommandUnknownOpts): string | undefined {
  const { reason } = command.opts() as { reason?: unknown }
  return typeof reason === 'string' && reason !== '' ? reason : undefined
}
