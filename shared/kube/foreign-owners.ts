// How other tools mark what they own. An object with such a mark is adopted only with `takeover: true`.
// `app.kubernetes.io/managed-by` is no owner: charts write it into manifests that everybody applies; nor is
// `app.kubernetes.io/instance`.
import type { ObjectRef } from './object.ts'

interface Marked {
  labels?: Record<string, string> | undefined
  annotations?: Record<string, string> | undefined
}

interface Mark {
  owner: string
  place: 'labels' | 'annotations'
  key: string
  /** False: some controller copied it from another object. */
  isOf?(ref: ObjectRef, value: string, metadata: Marked): boolean
  /** The effect while the mark stays, for people. */
  warning?: string
}

const TRACKING_IDENTIFIER = 'config.k8s.io/tracking-identifier'
const ARGO_PRUNES =
  'it deletes the object when its Application no longer has it: remove the object from the Application with prune disabled, or delete the mark'
const PRUNES =
  'it may delete the object when its source no longer has it: remove the object there with pruning disabled, or delete the mark'

const MARKS: readonly Mark[] = [
  { owner: 'Argo CD', place: 'annotations', key: 'argocd.argoproj.io/tracking-id', isOf: isArgoTracking, warning: ARGO_PRUNES },
  { owner: 'Argo CD', place: 'labels', key: 'argocd.argoproj.io/instance', warning: ARGO_PRUNES },
  { owner: 'Flux', place: 'labels', key: 'kustomize.toolkit.fluxcd.io/name', warning: PRUNES },
  { owner: 'Flux', place: 'labels', key: 'helm.toolkit.fluxcd.io/name', warning: PRUNES },
  {
    owner: 'Helm',
    place: 'annotations',
    key: 'meta.helm.sh/release-name',
    warning: 'helm upgrade and helm uninstall go on changing it: forget the release (delete its Secrets sh.helm.release.v1.*)',
  },
  { owner: 'Fleet', place: 'annotations', key: 'objectset.rio.cattle.io/id', warning: PRUNES },
  { owner: 'Plural', place: 'annotations', key: 'config.k8s.io/owning-inventory', isOf: isPluralInventory, warning: PRUNES },
  {
    owner: 'kpt',
    place: 'annotations',
    key: 'config.k8s.io/owning-inventory',
    isOf: (_, __, { annotations }) => annotations?.[TRACKING_IDENTIFIER] === undefined,
    warning: PRUNES,
  },
  { owner: 'kapp', place: 'labels', key: 'kapp.k14s.io/app', warning: PRUNES },
  { owner: 'kubectl ApplySet', place: 'labels', key: 'applyset.kubernetes.io/part-of', warning: PRUNES },
]

/** `app:group/Kind:namespace/name`. What has another form may be of any version of theirs, and counts. */
function isArgoTracking(ref: ObjectRef, value: string): boolean {
  const parts = value.split(':')
  if (parts.length !== 3) return true
  return parts[1] === `${ref.group}/${ref.kind}` && parts[2] !== undefined && parts[2].slice(parts[2].indexOf('/') + 1) === ref.name
}

/** The identifier is `group/version/Kind/namespace/name`: a copy names another object. */
function isPluralInventory({ kind, namespace, name }: ObjectRef, _value: string, { annotations }: Marked): boolean {
  return annotations?.[TRACKING_IDENTIFIER]?.endsWith(`/${kind}/${namespace}/${name}`) === true
}

function markOf(metadata: Marked, ref: ObjectRef): { mark: Mark; value: string } | null {
  for (const mark of MARKS) {
    const value = metadata[mark.place]?.[mark.key]
    if (value === undefined || value === '') continue
    if (mark.isOf === undefined || mark.isOf(ref, value, metadata)) return { mark, value }
  }
  return null
}

/** `Argo CD (argocd.argoproj.io/tracking-id: …)`, or null when no other tool claims it. */
export function otherOwner(metadata: Marked, ref: ObjectRef): string | null {
  const found = markOf(metadata, ref)
  return found === null ? null : `${found.mark.owner} (${found.mark.key}: ${found.value})`
}

/**
 * TK3: for the object after a takeover, which removes the mark with the fields that the tool applied: another writer
 * wrote a mark that stays. Null means that it has no mark of another tool.
 */
export function takeoverWarning(metadata: Marked, ref: ObjectRef): string | null {
  const found = markOf(metadata, ref)
  return found === null ? null : `the mark of ${found.mark.owner} stays on the object (${found.mark.key}): ${found.mark.warning ?? ''}`
}
