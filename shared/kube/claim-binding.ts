// A volume claim whose StorageClass binds at first use stays Pending until a Pod that uses it is scheduled: nothing is
// wrong with it, and whatever brings that Pod must not wait for it. The class is another object, so its binding mode
// comes in as a fact.
import { type Health, progressing, text } from './health-object.ts'
import { groupOf, type K8sObject } from './object.ts'

/** Whether a StorageClass (null means the default one of the cluster) binds when the first consumer is scheduled. Null
 *  means not known. */
export type BindsAtFirstUse = (className: string | null) => boolean | null

const SELECTED_NODE = 'volume.kubernetes.io/selected-node'
const AWAITS_CONSUMER: Health = {
  word: 'Healthy',
  reason: 'WaitForFirstConsumer',
  message: 'will be bound when its first consumer is scheduled',
}
const NOT_BOUND = progressing('NotBound', 'phase is Pending')
/** For the moment after a start in which StorageClasses are being read. */
const BINDING_UNKNOWN = progressing('BindingUnknown', 'phase is Pending, and its StorageClass is being read')

/** The class (null means the default one) that decides whether an unbound claim waits for a consumer. Undefined means
 *  that no class decides that, because the object is no claim, is bound or going to be, names a volume itself, or has a
 *  consumer already (a node was selected). */
export function decidingClass(object: K8sObject): string | null | undefined {
  if (object.kind !== 'PersistentVolumeClaim' || groupOf(object.apiVersion) !== '') return undefined
  const { spec, status, metadata } = object as K8sObject & { spec?: Record<string, unknown>; status?: Record<string, unknown> }
  if (metadata.deletionTimestamp !== undefined || text(status?.['phase']) !== 'Pending' || text(spec?.['volumeName']) !== '')
    return undefined
  if (Object.hasOwn(metadata.annotations ?? {}, SELECTED_NODE)) return undefined
  const name = spec?.['storageClassName']
  // The empty name asks for a volume that a person creates.
  return name === '' ? undefined : typeof name === 'string' ? name : null
}

/** HE20: `health` as its rule tells it from the claim alone. A rule that people wrote for claims stands. */
export const withBinding = (health: Health, className: string | null, binds: BindsAtFirstUse): Health => {
  const isByBinding = health === AWAITS_CONSUMER || health === BINDING_UNKNOWN
  if (!isByBinding && health.reason !== NOT_BOUND.reason) return health
  const isLate = binds(className)
  if (isLate === null) return BINDING_UNKNOWN
  return isLate ? AWAITS_CONSUMER : isByBinding ? NOT_BOUND : health
}

export const isBindingUnknown = ({ reason }: Health): boolean => reason === BINDING_UNKNOWN.reason

interface ClassFacts {
  bindsAtFirstUse: boolean
  isDefault: boolean
  createdAt: string
}

const DEFAULT_MARKS = ['storageclass.kubernetes.io/is-default-class', 'storageclass.beta.kubernetes.io/is-default-class']

export const classFactsOf = (object: K8sObject): ClassFacts => ({
  bindsAtFirstUse: object['volumeBindingMode'] === 'WaitForFirstConsumer',
  isDefault: DEFAULT_MARKS.some((mark) => object.metadata.annotations?.[mark] === 'true'),
  createdAt: object.metadata.creationTimestamp ?? '',
})

/** Kubernetes takes the newest of several default classes, then the first by name. */
export function bindingIn(classes: ReadonlyMap<string, ClassFacts>): BindsAtFirstUse {
  return (className) => {
    const name = className ?? defaultOf(classes)
    return name === null ? false : (classes.get(name)?.bindsAtFirstUse ?? false)
  }
}

function defaultOf(classes: ReadonlyMap<string, ClassFacts>): string | null {
  const [first] = [...classes]
    .filter(([, { isDefault }]) => isDefault)
    .sort(([nameA, a], [nameB, b]) => (a.createdAt === b.createdAt ? (nameA < nameB ? -1 : 1) : a.createdAt > b.createdAt ? -1 : 1))
  return first?.[0] ?? null
}
