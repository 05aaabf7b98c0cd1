// __complete SHELL -- WORDS…: what the scripts of the shells ask. It never fails and never writes an error: a person is
// typing.
import type { CommandUnknownOpts } from '@commander-js/extra-typings'
import { plainText } from '../columns.ts'
import type { CliIo } from '../io.ts'
import { type Candidate, candidatesFor, type Names } from './candidates.ts'
import { FILES } from './scripts.ts'

/** Bash takes `--for=healthy` for three words and replaces only the last one. */
export function joinEquals(words: readonly string[]): string[] {
  const joined: string[] = []
  for (let i = 0; i < words.length; i++) {
    const word = words[i] ?? ''
    if (word === '=' && (joined.at(-1) ?? '').startsWith('--')) joined.push(`${joined.pop()}=${words[++i] ?? ''}`)
    else joined.push(word)
  }
  return joined
}

export async function complete(
  io: CliIo,
  program: CommandUnknownOpts,
  shell: string,
  words: readonly string[],
  names: Names,
): Promise<void> {
  const typed = shell === 'bash' ? joinEquals(words) : [...words]
  const found = await candidatesFor(program, typed, names)
  if (found === 'files') return void io.stdout.write(`${FILES}\n`)
  const current = typed.at(-1) ?? ''
  const isJoined = shell === 'bash' && words.at(-1) !== current
  const prefix = isJoined ? current.slice(0, current.indexOf('=') + 1) : ''
  io.stdout.write(found.map((candidate) => line(candidate, prefix, shell)).join(''))
}

const ABOUT_MAX = 60
function line({ value, about }: Candidate, prefix: string, shell: string): string {
  const shown = value.startsWith(prefix) ? value.slice(prefix.length) : value
  const text = plainText(about)
  const description = text.length > ABOUT_MAX ? `${text.slice(0, ABOUT_MAX - 1)}…` : text
  return shell === 'bash' || (description === '' && shell === 'fish') ? `${shown}\n` : `${shown}\t${description}\n`
}
