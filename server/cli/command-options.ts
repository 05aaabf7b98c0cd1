// Options that several commands share, and what is read of them.
import { Option } from '@commander-js/extra-typings'
import { DEFAULT_PROJECT } from '../../shared/model/constants.ts'
import type { Context } from './context.ts'
import { UsageError } from './io.ts'
import { OUTPUT_HELP, parseOutput } from './outputs.ts'

export const SERVER_DEFAULT = 'http://127.0.0.1:8080'
export const output = () => new Option('-o, --output <form>', OUTPUT_HELP).argParser(parseOutput)
export const projectOption = () =>
  new Option('-p, --project <name>', 'project (env: SKERRY_PROJECT)').default(
    DEFAULT_PROJECT,
    `the project of the context, else ${DEFAULT_PROJECT}`,
  )
export const collect = (value: string, before: string[] | undefined): string[] => [...(before ?? []), value]
export const examples = (...lines: string[]): string => `Examples:\n${lines.map((line) => `  ${line}\n`).join('')}`

/** The project that `--project` names, else that of the environment, else that of the context. */
export const projectOf = <T extends { project: string }>({ io, connection }: Context, options: T, given: boolean): T =>
  given ? options : { ...options, project: io.env['SKERRY_PROJECT'] || (connection().project ?? DEFAULT_PROJECT) }

/** Health rules without a project are of the whole fleet: for them only a project that is named counts. */
export const scoped = <T extends { project: string }>(context: Context, options: T, given: boolean) => ({
  ...projectOf(context, options, given),
  givenProject: given ? options.project : undefined,
})

/** Whether `--project` was typed. */
export const isGiven = (command: { getOptionValueSource(name: string): string | undefined }): boolean =>
  command.getOptionValueSource('project') === 'cli'

/** `12h` as milliseconds. */
export function durationArgument(text: string): number {
  // Own pattern: the schema of durations would load zod before the arguments are parsed.
  const [, count = '', unit = ''] = /^([1-9][0-9]*)(ms|s|m|h|d)$/.exec(text) ?? []
  if (unit === '') throw new UsageError(`expected a duration such as 90s, 15m, 12h or 7d, not "${text}"`)
  return Number(count) * { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }[unit as 'ms' | 's' | 'm' | 'h' | 'd']
}

export function wholeNumber(max: number) {
  return (text: string): number => {
    if (!/^\d{1,6}$/.test(text) || Number(text) < 1 || Number(text) > max)
      throw new UsageError(`expected a whole number from 1 to ${max}, not "${text}"`)
    return Number(text)
  }
}
