// What is wrong with a command line that a document shows.
import type { CommandUnknownOpts } from '@commander-js/extra-typings'
import { PROGRAMS } from '../../scripts/docs-pages/programs.ts'

/** The words of a line behind variables that it sets, when it runs one of our programs. */
export function ownCommand(words: readonly string[]): { program: string; rest: readonly string[] } | null {
  const first = words.findIndex((word) => !/^[A-Z_]+=/.test(word))
  const program = (words[first] ?? '').replace(/^(\.\/)?dist\//, '')
  return Object.hasOwn(PROGRAMS, program) ? { program, rest: words.slice(first + 1) } : null
}

const FOR_ALL = ['--help', '-h', '--version', '-V', '-v']

/** Null means that the program takes it. `partly`: arguments and values of flags may be left out, as in running text.
 */
export function commandProblem(program: string, rest: readonly string[], { partly = false } = {}): string | null {
  const root = PROGRAMS[program]
  if (root === undefined) return `there is no program ${program}`
  let command: CommandUnknownOpts = root
  const path = [program]
  const flags = [...command.options]
  const given: string[] = []
  for (let at = 0; at < rest.length; at += 1) {
    const word = rest[at] ?? ''
    const inner: CommandUnknownOpts | undefined =
      given.length === 0 ? command.commands.find((one) => [one.name(), ...one.aliases()].includes(word)) : undefined
    if (inner !== undefined) {
      command = inner
      path.push(word)
      flags.push(...inner.options)
    } else if (word.startsWith('-') && word !== '-') {
      if (FOR_ALL.includes(word)) continue
      const [flag = '', inline] = word.split('=')
      const option = flags.find(({ long, short }) => long === flag || short === flag)
      if (option === undefined) return `${path.join(' ')} has no flag ${flag}`
      if (!option.required) continue
      const value = inline ?? rest[at + 1]
      if (inline === undefined) at += 1
      if (value === undefined && !partly) return `${path.join(' ')} ${flag} needs a value`
      if (value !== undefined && option.argChoices !== undefined && !option.argChoices.includes(value))
        return `${path.join(' ')} ${flag} takes ${option.argChoices.join(', ')}, not ${value}`
    } else given.push(word)
  }
  const taken = command.registeredArguments
  if (given.length > taken.length && taken.at(-1)?.variadic !== true) return `${path.join(' ')} takes no argument ${given.at(taken.length)}`
  const lacking = taken.slice(given.length).find(({ required }) => required)
  return lacking === undefined || partly ? null : `${path.join(' ')} needs <${lacking.name()}>`
}
