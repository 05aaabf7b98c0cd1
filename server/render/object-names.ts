// Names, labels and annotations that no API server takes, found before any cluster is asked. What is not known of a
// kind is not judged: what one server takes must not be refused here. Rules as of Kubernetes 1.36 (staging apimachinery
// pkg/api/validate/content, pkg/util/validation; pkg/apis/*/validation/validation.go), and not stricter than 1.33.
// Pure.
import { groupOf, type K8sObject } from '../../shared/kube/object.ts'
import { orderOf } from '../../shared/kube/waves.ts'

/** `at`: the field. */
export interface NameFault {
  at: readonly string[]
  message: string
}

interface TextRule {
  pattern: RegExp
  max: number
  expected: string
  /** Replaces characters that are not allowed there. */
  other: RegExp
}

const ENDS = 'a letter or digit first and last'
/** apimachinery: IsDNS1123Label. */
const LABEL: TextRule = {
  pattern: /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/,
  max: 63,
  expected: `lower-case letters, digits and "-", ${ENDS}`,
  other: /[^a-z0-9]+/g,
}
/** apimachinery: IsDNS1123Subdomain. */
const SUBDOMAIN: TextRule = {
  pattern: /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/,
  max: 253,
  expected: `lower-case letters, digits, "-" and ".", ${ENDS} of each part`,
  other: /[^a-z0-9.]+|\.{2,}/g,
}
/**
 * content.IsPathSegmentName, and no control characters, which are never intended. A longer name has no room in the id
 * of its row.
 */
const SEGMENT: TextRule = {
  pattern: /^(?!\.{1,2}$)[^/%\p{Cc}]+$/u,
  max: 253,
  expected: 'any name but "." and "..", without "/" and "%"',
  other: /[/%\p{Cc}]+/gu,
}
/** content.IsLabelValue, and the name part of content.IsLabelKey. */
const LABEL_VALUE: TextRule = {
  pattern: /^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$/,
  max: 63,
  expected: `letters, digits, "-", "_" and ".", ${ENDS}`,
  other: /[^A-Za-z0-9_.]+/g,
}

/**
 * Kinds whose names are held against more than a path segment, by the ValidateObjectMeta of their group. Not here,
 * because they take more or are named otherwise: RBAC, PodDisruptionBudget, APIService, CustomResourceDefinition, Node,
 * CertificateSigningRequest, and whatever is not built in. A Service was a DNS-1035 label (no digit first) before
 * RelaxedServiceNameValidation; a StatefulSet is a label for new ones, and those that have dots from earlier versions
 * are still updated (ValidateStatefulSetUpdate).
 */
const RULES: Readonly<Record<string, ReadonlyArray<readonly [TextRule, string]>>> = {
  '': [
    [LABEL, 'Namespace Service'],
    [
      SUBDOMAIN,
      'ConfigMap Endpoints LimitRange PersistentVolume PersistentVolumeClaim Pod PodTemplate ReplicationController ResourceQuota Secret ServiceAccount',
    ],
  ],
  'admissionregistration.k8s.io': [[SUBDOMAIN, 'MutatingWebhookConfiguration ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding ValidatingWebhookConfiguration']],
  apps: [[SUBDOMAIN, 'DaemonSet Deployment ReplicaSet StatefulSet']],
  autoscaling: [[SUBDOMAIN, 'HorizontalPodAutoscaler']],
  batch: [[SUBDOMAIN, 'CronJob Job']],
  'coordination.k8s.io': [[SUBDOMAIN, 'Lease']],
  'discovery.k8s.io': [[SUBDOMAIN, 'EndpointSlice']],
  'networking.k8s.io': [[SUBDOMAIN, 'Ingress IngressClass NetworkPolicy']],
  'node.k8s.io': [[SUBDOMAIN, 'RuntimeClass']],
  'scheduling.k8s.io': [[SUBDOMAIN, 'PriorityClass']],
  'storage.k8s.io': [[SUBDOMAIN, 'CSIDriver StorageClass VolumeAttributesClass']],
} // biome-ignore format: a table

const ruleByKind = new Map(
  Object.entries(RULES).flatMap(([group, rules]) =>
    rules.flatMap(([rule, kinds]) => kinds.split(' ').map((kind) => [`${group}/${kind}`, rule] as const)),
  ),
)

/** apimachinery: TotalAnnotationSizeLimitB, keys and values. */
const ANNOTATIONS_BYTES_MAX = 256 * 1024

/** RN10: all that is wrong in the metadata of an object that is to be applied; of one that is skipped nothing is asked.
 */
export function nameFaults({ apiVersion, kind, metadata }: K8sObject): NameFault[] {
  const { name, generateName, labels = {}, annotations = {} } = metadata
  if (orderOf(annotations).kind === 'skipped') return []
  const faults: NameFault[] = []
  const field = name === undefined && generateName !== undefined ? 'generateName' : 'name'
  const rule = ruleByKind.get(`${groupOf(apiVersion)}/${kind}`)
  const wrong = rule === undefined ? null : wrongName(field, metadata[field] ?? '', rule)
  if (wrong !== null) faults.push({ at: ['metadata', field], message: `${wrong.found} cannot ${wrong.be} of a ${kind}: ${wrong.expected}` })
  for (const [key, value] of Object.entries(labels)) {
    const keyFault = wrongKey(key)
    if (keyFault !== null) faults.push({ at: ['metadata', 'labels', key], message: `the label ${keyFault}` })
    if (value !== '' && !holds(value, LABEL_VALUE))
      faults.push({ at: ['metadata', 'labels', key], message: `the label ${shown(key)} has the invalid value ${shown(value)}: ${expectedOf(value, LABEL_VALUE)}, or none` })
  } // biome-ignore format: one line each
  let bytes = 0
  for (const [key, value] of Object.entries(annotations)) {
    bytes += Buffer.byteLength(key) + Buffer.byteLength(value)
    const fault = wrongKey(key.toLowerCase(), key)
    if (fault !== null) faults.push({ at: ['metadata', 'annotations', key], message: `the annotation ${fault}` })
  }
  if (bytes > ANNOTATIONS_BYTES_MAX)
    faults.push({
      at: ['metadata', 'annotations'],
      message: `annotations have ${bytes} bytes, more than the ${ANNOTATIONS_BYTES_MAX} that Kubernetes permits; put large texts into a ConfigMap`,
    })
  return faults
}

/** RN10, of any kind. Null means that it can be one. `prefix`: something is put behind it. */
export const wrongSegment = (name: string, prefix = false): string | null =>
  holds(prefix ? `${name}0` : name, SEGMENT) ? null : expectedOf(name, SEGMENT)
/** The same of a namespace. */
export const wrongNamespace = (name: string): string | null => (holds(name, LABEL) ? null : expectedOf(name, LABEL))

function wrongName(field: 'name' | 'generateName', text: string, rule: TextRule): { found: string; be: string; expected: string } | null {
  // The suffix begins with a letter or digit, and may shorten a text that would be too long.
  if (field === 'generateName' ? text.length <= rule.max && rule.pattern.test(`${text}0`) : holds(text, rule)) return null
  const be = field === 'name' ? 'be the name' : 'begin the name'
  return { found: `metadata.${field} ${shown(text)}`, be, expected: expectedOf(text, rule) }
}

/** content.IsLabelKey; annotations are asked for in lower case. */
function wrongKey(key: string, written = key): string | null {
  const slash = key.indexOf('/')
  const [prefix, name] = slash < 0 ? [null, key] : [key.slice(0, slash), key.slice(slash + 1)]
  if ((prefix === null || holds(prefix, SUBDOMAIN)) && holds(name, LABEL_VALUE)) return null
  const example = `${prefix === null ? '' : `${exampleOf(prefix, SUBDOMAIN)}/`}${exampleOf(name.slice(name.lastIndexOf('/') + 1), LABEL_VALUE)}`
  return `${shown(written)} is not a valid key: expected NAME or PREFIX/NAME, where NAME is ${LABEL_VALUE.expected}, at most ${LABEL_VALUE.max} characters, and PREFIX is a DNS name, such as ${example}`
}

const holds = (text: string, { pattern, max }: TextRule): boolean => text.length <= max && pattern.test(text)

const expectedOf = (text: string, rule: TextRule): string =>
  `expected ${rule.expected}, at most ${rule.max} characters, such as ${exampleOf(text, rule)}`

/** A probable correction, as an example. */
function exampleOf(text: string, rule: TextRule): string {
  const lower = rule.pattern.test('A') ? text : text.toLowerCase()
  const near = lower.slice(0, EXAMPLE_LENGTH_MAX).replace(rule.other, '-').replace(/^[-._]+|[-._]+$/g, '').replace(/-*\.-*/g, '.') // biome-ignore format: in its order
  return holds(near, rule) ? near : 'example'
}
const EXAMPLE_LENGTH_MAX = 40

const SHOWN_LENGTH_MAX = 80
/** Quoted, and cut. */
export const shown = (text: string): string => {
  const isLong = text.length > SHOWN_LENGTH_MAX
  return `${JSON.stringify(isLong ? `${text.slice(0, SHOWN_LENGTH_MAX)}…` : text)}${isLong ? ` (${text.length} characters)` : ''}`
}
