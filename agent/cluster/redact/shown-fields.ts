// Values of a document that may leave the cluster: those in fields that hold names, words of the API, numbers, amounts
// and addresses. Every other value counts as a secret. Pure.

/** Names of fields and keys of maps, from the root to the value. List indices are left out. */
export type FieldPath = readonly string[]

/** Nothing below these fields is shown: contents, arguments of programs, and text that people attach. */
const CONTENTS: ReadonlySet<string> = new Set([
  'data',
  'binaryData',
  'stringData',
  'annotations',
  'args',
  'command',
  'value',
  'values',
  'valuesContent',
  'httpHeaders',
  'default',
  'example',
])

/** Fields that hold a name or a host. */
const NAMES: ReadonlySet<string> = new Set(
  `name namespace generateName apiVersion apiGroup group version plural singular shortNames categories uid finalizers
  serviceName serviceAccountName serviceAccount claimName volumeName storageClassName secretName configMapName ingressClassName
  gatewayClassName priorityClassName runtimeClassName schedulerName nodeName containerName resourceName resource resources apiGroups
  apiVersions verbs topologyKey provisioner driver controller host hosts hostname hostnames subdomain externalName dnsNames
  commonName fieldPath mountPath devicePath port targetPort portName image`.split(/\s+/),
)
const NAME = /^[-A-Za-z0-9*._:/@]{1,253}$/
/** User and password in front of a host, with or without a scheme. A digest, `nginx:1.2@sha256:…`, is none. */
const LOGIN = /:\/\/[^/]*@|:[^@]*@(?!sha\d{3}:)/
export const hasLogin = (text: string): boolean => LOGIN.test(text)
const isName = (value: string): boolean => NAME.test(value) && !hasLogin(value)
/** Fields that hold a name only below these parents. In other places a `key` may be a cryptographic one. */
const NAMES_BELOW: Readonly<Record<string, ReadonlySet<string>>> = {
  key: new Set(
    `secretKeyRef configMapKeyRef items tolerations taints matchExpressions matchFields remoteRef passwordSecretRef tokenSecretRef`.split(
      /\s+/,
    ),
  ),
  add: new Set(['capabilities']),
  drop: new Set(['capabilities']),
}

const ADDRESSES: ReadonlySet<string> = new Set(
  `clusterIP clusterIPs externalIPs loadBalancerIP loadBalancerSourceRanges ip ips hostIP cidr except podCIDR podCIDRs`.split(/\s+/),
)
const ADDRESS = /^(?:None|[0-9a-fA-F.:]{2,39}(?:\/\d{1,3})?)$/

/** Fields that hold one of a few words which the API defines. */
const WORDS: ReadonlySet<string> = new Set(
  `kind listKind type restartPolicy imagePullPolicy dnsPolicy preemptionPolicy reclaimPolicy persistentVolumeReclaimPolicy concurrencyPolicy failurePolicy
  matchPolicy externalTrafficPolicy internalTrafficPolicy ipFamilyPolicy ipFamilies sessionAffinity protocol pathType accessModes
  volumeMode volumeBindingMode policyTypes operator effect scope whenUnsatisfiable completionMode podManagementPolicy operation`.split(
    /\s+/,
  ),
)
const WORD = /^[A-Za-z][A-Za-z0-9]{0,39}$/
const SECRET_TYPE = /^[a-zA-Z0-9][-a-zA-Z0-9./]{0,62}$/

/** Labels and selectors, which every list of objects shows. */
const LABELS: ReadonlySet<string> = new Set(['labels', 'matchLabels', 'selector', 'nodeSelector'])
const LABEL = /^(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$/

/** Amounts of resources. */
const AMOUNTS: ReadonlySet<string> = new Set(['limits', 'requests', 'hard', 'capacity', 'max', 'min', 'defaultRequest', 'storage'])
export const AMOUNT = /^[-+]?\d{1,12}(?:\.\d{1,9})?(?:[numkKMGTPE]i?|[eE][-+]?\d{1,3}|%)?$/

/** A field with such a name holds a secret, whatever its value looks like. */
const SENSITIVE = /passw|passphrase|secret|token|credential|api[-_]?key|private[-_]?key|access[-_]?key|signature|\bpin\b|^pin$|^auth$/i
export const isSensitiveName = (name: string): boolean => SENSITIVE.test(name)

/** A Secret shows its identity and its type. */
const SECRET_SHOWN: ReadonlySet<string> = new Set(['apiVersion', 'kind', 'metadata', 'type', 'immutable'])

export const isSecretKind = (kind: unknown): boolean => typeof kind === 'string' && /Secret$/.test(kind)

/** True when the value at `path` of an object of this kind may be shown. */
export function isShown(kind: string, path: FieldPath, value: unknown): boolean {
  const leaf = path.at(-1) ?? ''
  const parent = path.at(-2) ?? ''
  if (path.some((name) => CONTENTS.has(name))) return false
  if (isSecretKind(kind) && !SECRET_SHOWN.has(path[0] ?? '')) return false
  if (typeof value === 'boolean' || value === null) return true
  if (typeof value !== 'string' && typeof value !== 'number') return false
  if (LABELS.has(leaf) || LABELS.has(parent)) return LABEL.test(String(value))
  if (typeof value === 'number') return !isSensitiveName(leaf)
  if (value === '') return true
  if (AMOUNTS.has(leaf) || AMOUNTS.has(parent)) return AMOUNT.test(value)
  if (NAMES.has(leaf) || NAMES_BELOW[leaf]?.has(parent) === true) return isName(value)
  if (ADDRESSES.has(leaf)) return ADDRESS.test(value)
  if (leaf === 'type' && path.length === 1) return SECRET_TYPE.test(value)
  return WORDS.has(leaf) && WORD.test(value)
}

const KEY = /^[-._A-Za-z0-9/]{1,317}$/
/** True for a key that Kubernetes allows in labels, annotations and data. */
export const isKey = (key: string): boolean => KEY.test(key)
