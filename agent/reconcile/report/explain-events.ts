// Explains kinds without a useful status by the warnings about an object: Pods that quota or admission refuses, volumes
// that cannot be created. Pure.
import { fields, text } from '../../../shared/kube/health-object.ts'
import type { K8sObject } from '../../../shared/kube/object.ts'
import { safeText } from '../../cluster/redact/safe-text.ts'

/** Reasons of warnings that name the cause; others are temporary. */
const CAUSES: ReadonlySet<string> = new Set(['FailedCreate', 'FailedBinding', 'ProvisioningFailed', 'ExternalExpanding'])

/** The same for warnings about Pods. */
export const POD_CAUSES: ReadonlySet<string> = new Set([
  ...['FailedMount', 'FailedAttachVolume', 'FailedCreatePodSandBox', 'Unhealthy'],
  ...['FailedScheduling', 'NetworkNotReady', 'FailedPreStopHook'],
])

/** A claim that nobody can serve is no warning to Kubernetes: these Events about it are Normal. */
const CLAIM_CAUSES: ReadonlySet<string> = new Set(['FailedBinding', 'ExternalProvisioning'])
const isClaim = ({ kind }: Pick<K8sObject, 'kind'>): boolean => kind === 'PersistentVolumeClaim'
/** A warning stays for an hour. Controllers of these kinds tell in a Normal Event that a later Pod could be created. */
const CREATORS: ReadonlySet<string> = new Set(['ReplicaSet', 'StatefulSet', 'DaemonSet', 'Job'])
const [FAILED_CREATE, SUCCESSFUL_CREATE] = ['FailedCreate', 'SuccessfulCreate'] as const
export const tellsInNormalEvents = (object: Pick<K8sObject, 'kind'>): boolean => isClaim(object) || CREATORS.has(object.kind)

/** Reads Events one after the other and keeps the newest that names a cause, warnings first. `object`: their object. */
export class EventFindings {
  readonly #object: K8sObject
  readonly #causes: ReadonlySet<string>
  #createdAt = ''
  #newest: { isWarning: boolean; at: string; reason: string; message: string } | null = null

  constructor(object: K8sObject, causes = CAUSES) {
    this.#object = object
    this.#causes = causes
  }

  add(event: K8sObject): void {
    const reason = text(event['reason'])
    const isWarning = event['type'] === 'Warning'
    const [at, newest] = [lastTime(event), this.#newest]
    if (!isWarning && reason === SUCCESSFUL_CREATE && at > this.#createdAt) this.#createdAt = at
    const causes = isWarning ? this.#causes : isClaim(this.#object) ? CLAIM_CAUSES : NONE
    if (!causes.has(reason)) return
    if (newest !== null && (newest.isWarning === isWarning ? at <= newest.at : newest.isWarning)) return
    this.#newest = { isWarning, at, reason, message: text(event['message']) }
  }

  /** '' when no cause was named. */
  explain(): string {
    if (this.#newest === null || (this.#newest.reason === FAILED_CREATE && this.#createdAt > this.#newest.at)) return ''
    return `${this.#newest.reason}: ${safeText(this.#newest.message, { documents: [this.#object] })}`
  }
}

const NONE: ReadonlySet<string> = new Set()

/** Times of Kubernetes are of one form and sort as texts. */
const lastTime = (event: K8sObject): string =>
  text(fields(event['series'])['lastObservedTime']) ||
  text(event['lastTimestamp']) ||
  text(event['eventTime']) ||
  (event.metadata.creationTimestamp ?? '')
