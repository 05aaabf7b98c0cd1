// `skerry-agent profile`: processor time and memory of the running agent.
import { resolve } from 'node:path'
import { Argument, type Command, Option } from 'commander'
import { AppError, isErrorCode, problemBodySchema } from '../../shared/runtime/error.ts'
import { RUN_OPTIONS } from '../config.ts'
import { socketPath } from '../local-api.ts'
import { PROFILES, type ProfileKind } from '../observe/local-profiles.ts'
import { examples } from './edge-commands.ts'

/** Longer than the longest profile. */
const PATIENCE_MS = 90_000

export function addProfileCommand(program: Command, { out }: { out(text: string): void }): void {
  program
    .command('profile')
    .description('Print a profile of the running agent: processor time, or memory')
    .addHelpText(
      'before',
      examples('profile cpu --seconds 30 >agent.cpuprofile', 'profile heap', 'profile heap-snapshot >agent.heapsnapshot'),
    )
    .addHelpText('after', '\nThe developer tools of Chromium open .cpuprofile and .heapsnapshot files.')
    .addArgument(new Argument('<kind>', 'what to measure').choices(PROFILES))
    .option('--seconds <COUNT>', 'duration of a cpu profile, 1 to 60', '10')
    .addOption(new Option('--data <DIR>', 'data folder of the agent').env('SKERRY_DATA').default(RUN_OPTIONS.data.default))
    .action(async (kind: ProfileKind, { data, seconds }: { data: string; seconds: string }) => {
      const url = `http://agent/profile/${kind}${kind === 'cpu' ? `?seconds=${encodeURIComponent(seconds)}` : ''}`
      const answer = await fetch(url, { unix: socketPath(resolve(data)), signal: AbortSignal.timeout(PATIENCE_MS) }).catch((cause) => {
        throw new AppError(
          'unavailable',
          { doing: 'profile', detail: `no agent answers on ${resolve(data)}`, remedy: 'Start the agent, or set --data.' },
          { cause },
        )
      })
      if (answer.ok) return out(`${await answer.text()}\n`)
      const { code, detail, remedy } = problemBodySchema.parse(await answer.json())
      throw new AppError(isErrorCode(code) ? code : 'internal', {
        ...(detail === undefined ? {} : { detail }),
        ...(remedy === undefined ? {} : { remedy }),
      })
    })
}
