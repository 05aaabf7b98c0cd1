// Words that can follow those that were typed so far: from the tree of commands, and by names that the server or a
// cache knows.
import type { CommandUnknownOpts } from '@commander-js/extra-typings'
import { ACCESS_KINDS, ACCESS_VERBS } from '../../../shared/model/access-words.ts'
import { KIND_WORDS, KINDS, type Kind, kindOf, singular } from '../kinds.ts'
import { OUTPUTS } from '../outputs.ts'

export interface Candidate {
  value: string
  about: string
}
export type Completion = Candidate[] | 'files'

/** Lists of the server whose items have names, beside kinds of resources. */
export type NamedList = Kind | 'sessions' | 'agents'

/** Words of the line that say which names are meant. */
export interface Within {
  project?: string | undefined
  cluster?: string | undefined
}

/** Where the command line does not know the words itself. Never throws; nothing is found when it cannot be found soon.
 */
export interface Names {
  ofList(list: NamedList, within: Within): Promise<readonly string[]>
  /** `deployment/shop/web`, of one cluster. */
  objects(cluster: string): Promise<readonly string[]>
  contexts(): readonly string[]
}

type Tree = CommandUnknownOpts
type Option = Tree['options'][number]

/** Kinds that no list has, or whose items have no name of their own. */
const NAMELESS: readonly Kind[] = ['placements', 'objects', 'events', 'suspensions']
const isNamed = (kind: Kind | null): kind is Kind => kind !== null && !NAMELESS.includes(kind)

/** `kind`: a kind or `kind/name`; `name`: of that kind; `object`: an object of a cluster; `free`: nobody knows. */
type Source = NamedList | readonly NamedList[] | 'kind' | 'name' | 'object' | 'context' | 'file' | 'verb' | 'access kind' | 'free'

/** Each argument by its command. A test knows those of all commands. */
export const ARGUMENTS: Readonly<Record<string, Source>> = {
  ...Object.fromEntries(
    ['get', 'describe', 'history', 'wait', 'refresh', 'delete'].flatMap(
      (verb): Array<[string, Source]> => [
        [`${verb} kind`, 'kind'],
        [`${verb} ${verb === 'delete' ? 'names' : 'name'}`, 'name'],
      ],
    ),
  ),
  ...Object.fromEntries(['trace', 'logs', 'tree', 'restart'].map((verb): [string, Source] => [`${verb} object`, 'object'])),
  ...{ 'sync service': 'services', 'diff service': 'services', 'render service': 'services', 'why service': 'services' },
  ...{
    'suspend services': 'services',
    'resume services': 'services',
    'confirm id': 'confirmations',
    'refuse id': 'confirmations',
    'query sql': 'free',
  },
  ...{ 'session revoke id': 'sessions', 'token create name': 'free', 'token revoke id': ['tokens', 'agents'] },
  ...{ 'join-token delete id': 'join-tokens', 'notify test sink': 'notification-sinks', 'notify retry id': 'notifications' },
  ...{ 'cluster join-command name': 'free', 'audit verify file': 'file', 'explain field': 'kind' },
  ...{ 'auth can-i verb': 'verb', 'auth can-i kind': 'access kind', 'auth who-can verb': 'verb', 'auth who-can kind': 'access kind' },
  ...{ 'config use-context name': 'context', 'config set-context name': 'context', 'config delete-context name': 'context' },
  ...{ 'backup list place': 'file', 'backup verify backup': 'file', 'backup restore backup': 'file', 'bundle verify bundle': 'file' },
  ...{ 'cluster rotate-recipient clusters': 'clusters', 'webhook-secret create repository': 'repositories' },
}
const BY_OPTION: Readonly<Record<string, NamedList>> = {
  '--cluster': 'clusters',
  '--service': 'services',
  '--project': 'projects',
  '--saved': 'saved-queries',
}
const FILE_OPTIONS: readonly string[] = ['--filename', '--server-ca', '--token-file', '--rule', '--dir', '--to', '--data', '--jwt-file']
const VERB_HELP = 'help for a command'

/** `words`: after the program, the last one is being typed and may be empty. */
export async function candidatesFor(program: Tree, words: readonly string[], names: Names): Promise<Completion> {
  const current = words.at(-1) ?? ''
  const before = words.slice(0, -1)
  const { command, positionals, open } = walk(program, before)
  const line = { names, within: withinOf(before) }
  if (open !== null) return ofOption(open, current, '', line)
  const [, flag, typed] = /^(--[\w-]+)=(.*)$/s.exec(current) ?? []
  if (flag !== undefined && typed !== undefined) {
    const option = optionOf(command, flag)
    return option === null ? [] : ofOption(option, typed, `${flag}=`, line)
  }
  if (current.startsWith('-') && !before.includes('--')) return matching(flagsOf(command), current)
  if (command.commands.length > 0) {
    const subcommands = command.commands.map((sub) => ({ value: sub.name(), about: sub.description() }))
    return matching(command === program ? [...subcommands, { value: 'help', about: VERB_HELP }] : subcommands, current)
  }
  return ofArgument(command, positionals, current, line)
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

interface Line {
  names: Names
  within: Within
}

/** Values of options that were typed before. */
function withinOf(words: readonly string[]): Within {
  const typedOf = (...flags: readonly string[]) => {
    const at = words.findLastIndex((word) => flags.includes(word.replace(/=.*$/s, '')))
    const word = words[at] ?? ''
    return at < 0 ? undefined : word.includes('=') ? word.slice(word.indexOf('=') + 1) : words[at + 1]
  }
  return { project: typedOf('--project', '-p'), cluster: typedOf('--cluster') }
}

async function ofOption(option: Option, typed: string, prefix: string, { names, within }: Line): Promise<Completion> {
  const { long, argChoices } = option
  const list = BY_OPTION[long ?? '']
  const plain = async (): Promise<readonly string[]> => {
    if (argChoices !== undefined) return argChoices
    if (long === '--output') return [...OUTPUTS, 'jsonpath=', 'custom-columns=']
    if (long === '--context') return names.contexts()
    return list === undefined ? [] : names.ofList(list, within)
  }
  if (FILE_OPTIONS.includes(long ?? '')) return 'files'
  return matching(
    (await plain()).map((value) => ({ value: `${prefix}${value}`, about: '' })),
    `${prefix}${typed}`,
  )
}

async function ofArgument(command: Tree, positionals: readonly string[], current: string, line: Line): Promise<Completion> {
  const { names, within } = line
  const argument = command.registeredArguments[Math.min(positionals.length, command.registeredArguments.length - 1)]
  if (argument === undefined || (positionals.length >= command.registeredArguments.length && !argument.variadic)) return []
  if (argument.argChoices !== undefined) return matching(texts(argument.argChoices), current)
  const source = ARGUMENTS[`${pathOf(command)} ${argument.name()}`] ?? 'free'
  switch (source) {
    case 'free':
      return []
    case 'file':
      return 'files'
    case 'kind':
      return ofKind(command.name(), current, line)
    case 'name': {
      const kind = kindOf(positionals[0] ?? '')
      return isNamed(kind) ? matching(texts(await names.ofList(kind, within)), current) : []
    }
    case 'object':
      return within.cluster === undefined ? [] : matching(texts(await names.objects(within.cluster)), current)
    case 'context':
      return matching(texts(names.contexts()), current)
    case 'verb':
      return matching(texts(ACCESS_VERBS), current)
    case 'access kind':
      return matching(texts(ACCESS_KINDS.map(hyphenated)), current)
    default: {
      const lists = typeof source === 'string' ? [source] : source
      const found = await Promise.all(lists.map((list) => names.ofList(list, within)))
      return matching(texts(found.flat()), current)
    }
  }
}

/** `token revoke`. */
const pathOf = (command: Tree): string => {
  const parent = command.parent
  return parent?.parent ? `${pathOf(parent)} ${command.name()}` : command.name()
}
/** `role-binding` for `RoleBinding`. */
const hyphenated = (kind: string): string => kind.replaceAll(/(?<=[a-z])(?=[A-Z])/g, '-').toLowerCase()

/** A kind, or `kind/name`. */
async function ofKind(verb: string, current: string, { names, within }: Line): Promise<Completion> {
  const slash = current.indexOf('/')
  const kind = slash < 0 ? null : kindOf(current.slice(0, slash))
  if (isNamed(kind)) {
    const named = (await names.ofList(kind, within)).map((name) => `${current.slice(0, slash)}/${name}`)
    return matching(texts(named), current)
  }
  const found = matching(texts(verb === 'get' ? KINDS : KINDS.map(singular)), current)
  return found.length > 0 ? found : matching(texts(KIND_WORDS), current)
}

const texts = (values: readonly string[]): Candidate[] => values.map((value) => ({ value, about: '' }))
const matching = (candidates: readonly Candidate[], current: string): Candidate[] =>
  candidates.filter(({ value }) => value.startsWith(current))
