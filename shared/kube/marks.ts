// Every label and annotation that Skerry writes on, or honours on, users' objects. Keys are promises: never rename one.

import { createHash } from 'node:crypto'
import type { ObjectRef } from './object.ts'
import { refKey } from './object.ts'

/** Label on everything Skerry applies; its value is `<project>.<service>`. Watches select by its existence. */
export const SERVICE_LABEL = 'skerry.dev/service'
/** Annotation `<cluster id>/<project>/<service>:<ref key>`. A mark that names another object was copied by some controller and is ignored. */
export const TRACKING_ANNOTATION = 'skerry.dev/tracking'
export const FIELD_MANAGER = 'skerry'

const LABEL_VALUE_MAX = 63

/** `<project>.<service>`; longer than 63 characters: cut, with a hash suffix, so that it stays a valid and distinct label value. */
export function serviceLabel(project: string, service: string): string {
  const plain = `${project}.${service}`
  if (plain.length <= LABEL_VALUE_MAX) return plain
  const suffix = createHash('sha256').update(plain).digest('hex').slice(0, 10)
  return `${plain.slice(0, LABEL_VALUE_MAX - 11).replace(/[-.]+$/, '')}-${suffix}`
}

export const trackingValue = (clusterId: string, project: string, service: string, ref: ObjectRef): string =>
  `${clusterId}/${project}/${service}:${refKey(ref)}`

export interface Tracking {
  clusterId: string
  project: string
  service: string
  key: string
}

export function parseTracking(value: string | undefined): Tracking | null {
  if (value === undefined) return null
  const colon = value.indexOf(':')
  const [clusterId, project, service, ...rest] = value.slice(0, Math.max(colon, 0)).split('/')
  if (!clusterId || !project || !service || rest.length > 0) return null
  return { clusterId, project, service, key: value.slice(colon + 1) }
}

/** Annotations of other tools that say "leave this object when its manifest goes". */
export const KEEP_MARKS: ReadonlyArray<readonly [key: string, matches: (value: string) => boolean]> = [
  ['argocd.argoproj.io/sync-options', (value) => value.split(',').some((option) => option.trim() === 'Prune=false')],
  ['kustomize.toolkit.fluxcd.io/prune', (value) => value === 'disabled'],
  ['helm.sh/resource-policy', (value) => value.split(',').some((option) => option.trim() === 'keep')],
  ['cli-utils.sigs.k8s.io/on-remove', (value) => value === 'keep'],
  ['client.lifecycle.config.k8s.io/deletion', (value) => value === 'detach'],
  ['skerry.dev/prune', (value) => value === 'disabled'],
]

/** The key of the first annotation that keeps an object from being pruned, or null. */
export function keepMark(annotations: Record<string, string> | undefined): string | null {
  if (annotations === undefined) return null
  for (const [key, matches] of KEEP_MARKS) {
    const value = annotations[key]
    if (value !== undefined && matches(value)) return key
  }
  return null
}

/** How other tools mark what they own. An object with such a mark is adopted only with `takeover: true`. */
const OTHER_OWNERS: ReadonlyArray<readonly [owner: string, place: 'labels' | 'annotations', key: string]> = [
  ['Argo CD', 'annotations', 'argocd.argoproj.io/tracking-id'],
  ['Argo CD', 'labels', 'argocd.argoproj.io/instance'],
  ['Flux', 'labels', 'kustomize.toolkit.fluxcd.io/name'],
  ['Flux', 'labels', 'helm.toolkit.fluxcd.io/name'],
  ['Helm', 'annotations', 'meta.helm.sh/release-name'],
  ['Fleet', 'annotations', 'objectset.rio.cattle.io/id'],
  ['Plural', 'annotations', 'config.k8s.io/owning-inventory'],
]

interface Marked {
  labels?: Record<string, string> | undefined
  annotations?: Record<string, string> | undefined
}

/** `Argo CD (argocd.argoproj.io/tracking-id: …)`, or null when no other tool claims it. */
export function otherOwner(metadata: Marked): string | null {
  for (const [owner, place, key] of OTHER_OWNERS) {
    const value = metadata[place]?.[key]
    if (value !== undefined && value !== '') return `${owner} (${key}: ${value})`
  }
  return null
}
