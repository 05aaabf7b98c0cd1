// The step after a renderer: patches, in their order, on all matching objects. Pure. All errors are reported at once,
// by the path of the patch in its spec and never with a value of an object.
import { parseYamlDocuments } from '../../../shared/adapters/yaml.ts'
import { isK8sObject, type K8sObject } from '../../../shared/kube/object.ts'
import { explainIssues } from '../../../shared/model/explain.ts'
import { jsonPatchSchema, type Patch } from '../../../shared/model/render.ts'
import type { Problem } from '../../../shared/runtime/error.ts'
import { wrongIdentity } from '../manifests.ts'
import { applyJsonPatch, type JsonPatchOp } from './json.ts'
import { isMap, type Json, type JsonMap, mergePatch, PatchError, strategicMerge } from './merge.ts'
import { patchTypeOf } from './schema.ts'
import { type IsTarget, namedTarget, targetOf } from './target.ts'

/** Null if the object goes. */
type Change = (object: K8sObject) => K8sObject | null
/** One document of a patch. */
interface ReadPatch {
  isTarget: IsTarget
  change: Change
}

export type Patched<T> = { kind: 'patched'; found: T[] } | { kind: 'failed'; problems: Problem[] }

/** `from`: where the patches are in their spec. `namespace`: of objects that name none. */
export function applyPatches<T extends { object: K8sObject }>(
  found: readonly T[],
  patches: readonly Patch[],
  from: string,
  namespace = '',
): Patched<T> {
  const problems: Problem[] = []
  let current = [...found]
  for (const [index, patch] of patches.entries()) {
    const path = `${from}[${index}]`
    const read = readPatch(patch)
    if (read.kind === 'failed') {
      problems.push(...read.messages.map((message) => ({ path, message })))
      continue
    }
    for (const one of read.patches) {
      const result = applyOne(current, one, namespace)
      if (result.kind === 'failed') problems.push(...result.problems.map(({ message }) => ({ path, message })))
      else current = result.found
    }
  }
  return problems.length > 0 ? { kind: 'failed', problems } : { kind: 'patched', found: current }
}

/** Errors of patches that need no object: for their author. */
export const patchProblems = (patches: readonly Patch[], from: string): Problem[] =>
  patches.flatMap((patch, index) => {
    const read = readPatch(patch)
    return read.kind === 'failed' ? read.messages.map((message) => ({ path: `${from}[${index}]`, message })) : []
  })

/** Patches of one field of a spec. */
export interface PatchSet {
  patches: readonly Patch[]
  /** Path of the field. */
  from: string
}

/** `patchProblems` of each set, by a process that may be stopped. */
export type CheckPatches = (project: string, sets: readonly PatchSet[]) => Problem[] | Promise<Problem[]>

/** In this process: for a command that reads files of its own user. */
export const checkPatchesHere: CheckPatches = (_, sets) => sets.flatMap(({ patches, from }) => patchProblems(patches, from))

function applyOne<T extends { object: K8sObject }>(found: readonly T[], { isTarget, change }: ReadPatch, namespace: string): Patched<T> {
  const problems: Problem[] = []
  let isMet = false
  const patched = found.flatMap((item): T[] => {
    if (!isTarget(item.object, namespace)) return [item]
    isMet = true
    try {
      const object = change(item.object)
      return object === null ? [] : [{ ...item, object }]
    } catch (error) {
      if (!(error instanceof PatchError)) throw error
      problems.push({ path: '', message: `${nameOf(item.object)}: ${error.message}` })
      return [item]
    }
  })
  if (!isMet) problems.push({ path: '', message: 'matches no object: correct its target, or remove the patch' })
  return problems.length > 0 ? { kind: 'failed', problems } : { kind: 'patched', found: patched }
}

const nameOf = ({ kind, metadata }: K8sObject): string =>
  `${kind} ${[metadata.namespace, metadata.name ?? metadata.generateName].filter((part) => part !== undefined).join('/')}`

type Read = { kind: 'read'; patches: ReadPatch[] } | { kind: 'failed'; messages: string[] }

function readPatch({ target, patch }: Patch): Read {
  const documents = typeof patch === 'string' ? textDocuments(patch) : { values: [patch as Json], messages: [] }
  const messages = [...documents.messages]
  const patches: ReadPatch[] = []
  if (documents.messages.length === 0 && documents.values.length === 0) messages.push('has no patch')
  for (const value of documents.values) {
    try {
      refusePrototypes(value)
      const wanted = target === undefined ? null : targetOf(target)
      if (Array.isArray(value)) {
        if (wanted === null) throw new PatchError('a JSON patch needs a target')
        patches.push({ isTarget: wanted, change: jsonChange(value) })
      } else if (isMap(value))
        patches.push({ isTarget: wanted ?? namedTarget(value), change: mergeChange(wanted === null ? value : withoutName(value)) })
      else throw new PatchError('expected a list of operations (RFC 6902), or an object to merge')
    } catch (error) {
      if (!(error instanceof PatchError)) throw error
      messages.push(error.message)
    }
  }
  return messages.length > 0 ? { kind: 'failed', messages } : { kind: 'read', patches }
}

function textDocuments(text: string): { values: Json[]; messages: string[] } {
  const { documents, problems } = parseYamlDocuments(text, { file: 'patch' })
  const messages = problems.map(({ path, message }) => `line ${path.split(':')[1] ?? '1'}: ${message}`)
  return { values: documents.map(({ value }) => value as Json), messages }
}

const ISSUES_TOLD = 5

function jsonChange(value: Json[]): Change {
  const read = jsonPatchSchema.safeParse(value)
  if (!read.success) {
    const told = explainIssues(jsonPatchSchema, value, read.error).map(({ path, message }) => `${path}: ${message}`)
    throw new PatchError(told.slice(0, ISSUES_TOLD).join('; '))
  }
  const ops: JsonPatchOp[] = read.data
  for (const [index, { op, from, value: given }] of ops.entries()) {
    if ((op === 'move' || op === 'copy') && from === undefined) throw new PatchError(`[${index}] ${op} needs from`)
    if ((op === 'add' || op === 'replace' || op === 'test') && given === undefined) throw new PatchError(`[${index}] ${op} needs a value`)
    for (const text of [ops[index]?.path, from])
      if (text?.split('/').includes('__proto__') === true) throw new PatchError(`[${index}] __proto__ is not a field`)
  }
  return (object) => asObject(applyJsonPatch(object as JsonMap, ops))
}

function mergeChange(patch: JsonMap): Change {
  return (object) => {
    if (patch['$patch'] === 'delete') return null // as kustomize has it: of a whole object there is nothing left
    const type = patchTypeOf(object.apiVersion, object.kind)
    const merged = type === null ? mergePatch(object as JsonMap, patch) : strategicMerge(object as JsonMap, patch, type)
    return asObject(merged as JsonMap)
  }
}

/** The patch without apiVersion, kind, name and namespace: with a target they choose nothing (PT6), and merged into the
 *  objects they would rename them. */
function withoutName(patch: JsonMap): JsonMap {
  const { apiVersion: _, kind: __, ...rest } = patch
  const { metadata } = rest
  if (!isMap(metadata)) return rest
  const { name: ___, namespace: ____, ...others } = metadata
  return { ...rest, metadata: others }
}

function asObject(value: JsonMap): K8sObject {
  if (isK8sObject(value)) {
    const wrong = wrongIdentity(value)
    if (wrong === null) return value
    throw new PatchError(`the result is not an object: ${wrong}`)
  }
  throw new PatchError('the result is not an object: apiVersion, kind and metadata are required, and labels and annotations must be text')
}

/** A name that would be something else in JavaScript. */
function refusePrototypes(value: Json): void {
  const open: Json[] = [value]
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    if (Array.isArray(next)) open.push(...next)
    else if (isMap(next)) {
      if (Object.hasOwn(next, '__proto__')) throw new PatchError('__proto__ is not a field')
      open.push(...Object.values(next))
    }
  }
}
