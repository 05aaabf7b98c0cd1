// One table describes all options of a program: flags, environment names, help and checks derive from it. All errors
// are reported at once, by name.
import { durationMs } from './durations.ts'
import type { Problem } from './error.ts'

/** `listen`: an address or `unix:PATH`; `mode`: a file mode such as 0660. */
type OptionType = 'text' | 'flag' | 'integer' | 'address' | 'listen' | 'mode' | 'interval'

export interface OptionEntry {
  type: OptionType
  /** One sentence. */
  help: string
  default?: string
  required?: boolean
  choices?: readonly string[]
  /** The least integer. */
  min?: number
  max?: number
  /** The least interval. */
  leastMs?: number
  /** Shown for the value in `--help`: DIR, URL. */
  placeholder?: string
  /** Never printed, not even by a bad value's message. */
  secret?: boolean
}
export type OptionTable = Record<string, OptionEntry>

export type OptionValues<T extends OptionTable> = {
  [K in keyof T]: T[K]['type'] extends 'flag'
    ? boolean
    : T[K]['type'] extends 'integer' | 'interval'
      ? number | (T[K] extends { default: string } | { required: true } ? never : undefined)
      : string | (T[K] extends { default: string } | { required: true } ? never : undefined)
}

/** `joinToken` → `--join-token`. */
export const flagName = (name: string): string => `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`
/** `joinToken` → `SKERRY_JOIN_TOKEN`. */
export const envName = (name: string): string => `SKERRY_${name.replace(/[A-Z]/g, '_$&').toUpperCase()}`

/** A flag given on the command line wins over the environment, which wins over the default. */
export function readOptions<const T extends OptionTable>(
  table: T,
  flags: Record<string, string | boolean | undefined>,
  env: Record<string, string | undefined>,
): { kind: 'options'; options: OptionValues<T> } | { kind: 'problems'; problems: Problem[] } {
  const problems: Problem[] = []
  const options: Record<string, unknown> = {}
  for (const [name, entry] of Object.entries(table)) {
    const given = flags[name] ?? env[envName(name)] ?? entry.default
    const path = `${flagName(name)} (${envName(name)})`
    if (entry.type === 'flag') {
      options[name] = given === true || given === '1' || given === 'true'
    } else if (given === undefined || given === '') {
      if (entry.required) problems.push({ path, message: `is required: ${entry.help}` })
    } else {
      const shown = entry.secret ? '***' : JSON.stringify(given)
      const wrong = checkValue(entry, String(given))
      if (wrong === null) options[name] = readValue(entry, String(given))
      else problems.push({ path, message: `${wrong}, not ${shown}` })
    }
  }
  return problems.length > 0 ? { kind: 'problems', problems } : { kind: 'options', options: options as OptionValues<T> }
}

/** An interval is milliseconds, and 0 for `off`. */
function readValue({ type }: OptionEntry, given: string): string | number {
  if (type === 'interval') return given === OFF ? 0 : durationMs(given)
  return type === 'integer' ? Number(given) : given
}

const OFF = 'off'
const LISTEN = /^unix:[^\0]+$/

function checkInterval({ leastMs = 0 }: OptionEntry, value: string): string | null {
  if (value === OFF) return null
  const ms = durationMs(value)
  if (Number.isNaN(ms)) return `expected ${OFF}, or a whole number with s, m, h or d, such as 24h`
  return ms < leastMs ? `expected ${OFF}, or at least ${leastMs / 60_000}m` : null
}

function checkValue(entry: OptionEntry, value: string): string | null {
  if (entry.choices !== undefined && !entry.choices.includes(value)) return `expected one of ${entry.choices.join(', ')}`
  if (entry.type === 'integer' && !/^\d{1,9}$/.test(value)) return 'expected a whole number'
  if (entry.type === 'integer' && entry.max !== undefined && Number(value) > entry.max) return `expected a whole number up to ${entry.max}`
  if (entry.type === 'integer' && entry.min !== undefined && Number(value) < entry.min) return `expected a whole number from ${entry.min}`
  if (entry.type === 'interval') return checkInterval(entry, value)
  if (entry.type === 'mode' && !/^0?[0-7]{3}$/.test(value)) return 'expected a file mode of three octal digits, such as 0660'
  if (entry.type === 'listen')
    return LISTEN.test(value) || parseAddress(value) !== null ? null : 'expected HOST:PORT, such as 0.0.0.0:8080, or unix:PATH'
  if (entry.type === 'address' && parseAddress(value) === null) return 'expected HOST:PORT, such as 0.0.0.0:8080 or [::1]:8080'
  return null
}

export function parseAddress(text: string): { hostname: string; port: number } | null {
  const match = /^(\[[0-9a-fA-F:.]+\]|[^:\s]*):(\d{1,5})$/.exec(text)
  if (!match || Number(match[2]) > 65_535) return null
  return { hostname: (match[1] ?? '').replace(/^\[|\]$/g, '') || '0.0.0.0', port: Number(match[2]) }
}
