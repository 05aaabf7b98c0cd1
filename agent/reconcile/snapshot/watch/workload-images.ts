// The images of a workload: the references in its live pod template. Only Pods, which the agent does not watch, know
// the digest that a node pulled. A reference with a digest has both.
import { groupOf, type K8sObject } from '../../../../shared/kube/object.ts'
import { IMAGE_CHARS_MAX, IMAGES_MAX } from '../../../../shared/model/status.ts'

type Fields = Record<string, unknown>

/** Where the kind keeps its pod's spec. */
const POD_SPEC: Record<string, readonly string[]> = {
  '/Pod': ['spec'],
  'apps/Deployment': ['spec', 'template', 'spec'],
  'apps/StatefulSet': ['spec', 'template', 'spec'],
  'apps/DaemonSet': ['spec', 'template', 'spec'],
  'apps/ReplicaSet': ['spec', 'template', 'spec'],
  'batch/Job': ['spec', 'template', 'spec'],
  'batch/CronJob': ['spec', 'jobTemplate', 'spec', 'template', 'spec'],
}

/** RC18: sorted, each once; null for a kind without images. Ephemeral containers are temporary and not part of the
 *  workload. */
export function workloadImages(object: K8sObject): string[] | null {
  const path = POD_SPEC[`${groupOf(object.apiVersion)}/${object.kind}`]
  if (path === undefined) return null
  const podSpec = path.reduce((fields, name) => fieldsOf(fields[name]), fieldsOf(object))
  const images = new Set([...imagesIn(podSpec['initContainers']), ...imagesIn(podSpec['containers'])])
  return shared([...images].sort().slice(0, IMAGES_MAX))
}

function imagesIn(containers: unknown): string[] {
  if (!Array.isArray(containers)) return []
  return containers
    .map((container) => fieldsOf(container)['image'])
    .filter((image): image is string => typeof image === 'string' && image !== '' && image.length <= IMAGE_CHARS_MAX)
}

const fieldsOf = (value: unknown): Fields => (typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : {})

const LISTS_MAX = 1_000
const lists = new Map<string, string[]>()

/** One list for all equal ones: each is kept as long as its object exists, and every event creates a new one. */
function shared(images: string[]): string[] {
  const key = images.join('\n')
  const known = lists.get(key)
  if (known !== undefined) return known
  if (lists.size === LISTS_MAX) lists.clear()
  lists.set(key, images)
  return images
}
