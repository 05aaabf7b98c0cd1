// A desired row as the document that is sent: cleaned, marked, in its right namespace. Pure; done once for a row that changed, never again.
import { canonicalJson } from '../../shared/kube/canonical.ts'
import { cleanObject, markObject } from '../../shared/kube/clean.ts'
import { groupOf, isK8sObject, type K8sObject, type ObjectRef, refKey, refOf, versionOf } from '../../shared/kube/object.ts'
import { applyStage } from '../../shared/kube/order.ts'
import type { ServiceId } from '../../shared/model/ids.ts'
import type { KindLookup } from './served-kinds.ts'

export interface Wanted {
  key: string
  ref: ObjectRef
  apiVersion: string
  stage: number
  /** Canonical JSON, as it goes out. */
  sent: string
  /** The service's own namespace (`sync.createNamespace`): made if nobody has it, left alone if somebody does, never pruned. */
  onlyIfAbsent: boolean
}

export type WantedRead =
  | { kind: 'wanted'; wanted: Wanted }
  /** No API serves it yet; `ref` is as the row says, since nobody knows whether it has a namespace. */
  | { kind: 'unserved'; ref: ObjectRef; apiVersion: string; message: string }
  | { kind: 'unreadable'; ref: ObjectRef; apiVersion: string; message: string }

export interface WantedContext {
  clusterId: string
  service: ServiceId
  /** Where namespaced objects go that name none. */
  namespace: string | undefined
  find(group: string, version: string, kind: string): KindLookup
}

/** RC4: `ref` is the row's, used where the document cannot say better. */
export function readWanted(ref: ObjectRef, doc: string, context: WantedContext): WantedRead {
  const parsed = parse(doc)
  if (parsed === null) return { kind: 'unreadable', ref, apiVersion: 'v1', message: 'its row holds no Kubernetes object' }
  const { apiVersion, kind } = parsed
  if (parsed.metadata.name === undefined) {
    return { kind: 'unreadable', ref, apiVersion, message: 'it has no metadata.name (generateName cannot be applied); give it a name' }
  }
  const lookup = context.find(groupOf(apiVersion), versionOf(apiVersion), kind)
  if (lookup.kind !== 'served') return { kind: 'unserved', ref, apiVersion, message: unservedText(apiVersion, kind, lookup) }
  const { verbs, namespaced } = lookup.resource
  if (!verbs.includes('patch') || !verbs.includes('watch')) {
    return {
      kind: 'unreadable',
      ref,
      apiVersion,
      message: `${kind} of ${apiVersion} cannot be patched and watched; take it out of the manifests`,
    }
  }
  const { namespace: named, ...metadata } = parsed.metadata
  const namespace = named ?? context.namespace
  if (namespaced && namespace === undefined) {
    return {
      kind: 'unreadable',
      ref,
      apiVersion,
      message: 'it names no namespace; set metadata.namespace, or spec.namespace of the service',
    }
  }
  const placed = { ...parsed, metadata: namespaced && namespace !== undefined ? { ...metadata, namespace } : metadata }
  return { kind: 'wanted', wanted: toWanted(placed, context, false) }
}

/** The namespace of a service; the keep mark travels with it, so that no removal ever takes it along. */
export function wantedNamespace(name: string, context: WantedContext): Wanted {
  const object: K8sObject = { apiVersion: 'v1', kind: 'Namespace', metadata: { name, annotations: { 'skerry.dev/prune': 'disabled' } } }
  return toWanted(object, context, true)
}

function toWanted(object: K8sObject, { clusterId, service }: WantedContext, onlyIfAbsent: boolean): Wanted {
  const ref = refOf(object)
  const sent = canonicalJson(markObject(cleanObject(object), clusterId, service))
  return { key: refKey(ref), ref, apiVersion: object.apiVersion, stage: applyStage(ref), sent, onlyIfAbsent }
}

function parse(doc: string): K8sObject | null {
  try {
    const parsed: unknown = JSON.parse(doc)
    return isK8sObject(parsed) ? parsed : null
  } catch {
    return null
  }
}

export function unservedText(apiVersion: string, kind: string, lookup: Exclude<KindLookup, { kind: 'served' }>): string {
  if (lookup.kind === 'stale') return `the API of ${apiVersion} does not answer; it is applied as soon as it does`
  const [preferred] = lookup.versions
  if (preferred === undefined)
    return `no API of this cluster serves ${kind} of ${apiVersion}; it is applied as soon as one does (a CRD, an operator)`
  return `this cluster serves ${kind} as ${lookup.versions.join(', ')}, not as ${apiVersion}; change its apiVersion`
}
