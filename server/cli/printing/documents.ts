// One document in the form that `-o` asked for.
import { toYaml } from '../../../shared/adapters/yaml.ts'
import type { Column } from '../columns.ts'
import { type Output, parseCustomColumns } from '../outputs.ts'
import { compareValues, jsonPathText, jsonPathValues, parseJsonPath, valueText } from './jsonpath.ts'

/** Null if the form is a table, names or nothing: the caller formats those. */
export function documentText(value: unknown, output: Output): string | null {
  if (output === 'json') return `${JSON.stringify(value, null, 2)}\n`
  if (output === 'yaml') return toYaml(value)
  // As kubectl: exactly the template, without a line end of its own.
  if (output?.startsWith('jsonpath=') === true) return jsonPathText(parseJsonPath(output.slice('jsonpath='.length)), plain(value))
  return null
}

/** Columns of `custom-columns=`. Null means another form. */
export function customColumns<T>(output: Output): Column<T>[] | null {
  if (output?.startsWith('custom-columns=') !== true) return null
  return parseCustomColumns(output).map(({ title, path }) => ({
    title,
    value: (item: T) => {
      const values = jsonPathValues(path, plain(item))
      return values.length === 0 ? NONE : values.map((value) => (value === null ? NONE : valueText(value))).join(',')
    },
  }))
}
/** As kubectl shows a value that is not there. */
const NONE = '<none>'

export const isPath = (sortBy: string): boolean => /^[.{[]/.test(sortBy)

/** In the order of what the path finds in each; items without it come first. */
export function sortedBy<T>(items: readonly T[], path: string): T[] {
  const parsed = parseJsonPath(path)
  return items
    .map((item) => ({ item, key: jsonPathValues(parsed, plain(item))[0] }))
    .sort((a, b) => compareValues(a.key, b.key))
    .map(({ item }) => item)
}

/** As `-o json` prints it: without members that are undefined. */
const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value ?? null))
