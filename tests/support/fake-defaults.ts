// Defaults that an API server fills into built-in kinds after a write: nobody owns them, and they are there again after
// a field was removed. Only kinds that tests use; cluster-differential.test.ts compares Deployments with a real server.
import type { K8sObject } from '../../shared/kube/object.ts'

type Fields = Record<string, unknown>

/** The object with all defaults of its kind; the same object if the kind has none here. */
export function withDefaults(object: K8sObject): K8sObject {
  const fill = BY_KIND[`${object.apiVersion}/${object.kind}`]
  if (fill === undefined) return object
  const filled = structuredClone(object)
  fill(filled)
  return filled
}

const WORKLOAD = { revisionHistoryLimit: 10 }
const CONTAINER = { terminationMessagePath: '/dev/termination-log', terminationMessagePolicy: 'File', resources: {} }
const POD = {
  ...{ restartPolicy: 'Always', terminationGracePeriodSeconds: 30, dnsPolicy: 'ClusterFirst' },
  ...{ securityContext: {}, schedulerName: 'default-scheduler' },
}

const BY_KIND: Readonly<Record<string, (object: K8sObject) => void>> = {
  'apps/v1/Deployment': (object) => {
    const spec = inside(object, 'spec')
    defaulted(spec, { replicas: 1, strategy: {}, progressDeadlineSeconds: 600, ...WORKLOAD })
    rollingUpdate(inside(spec, 'strategy'), { maxUnavailable: '25%', maxSurge: '25%' })
    podTemplate(spec)
  },
  'apps/v1/StatefulSet': (object) => {
    const spec = inside(object, 'spec')
    defaulted(spec, { replicas: 1, podManagementPolicy: 'OrderedReady', updateStrategy: {}, ...WORKLOAD })
    rollingUpdate(inside(spec, 'updateStrategy'), { partition: 0 })
    podTemplate(spec)
  },
  'apps/v1/DaemonSet': (object) => {
    const spec = inside(object, 'spec')
    defaulted(spec, { updateStrategy: {}, ...WORKLOAD })
    rollingUpdate(inside(spec, 'updateStrategy'), { maxUnavailable: 1, maxSurge: 0 })
    podTemplate(spec)
  },
  'v1/Pod': (object) => podSpec(inside(object, 'spec')),
  'v1/Service': (object) => {
    const spec = inside(object, 'spec')
    defaulted(spec, { type: 'ClusterIP', sessionAffinity: 'None', internalTrafficPolicy: 'Cluster' })
    for (const port of lists(spec, 'ports')) defaulted(port, { protocol: 'TCP', targetPort: port['port'] })
  },
  'v1/Secret': (object) => defaulted(object, { type: 'Opaque' }),
  'v1/PersistentVolumeClaim': (object) => defaulted(inside(object, 'spec'), { volumeMode: 'Filesystem' }),
}

function rollingUpdate(strategy: Fields, parameters: Fields): void {
  defaulted(strategy, { type: 'RollingUpdate' })
  if (strategy['type'] !== 'RollingUpdate') return
  defaulted(strategy, { rollingUpdate: {} })
  defaulted(inside(strategy, 'rollingUpdate'), parameters)
}

function podTemplate(spec: Fields): void {
  if (spec['template'] === undefined) return
  podSpec(inside(inside(spec, 'template'), 'spec'))
}

function podSpec(spec: Fields): void {
  defaulted(spec, POD)
  for (const container of [...lists(spec, 'containers'), ...lists(spec, 'initContainers')]) {
    const image = String(container['image'] ?? '')
    const isLatest = image !== '' && !image.includes('@') && (!/:[^/]*$/.test(image) || image.endsWith(':latest'))
    defaulted(container, { ...CONTAINER, imagePullPolicy: isLatest ? 'Always' : 'IfNotPresent' })
    for (const port of lists(container, 'ports')) defaulted(port, { protocol: 'TCP' })
  }
}

function defaulted(fields: Fields, defaults: Fields): void {
  for (const [name, value] of Object.entries(defaults)) if (fields[name] === undefined) fields[name] = structuredClone(value)
}

/** The member as an object, made where it is missing. */
function inside(fields: Fields, name: string): Fields {
  const held = fields[name]
  if (held !== null && typeof held === 'object' && !Array.isArray(held)) return held as Fields
  const made: Fields = {}
  fields[name] = made
  return made
}

const lists = (fields: Fields, name: string): Fields[] => {
  const held = fields[name]
  return Array.isArray(held) ? held.filter((item) => item !== null && typeof item === 'object') : []
}
