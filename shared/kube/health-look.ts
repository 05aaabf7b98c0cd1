// What a health rule sees of an object, and the words it answers in.
import type { HealthWord } from '../model/status.ts'
import type { K8sObject } from './object.ts'

export interface Health {
  word: HealthWord
  /** CamelCase: what tools match on. */
  reason: string
  /** For people, in the controller's own words where it has any. */
  message: string
}

/** One value for all: four thousand objects hold it. */
export const HEALTHY: Health = { word: 'Healthy', reason: 'Healthy', message: '' }
/** Controllers often leave the message out. */
const spoken = (reason: string, message: string): string => message || `its controller says ${reason} and no more`
export const progressing = (reason: string, message: string): Health => ({ word: 'Progressing', reason, message: spoken(reason, message) })
export const degraded = (reason: string, message: string): Health => ({ word: 'Degraded', reason, message: spoken(reason, message) })
export const suspended = (message: string): Health => ({ word: 'Suspended', reason: 'Suspended', message })

export type Fields = Record<string, unknown>
export interface Condition {
  type: string
  status: string
  reason: string
  message: string
  atMs: number
  /** Null: it does not say for which generation it holds. */
  generation: number | null
}
export interface Look {
  spec: Fields
  status: Fields
  annotations: Fields
  generation: number | undefined
  conditions: readonly Condition[]
  condition(type: string): Condition | undefined
  nowMs: number
  /** `sync.waitForAddress`. */
  waitForAddress: boolean
}
export type Rule = (look: Look) => Health

export function lookAt(object: K8sObject, nowMs: number, waitForAddress: boolean): Look {
  const status = fields(object['status'])
  // Read when a rule asks: most objects have none, and each event of each object comes through here.
  let parsed: readonly Condition[] | null = null
  const conditions = () => {
    parsed ??= conditionsIn(status['conditions'], nowMs)
    return parsed
  }
  return {
    spec: fields(object['spec']),
    status,
    annotations: fields(object.metadata.annotations),
    generation: object.metadata.generation,
    get conditions() {
      return conditions()
    },
    condition: (type) => conditions().find((entry) => entry.type === type),
    nowMs,
    waitForAddress,
  }
}

export const conditionsIn = (value: unknown, nowMs: number): Condition[] =>
  list(value).map((entry) => {
    const atMs = Date.parse(text(entry['lastTransitionTime']))
    return {
      type: text(entry['type']),
      status: text(entry['status']),
      reason: text(entry['reason']),
      message: text(entry['message']),
      atMs: Number.isNaN(atMs) ? nowMs : atMs,
      generation: typeof entry['observedGeneration'] === 'number' ? entry['observedGeneration'] : null,
    }
  })

export const fields = (value: unknown): Fields =>
  value !== null && typeof value === 'object' && !Array.isArray(value) ? (value as Fields) : {}
export const list = (value: unknown): Fields[] => (Array.isArray(value) ? value.map(fields) : [])
export const text = (value: unknown): string => (typeof value === 'string' ? value : '')
export const count = (value: unknown, absent = 0): number => (typeof value === 'number' ? value : absent)
/** `at(status, 'ceph', 'health')` */
export const at = (from: Fields, ...path: string[]): unknown => path.reduce<unknown>((found, name) => fields(found)[name], from)
