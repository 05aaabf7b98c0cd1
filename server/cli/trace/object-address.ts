// How people name an object of Kubernetes: KIND/NAMESPACE/NAME with the short, plural and singular words of kubectl for
// the kind.
import { UsageError } from '../io.ts'

export interface ObjectAddress {
  /** As it was meant. */
  kind: string
  /** The same, and for a kind that has no words here its singulars, if the word is a plural. */
  kinds: readonly string[]
  /** Undefined for any group. */
  group: string | undefined
  /** '' for an object without a namespace. */
  namespace: string
  name: string
}

/** Words that are not the kind in lower case, or it with an s. */
const WORDS: Readonly<Record<string, readonly string[]>> = {
  ConfigMap: ['cm'],
  CronJob: ['cj'],
  CustomResourceDefinition: ['crd', 'crds'],
  DaemonSet: ['ds'],
  Deployment: ['deploy'],
  Endpoints: ['ep'],
  HorizontalPodAutoscaler: ['hpa'],
  Ingress: ['ing', 'ingresses'],
  IngressClass: ['ingressclasses'],
  Job: [],
  LimitRange: ['limits'],
  Namespace: ['ns'],
  NetworkPolicy: ['netpol', 'networkpolicies'],
  Node: ['no'],
  PersistentVolume: ['pv'],
  PersistentVolumeClaim: ['pvc'],
  Pod: ['po'],
  PodDisruptionBudget: ['pdb'],
  PriorityClass: ['pc', 'priorityclasses'],
  ReplicaSet: ['rs'],
  ReplicationController: ['rc'],
  ResourceQuota: ['quota'],
  Role: [],
  RoleBinding: [],
  ClusterRole: [],
  ClusterRoleBinding: [],
  Secret: [],
  Service: ['svc'],
  ServiceAccount: ['sa'],
  StatefulSet: ['sts'],
  StorageClass: ['sc', 'storageclasses'],
}

const KINDS: ReadonlyMap<string, string> = new Map(
  Object.entries(WORDS).flatMap(([kind, words]) => [kind.toLowerCase(), `${kind.toLowerCase()}s`, ...words].map((word) => [word, kind])),
)

export function parseObjectAddress(text: string): ObjectAddress {
  const parts = text.split('/')
  const [kindText = '', ...path] = parts
  const dot = kindText.indexOf('.')
  const word = dot < 0 ? kindText : kindText.slice(0, dot)
  const group = dot < 0 ? undefined : kindText.slice(dot + 1)
  const isWhole = parts.length === 2 || parts.length === 3
  if (!isWhole || word === '' || group === '' || path.includes(''))
    throw new UsageError(`expected KIND/NAMESPACE/NAME or KIND/NAME, such as deployment/shop/web, not "${text}"`)
  // The server takes kinds in any case.
  const known = KINDS.get(word.toLowerCase())
  return {
    kind: known ?? word,
    kinds: known === undefined ? [word, ...singularsOf(word)] : [known],
    group,
    namespace: path.length === 2 ? (path[0] ?? '') : '',
    name: path.at(-1) ?? '',
  }
}

const singularsOf = (word: string): string[] =>
  [word.replace(/s$/i, ''), word.replace(/es$/i, ''), word.replace(/ies$/i, 'y')].filter((one) => one !== word && one !== '')

/** As people read it: `Deployment shop/web`, `Ingress.networking.k8s.io shop/web`. */
export const addressText = ({ kind, group, namespace, name }: Omit<ObjectAddress, 'kinds'>): string =>
  `${kind}${group ? `.${group}` : ''} ${namespace === '' ? '' : `${namespace}/`}${name}`
