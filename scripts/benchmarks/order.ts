// Arguments and help of `scripts/bench`. Pure.
import { type BenchmarkName, type PartEntry, partsOf, TABLE } from './table.ts'

export type BenchOrder =
  | { kind: 'run'; name: BenchmarkName; only: string | null; json: boolean; corpus?: string }
  | { kind: 'help' }
  | { kind: 'wrong'; why: string }

/** Arguments of `scripts/bench`. */
export function readOrder(words: readonly string[]): BenchOrder {
  const wrong = (why: string): BenchOrder => ({ kind: 'wrong', why })
  if (words.includes('--help') || words.includes('-h')) return { kind: 'help' }
  const names: string[] = []
  let only: string | null = null
  let json = false
  let corpus: string | null = null
  for (let at = 0; at < words.length; at++) {
    const word = words[at] ?? ''
    if (word === '--json') json = true
    else if (word === '--only') only = words[++at] ?? ''
    else if (word === '--corpus') corpus = words[++at] ?? ''
    else if (word.startsWith('-')) return wrong(`unknown option ${word}; options: --only PART, --corpus FILE, --json, --help`)
    else names.push(word)
  }
  const [name = ''] = names
  const benchmarks = `benchmarks: ${Object.keys(TABLE).join(', ')}`
  if (names.length !== 1) return wrong(`expected one benchmark, got ${names.length}; ${benchmarks}`)
  if (!isBenchmark(name)) return wrong(`unknown benchmark ${name}; ${benchmarks}`)
  const parts = partsOf(name)
  if (only !== null && !Object.hasOwn(parts, only))
    return wrong(`unknown part ${only || '(none)'} of ${name}; parts: ${Object.keys(parts).join(', ')}`)
  if (name === 'health' && !corpus) return wrong('health needs --corpus FILE: objects with their verdicts, one JSON object a line')
  if (name !== 'health' && corpus !== null) return wrong(`--corpus is for health only, not for ${name}`)
  return { kind: 'run', name, only, json, ...(corpus === null ? {} : { corpus }) }
}

const isBenchmark = (name: string): name is BenchmarkName => Object.hasOwn(TABLE, name)

export function helpText(): string {
  const lines = ['Benchmarks, their parts with the approximate time of each, and figures with their meaning:']
  for (const [name, parts] of Object.entries<Readonly<Record<string, PartEntry>>>(TABLE)) {
    lines.push('', name)
    for (const [part, { seconds, figures, alone }] of Object.entries(parts)) {
      lines.push(`  --only ${part} (${seconds} s${alone === true ? ', not part of a full run' : ''})`)
      for (const [figure, meaning] of Object.entries(figures)) lines.push(`    ${figure.padEnd(42)} ${meaning}`)
    }
  }
  return `${lines.join('\n')}\n`
}
