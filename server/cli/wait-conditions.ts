// The conditions of `skerry wait --for=…`: what holds, and why it does not. Pure.
import { nearest } from '../../shared/runtime/edit-distance.ts'
import { UsageError } from './io.ts'
import { JsonPathError, jsonPathValues, parseJsonPath, valueText } from './printing/jsonpath.ts'

/** The parts of the views that conditions look at: a resource with its status, or a placement or an object, which is
 *  its own status. */
export interface Waited {
  metadata?: { name: string }
  status?: WaitedStatus
  cluster?: string
  service?: string
  kind?: string
  namespace?: string
  name?: string
  sync?: string
  health?: string
  reason?: string
  message?: string
  liveness?: { word: string }
}
interface WaitedStatus {
  sync?: string
  health?: string
  ready?: boolean
  reason?: string
  message?: string
  liveness?: { word: string }
  suspensions?: readonly unknown[]
}

export interface Condition {
  /** `is healthy`, `has a value at .status.commit`. */
  met: string
  /** `not healthy`, `no value at .status.commit`. */
  unmet: string
  deletion: boolean
  holds(item: Waited): boolean
  why(item: Waited): string
}

const statusOf = (item: Waited): WaitedStatus => item.status ?? item

/** Words that hold of a state; each is a condition by its own name, too. */
const WORDS: Readonly<Record<string, (status: WaitedStatus) => boolean>> = {
  healthy: ({ health }) => health === 'Healthy',
  synced: ({ sync }) => sync === 'Synced',
  ready: ({ ready, sync, health }) => ready ?? (sync === 'Synced' && health === 'Healthy'),
  online: ({ liveness }) => liveness?.word === 'Online',
  suspended: ({ suspensions, health }) => (suspensions?.length ?? 0) > 0 || health === 'Suspended',
}
const OF_KIND: Readonly<Record<string, readonly string[]>> = {
  services: ['healthy', 'synced', 'ready', 'suspended'],
  clusters: ['healthy', 'synced', 'ready', 'online', 'suspended'],
  repositories: ['ready'],
  placements: ['healthy', 'synced', 'ready', 'online', 'suspended'],
  objects: ['healthy', 'synced', 'ready', 'online'],
}

/** `healthy`, `deleted`, `condition=Healthy[=false]`, `jsonpath={.status.commit}[=VALUE]`. */
export function parseCondition(text: string, kind: string): Condition {
  if (text === 'delete' || text === 'deleted') {
    return {
      met: 'is deleted',
      unmet: 'not deleted',
      deletion: true,
      holds: () => false,
      why: (item) => `still there${stateText(statusOf(item), ' (', ')')}`,
    }
  }
  if (text.startsWith('jsonpath=')) return jsonPathCondition(text.slice('jsonpath='.length))
  const [, named, wanted = 'true'] = /^condition=([^=]+)(?:=(.*))?$/.exec(text) ?? []
  const word = (named ?? text).toLowerCase()
  const known = OF_KIND[kind] ?? []
  const holds = known.includes(word) ? WORDS[word] : undefined
  if (holds === undefined) {
    const near = nearest(word, [...known, 'deleted'])
    const all = [...known, 'deleted', 'condition=NAME', 'jsonpath=PATH=VALUE'].join(', ')
    throw new UsageError(`cannot wait for "${text}" of ${kind}${near === null ? '' : `; did you mean "${near}"?`}\n--for: ${all}`)
  }
  if (!/^(true|false)$/i.test(wanted)) throw new UsageError(`--for=condition=${named} expects true or false, not "${wanted}"`)
  const isWanted = wanted.toLowerCase() === 'true'
  return {
    met: isWanted ? `is ${word}` : `is not ${word}`,
    unmet: isWanted ? `not ${word}` : word,
    deletion: false,
    holds: (item) => holds(statusOf(item)) === isWanted,
    why: (item) => stateText(statusOf(item), '', '') || `not ${word}`,
  }
}

/** As kubectl: `{.path}=value`; without a value it is enough that there is one. */
function jsonPathCondition(text: string): Condition {
  const [, braced, bare, wanted] = /^(?:(\{.*\})|([^{=]*))(?:=(.*))?$/s.exec(text) ?? []
  const template = braced ?? bare ?? ''
  let parsed: ReturnType<typeof parseJsonPath>
  try {
    parsed = parseJsonPath(template)
  } catch (error) {
    if (error instanceof JsonPathError) throw new UsageError(error.message)
    throw error
  }
  if (wanted === '') throw new UsageError(`--for=jsonpath=${text}: a value is missing after "="`)
  const found = (item: Waited): string[] =>
    jsonPathValues(parsed, item)
      .filter((value) => value !== null && value !== undefined)
      .map(valueText)
  return {
    met: wanted === undefined ? `has a value at ${template}` : `has ${wanted} at ${template}`,
    unmet: wanted === undefined ? `without a value at ${template}` : `without ${wanted} at ${template}`,
    deletion: false,
    holds: (item) => {
      const values = found(item)
      return values.length > 0 && (wanted === undefined || values.every((value) => value === wanted))
    },
    why: (item) => {
      const values = found(item)
      return `${template} is ${values.length === 0 ? 'not there' : `"${values.join(' ')}"`}`
    },
  }
}

function stateText({ sync, health, reason, message, liveness, ready }: WaitedStatus, before: string, after: string): string {
  const states = [sync, health, ready === undefined ? undefined : ready ? 'Ready' : 'not ready']
  const words = [...states, liveness !== undefined && liveness.word !== 'Online' ? liveness.word : undefined].filter(Boolean).join(', ')
  const isNews = reason !== undefined && reason !== '' && reason !== sync && reason !== health
  const text = [words, isNews ? reason : '', message ?? ''].filter(Boolean).join(': ')
  return text === '' ? '' : `${before}${text}${after}`
}
