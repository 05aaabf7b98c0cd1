// Kinds that run to an end may be Progressing for hours while their work continues, and without end while it cannot
// begin. Their status distinguishes the two: only work that continues stops the clock of the health deadline.
import { at, count, type Fields, fields, list, text } from './health-object.ts'
import { groupOf, type K8sObject } from './object.ts'

type Works = (status: Fields) => boolean

const conditionOf = (status: Fields, type: string): Fields => list(status['conditions']).find((entry) => entry['type'] === type) ?? {}
const isTrue =
  (type: string): Works =>
  (status) =>
    conditionOf(status, type)['status'] === 'True'
const says =
  (path: readonly string[], words: readonly string[]): Works =>
  (status) =>
    words.includes(text(at(status, ...path)))

/** `ready` counts the Pods that run; Kubernetes before 1.24 has only `active`, which also counts those that wait for a
 *  node or an image. */
const job: Works = (status) => count(status['ready'], count(status['active'])) > 0
const tektonRun: Works = (status) => {
  const condition = conditionOf(status, 'Succeeded')
  return condition['status'] === 'Unknown' && ['Started', 'Running'].includes(text(condition['reason']))
}
const velero = says(
  ['phase'],
  ['InProgress', 'WaitingForPluginOperations', 'WaitingForPluginOperationsPartiallyFailed', 'Finalizing', 'FinalizingPartiallyFailed'],
)
/** A promotion waits for a pull request or a check, which a person may take days for; Ready says that its controller
 *  keeps up. */
const promotes = isTrue('Ready')

const WORKS: Readonly<Record<string, Works>> = {
  'argoproj.io/Workflow': says(['phase'], ['Running']),
  'batch/Job': job,
  'jobset.x-k8s.io/JobSet': (status) => list(status['replicatedJobsStatus']).some(({ ready }) => count(ready) > 0),
  'kubeflow.org/MPIJob': isTrue('Running'),
  'kubeflow.org/PyTorchJob': isTrue('Running'),
  'kubeflow.org/TFJob': isTrue('Running'),
  'kubeflow.org/XGBoostJob': isTrue('Running'),
  'lifecycle.keptn.sh/KeptnTask': says(['status'], ['Progressing']),
  'metrics.keptn.sh/Analysis': says(['state'], ['Progressing']),
  'promoter.argoproj.io/ChangeTransferPolicy': promotes,
  'promoter.argoproj.io/CommitStatus': says(['phase'], ['pending']),
  'promoter.argoproj.io/PromotionStrategy': promotes,
  'ray.io/RayJob': (status) => status['jobStatus'] === 'RUNNING' || status['jobDeploymentStatus'] === 'Running',
  'sparkoperator.k8s.io/SparkApplication': says(['applicationState', 'state'], ['RUNNING']),
  'tekton.dev/PipelineRun': tektonRun,
  'tekton.dev/TaskRun': tektonRun,
  'tower.ansible.com/AnsibleJob': says(['ansibleJobResult', 'status'], ['running']),
  'trainer.kubeflow.org/TrainJob': (status) => list(status['jobsStatus']).some(({ active }) => count(active) > 0),
  'velero.io/Backup': velero,
  'velero.io/Restore': velero,
}

/** Kinds whose objects do some work and end. */
export const worksToAnEnd = (group: string, kind: string): boolean => Object.hasOwn(WORKS, `${group}/${kind}`)

/** HE21: its work continues now. */
export function isWorking(object: K8sObject): boolean {
  if (object.metadata.deletionTimestamp !== undefined) return false
  return WORKS[`${groupOf(object.apiVersion)}/${object.kind}`]?.(fields(object['status'])) ?? false
}

/** Kinds that wait once, after their creation, and never again. */
const WAITS_FROM_BIRTH: ReadonlySet<string> = new Set(['/PersistentVolumeClaim', '/Pod', 'batch/Job'])

/** When something about an object that is Progressing moved last, as it says itself: the newest transition of its
 *  conditions and the newest change by `manager`. Null means that it does not say. */
export function lastMovedMs(object: K8sObject, manager: string): number | null {
  const { creationTimestamp, managedFields = [] } = object.metadata
  const transitions = list(fields(object['status'])['conditions']).flatMap((entry) => [
    entry['lastTransitionTime'],
    entry['lastUpdateTime'],
  ])
  const moved = transitions.map(timeOf).filter((atMs) => atMs !== null)
  const isFromBirth = WAITS_FROM_BIRTH.has(`${groupOf(object.apiVersion)}/${object.kind}`)
  if (moved.length === 0 && !isFromBirth) return null
  const own = managedFields.filter((entry) => entry.manager === manager && entry.subresource === undefined).map(({ time }) => time)
  const known = [...moved, ...[creationTimestamp, ...own].map(timeOf).filter((atMs) => atMs !== null)]
  return known.length === 0 ? null : Math.max(...known)
}

function timeOf(value: unknown): number | null {
  const atMs = Date.parse(text(value))
  return Number.isNaN(atMs) ? null : atMs
}
