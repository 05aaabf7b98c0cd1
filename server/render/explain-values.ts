// The effective variables of a render, each with the level that it comes from. Pure.
import type { ExplainedValue } from '../../shared/model/render-views.ts'
import { type ConfigLayer, mergeLayers } from './config-merge.ts'

/** `layers`: from the lowest to the highest. `mark`: what stands for a secret. */
export function explainValues(layers: readonly ConfigLayer[], mark: (text: string) => string): ExplainedValue[] {
  const { values, secrets } = mergeLayers(layers)
  return leavesOf(values, []).map(({ path, value }) => {
    const setters = layers.filter((layer) => valueAt(layer.values, path) !== undefined).map(({ from = 'unknown' }) => from)
    const secret = secrets.has(path[0] ?? '')
    const from = setters.pop() ?? 'unknown'
    return { path: path.map(segment).join('').replace(/^\./, ''), value: secret ? mark(String(value)) : value, secret, from, over: setters }
  })
}

interface Leaf {
  path: string[]
  value: unknown
}

/** A list is one value, as it is when levels are merged; so is an empty map. */
function leavesOf(value: unknown, path: string[]): Leaf[] {
  const members = isMap(value) ? Object.entries(value) : []
  if (members.length === 0) return path.length === 0 ? [] : [{ path, value }]
  return members.sort(([a], [b]) => (a < b ? -1 : 1)).flatMap(([name, member]) => leavesOf(member, [...path, name]))
}

const valueAt = (value: unknown, path: readonly string[]): unknown =>
  path.reduce<unknown>((at, name) => (isMap(at) && Object.hasOwn(at, name) ? at[name] : undefined), value)

const isMap = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null && !Array.isArray(value)

const segment = (name: string): string => (/^[A-Za-z_][\w-]*$/.test(name) ? `.${name}` : `[${JSON.stringify(name)}]`)
