// The data and objects that a deletion destroys besides the object itself, as far as its kind tells. Agents judge by it
// and by what they see in the cluster; the server shows it before a person confirms. Pure.
import type { K8sObject, ObjectRef } from './object.ts'
import { isBuiltInGroup } from './order.ts'

type Kind = Pick<ObjectRef, 'group' | 'kind'>

/**
 * `data`: volumes, and objects whose content cannot be read by their name. `contents`: the objects inside, whoever
 * created them. `class`: nothing that exists already.
 */
export type LossKind = 'data' | 'contents' | 'class'

const LOSSES: ReadonlyMap<string, readonly [kind: LossKind, text: string]> = new Map([
  ['/PersistentVolumeClaim', ['data', 'its data will be lost']],
  ['/PersistentVolume', ['data', 'its data will be lost']],
  ['/Namespace', ['contents', 'everything in it is deleted with it']],
  ['project.openshift.io/Project', ['contents', 'its Namespace is deleted with everything in it']],
  ['hnc.x-k8s.io/SubnamespaceAnchor', ['contents', 'its Namespace is deleted with everything in it']],
  // Owns Namespaces of any name.
  ['capsule.clastix.io/Tenant', ['data', 'its Namespaces are deleted with everything in them']],
  ['apiextensions.k8s.io/CustomResourceDefinition', ['contents', 'all its custom resources are deleted with it']],
  ['storage.k8s.io/StorageClass', ['class', 'volumes of this class can no longer be provisioned']],
])

export const CLAIMS_LOST = 'its PersistentVolumeClaims are deleted with it (persistentVolumeClaimRetentionPolicy)'

const lossOf = ({ group, kind }: Kind) => LOSSES.get(`${group}/${kind}`)

/** PR3: deleting one of these can destroy more than Git can bring back. */
export const lossKind = (kind: Kind): LossKind | null => lossOf(kind)?.[0] ?? null

/** For people. Null means that nothing is lost that Git could not bring back. */
export const lossText = (kind: Kind): string | null => lossOf(kind)?.[1] ?? null

/** The exact name by which a person confirms a deletion: `PersistentVolumeClaim shop/data`, `Boat.sea.example
 *  harbour/skiff`. The group is left out where the kind is built in. */
export function deletionName({ group, kind, namespace, name }: ObjectRef): string {
  const place = namespace === '' ? name : `${namespace}/${name}`
  return `${kindName(group, kind)} ${place}`
}

const kindName = (group: string, kind: string): string => (isBuiltInGroup(group) ? kind : `${kind}.${group}`)
const LOSS_OF_NAME = new Map(
  [...LOSSES].map(([key, [, text]]) => {
    const [group = '', kind = ''] = key.split('/')
    return [kindName(group, kind), text]
  }),
)

/** The name with what is lost: `PersistentVolumeClaim shop/data (its data will be lost)`. */
export function nameWithLoss(name: string): string {
  const text = LOSS_OF_NAME.get(name.slice(0, name.indexOf(' ')))
  return text === undefined ? name : `${name} (${text})`
}

interface StorageSpec {
  persistentVolumeReclaimPolicy?: unknown
  persistentVolumeClaimRetentionPolicy?: { whenDeleted?: unknown }
  volumeClaimTemplates?: unknown
}

/**
 * The objects that the deletion of an object takes along by its spec: `claims` of a StatefulSet that says so; `nothing`
 * for a volume that stays when its object goes. Null if the kind tells.
 */
export function takesAlong({ apiVersion, kind, ...object }: K8sObject): 'claims' | 'nothing' | null {
  const spec = object['spec'] as StorageSpec | null | undefined
  if (apiVersion === 'v1' && kind === 'PersistentVolume') return spec?.persistentVolumeReclaimPolicy === 'Retain' ? 'nothing' : null
  if (kind !== 'StatefulSet' || !apiVersion.startsWith('apps/')) return null
  const hasTemplates = Array.isArray(spec?.volumeClaimTemplates) && spec.volumeClaimTemplates.length > 0
  return hasTemplates && spec?.persistentVolumeClaimRetentionPolicy?.whenDeleted === 'Delete' ? 'claims' : null
}
