// Words that can follow those that were typed so far: from the tree of commands, and by names that the server or a cache knows.
import type { CommandUnknownOpts } from '@commander-js/extra-typings'
import { KIND_WORDS, KINDS, type Kind, kindOf, singular } from '../kinds.ts'
import { OUTPUTS } from '../outputs.ts'

export interface Candidate {
  value: string
  about: string
}
export type Completion = Candidate[] | 'files'

/** Where the command line does not know the words itself. Never throws; nothing is found when it cannot be found soon. */
export interface Names {
  ofKind(kind: Kind): Promise<readonly string[]>
  contexts(): readonly string[]
}

type Tree = CommandUnknownOpts
type Option = Tree['options'][number]

const NAMED_KINDS: readonly Kind[] = [
  'clusters',
  'services',
  'repositories',
  'configs',
  'health-rules',
  'notification-sinks',
  'notification-routes',
  'confirmations',
  'saved-queries',
  'tokens',
  'join-tokens',
]
const BY_OPTION: Readonly<Record<string, Kind>> = { '--cluster': 'clusters', '--service': 'services' }
const FILE_OPTIONS: readonly string[] = ['--filename', '--server-ca', '--token-file', '--rule', '--dir', '--to', '--data']
const TAKES_KIND: readonly string[] = ['get', 'describe', 'delete', 'wait', 'history', 'refresh', 'explain']
const TAKES_SERVICES: readonly string[] = ['sync', 'suspend', 'resume', 'render', 'target']
const VERB_HELP = 'help for a command'

/** `words`: after the program, the last one is being typed and may be empty. */
export async function candidatesFor(program: Tree, words: readonly string[], names: Names): Promise<Completion> {
  const current = words.at(-1) ?? ''
  const before = words.slice(0, -1)
  const { command, positionals, open } = walk(program, before)
  if (open !== null) return ofOption(open, current, '', names)
  const [, flag, typed] = /^(--[\w-]+)=(.*)$/s.exec(current) ?? []
  if (flag !== undefined && typed !== undefined) {
    const option = optionOf(command, flag)
    return option === null ? [] : ofOption(option, typed, `${flag}=`, names)
  }
  if (current.startsWith('-') && !before.includes('--')) return matching(flagsOf(command), current)
  if (command.commands.length > 0) {
    const subcommands = command.commands.map((sub) => ({ value: sub.name(), about: sub.description() }))
    return matching(command === program ? [...subcommands, { value: 'help', about: VERB_HELP }] : subcommands, current)
  }
  return ofArgument(command, positionals, current, names)
}

/** The command that the words name, its arguments so far, and an option that still needs its value. */
function walk(program: Tree, words: readonly string[]): { command: Tree; positionals: string[]; open: Option | null } {
  let command = program
  let open: Option | null = null
  const positionals: string[] = []
  for (const word of words) {
    if (open !== null) open = null
    else if (word.startsWith('-') && word !== '-') {
      const option = word.includes('=') ? null : optionOf(command, word)
      open = option?.required === true ? option : null
    } else {
      const sub = command.commands.find((one) => one.name() === word)
      if (sub !== undefined && positionals.length === 0) command = sub
      else if (!(command === program && word === 'help')) positionals.push(word)
    }
  }
  return { command, positionals, open }
}

function optionsOf(command: Tree): Option[] {
  const own = [...command.options]
  return command.parent === null ? own : [...own, ...optionsOf(command.parent)]
}
const optionOf = (command: Tree, flag: string): Option | null =>
  optionsOf(command).find(({ long, short }) => long === flag || short === flag) ?? null
const flagsOf = (command: Tree): Candidate[] => [
  ...optionsOf(command).flatMap(({ long, description }) => (long ? [{ value: long, about: description }] : [])),
  { value: '--help', about: 'display help for command' },
]

async function ofOption(option: Option, typed: string, prefix: string, names: Names): Promise<Completion> {
  const { long, argChoices } = option
  const kind = BY_OPTION[long ?? '']
  const plain = async (): Promise<readonly string[]> => {
    if (argChoices !== undefined) return argChoices
    if (long === '--output') return [...OUTPUTS, 'jsonpath=', 'custom-columns=']
    if (long === '--context') return names.contexts()
    return kind === undefined ? [] : names.ofKind(kind)
  }
  if (FILE_OPTIONS.includes(long ?? '')) return 'files'
  return matching(
    (await plain()).map((value) => ({ value: `${prefix}${value}`, about: '' })),
    `${prefix}${typed}`,
  )
}

async function ofArgument(command: Tree, positionals: readonly string[], current: string, names: Names): Promise<Completion> {
  const verb = command.name()
  const parent = command.parent?.name()
  const argument = command.registeredArguments[Math.min(positionals.length, command.registeredArguments.length - 1)]
  if (argument === undefined || (positionals.length >= command.registeredArguments.length && !argument.variadic)) return []
  if (argument.argChoices !== undefined) return matching(texts(argument.argChoices), current)
  if (parent === 'config') return matching(texts(names.contexts()), current)
  if (TAKES_SERVICES.includes(verb)) return matching(texts(await names.ofKind('services')), current)
  if (verb === 'confirm') return matching(texts(await names.ofKind('confirmations')), current)
  if (parent === 'token' || parent === 'join-token')
    return matching(texts(await names.ofKind(parent === 'token' ? 'tokens' : 'join-tokens')), current)
  if (!TAKES_KIND.includes(verb)) return []
  const [first] = positionals
  if (first !== undefined) {
    const kind = kindOf(first)
    return kind === null || !NAMED_KINDS.includes(kind) ? [] : matching(texts(await names.ofKind(kind)), current)
  }
  const slash = current.indexOf('/')
  const kind = slash < 0 ? null : kindOf(current.slice(0, slash))
  if (kind !== null && NAMED_KINDS.includes(kind)) {
    const named = (await names.ofKind(kind)).map((name) => `${current.slice(0, slash)}/${name}`)
    return matching(texts(named), current)
  }
  const kinds = verb === 'explain' ? KINDS.map(singular) : verb === 'get' ? KINDS : KINDS.map(singular)
  const found = matching(texts(kinds), current)
  return found.length > 0 ? found : matching(texts(KIND_WORDS), current)
}

const texts = (values: readonly string[]): Candidate[] => values.map((value) => ({ value, about: '' }))
const matching = (candidates: readonly Candidate[], current: string): Candidate[] =>
  candidates.filter(({ value }) => value.startsWith(current))
