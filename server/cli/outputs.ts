// Forms of output and other words of options, apart from what they choose between.
import { UsageError } from './io.ts'
import { JsonPathError, parseJsonPath } from './printing/jsonpath.ts'

export const OUTPUTS = ['json', 'yaml', 'wide', 'name'] as const
export type Output = (typeof OUTPUTS)[number] | `jsonpath=${string}` | `custom-columns=${string}` | undefined

export const OUTPUT_HELP = 'output format: json, yaml, wide, name, jsonpath=TEMPLATE, custom-columns=TITLE:PATH,…'

export const DIFF_OUTPUTS = ['diff', 'summary', 'json'] as const

/** Keys of a server that can be replaced. */
export const ROTATED_KEYS = ['signing', 'mac', 'secrets'] as const

/** A template with an error is refused before a server is asked. */
export function parseOutput(text: string): NonNullable<Output> {
  const known = OUTPUTS.find((output) => output === text)
  if (known !== undefined) return known
  try {
    if (text.startsWith('jsonpath=')) {
      parseJsonPath(text.slice('jsonpath='.length))
      return text as `jsonpath=${string}`
    }
    if (text.startsWith('custom-columns=')) {
      parseCustomColumns(text)
      return text as `custom-columns=${string}`
    }
  } catch (error) {
    if (error instanceof JsonPathError) throw new UsageError(error.message)
    throw error
  }
  throw new UsageError(`invalid output format "${text}"\nAllowed: ${OUTPUTS.join(', ')}, jsonpath=TEMPLATE, custom-columns=TITLE:PATH,…`)
}

/** `custom-columns=NAME:.metadata.name,ENV:.metadata.labels.env`; commas inside brackets belong to the path. */
export function parseCustomColumns(output: string): { title: string; path: ReturnType<typeof parseJsonPath> }[] {
  const spec = output.slice('custom-columns='.length)
  const parts = spec.match(/(?:\[[^\]]*\]|\{[^}]*\}|[^,])+/g) ?? []
  if (parts.length === 0) throw new UsageError('custom-columns needs TITLE:PATH, such as custom-columns=NAME:.metadata.name')
  return parts.map((part) => {
    const colon = part.indexOf(':')
    const path = part.slice(colon + 1)
    if (colon <= 0 || path === '') throw new UsageError(`custom-columns expects TITLE:PATH, not "${part}"`)
    return { title: part.slice(0, colon), path: parseJsonPath(path) }
  })
}
