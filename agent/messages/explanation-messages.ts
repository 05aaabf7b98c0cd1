// Texts that explain why an object is not healthy: by its Pods, its Jobs, the taints of nodes, or its health rule. Each
// follows the message of the object.
import { type Table, textsOf } from '../../shared/runtime/messages.ts'

interface Container {
  /** An init container of its Pod. */
  isInit: boolean
  name: string
}
const containerText = ({ isInit, name }: Container): string => `${isInit ? 'init container' : 'container'} ${name}`

export const EXPLANATIONS = {
  pod: { text: ({ pod, finding }: { pod: string; finding: string }) => `${pod}: ${finding}` },
  one_of_pods: {
    text: ({ failing, seen, pod, finding }: { failing: number; seen: number; pod: string; finding: string }) =>
      `${failing} of ${seen} Pods are not healthy, such as ${pod}: ${finding}`,
  },
  pods_unread: {
    text: ({ failure }: { failure: string }) => `cannot read its Pods (${failure})`,
    next: 'allow the agent to list and watch pods',
  },
  pod_failed: { text: 'it failed' },
  pod_not_scheduled: { text: 'not scheduled' },
  pod_phase: { text: ({ phase }: { phase: string }) => `phase ${phase === '' ? 'not set' : phase}` },
  container_ended: { text: (container: Container & { end: string }) => `${containerText(container)} ${container.end}` },
  container_waits: { text: (container: Container & { why: string }) => `${containerText(container)} ${container.why}` },
  container_restarted: {
    text: (container: Container & { end: string }) => `${containerText(container)} ${container.end} and was restarted`,
  },
  container_not_ready: { text: (container: Container) => `${containerText(container)} is running but not ready` },
  exited: {
    text: ({ exitCode, signal, reason }: { exitCode: number; signal: string; reason: string }) =>
      `exited with code ${exitCode}${signal === '' ? '' : ` by signal ${signal}`}${reason === '' ? '' : ` (${reason})`}`,
  },
  job: { text: ({ name, cause }: { name: string; cause: string }) => `Job ${name}: ${cause}` },
  taint: { text: ({ key, count }: { key: string; count: number }) => `${key} on ${count} ${count === 1 ? 'node' : 'nodes'}` },
  taints: { text: ({ taints }: { taints: string }) => `untolerated taints: ${taints}` },
  most_taints: { text: ({ taints }: { taints: string }) => `untolerated taints: ${taints} and others` },
  rule_too_new: { text: ({ why }: { why: string }) => `${why}; this agent may be too old for it` },
} satisfies Table

export const explanation = textsOf(EXPLANATIONS)

/** By the reason of the Event with which the Job controller ends a Job, in the words of that controller. */
export const JOB_ENDS = {
  BackoffLimitExceeded: { text: 'Job has reached the specified backoff limit' },
  DeadlineExceeded: { text: 'Job was active longer than specified deadline' },
  PodFailurePolicy: { text: 'a Pod failed in a way for which podFailurePolicy ends the Job' },
  'PodFailurePolicy.exitCode': {
    text: ({ exitCode }: { exitCode: string }) => `a Pod failed in a way for which podFailurePolicy ends the Job (exit code ${exitCode})`,
  },
  FailedIndexes: { text: 'Job has failed indexes' },
  MaxFailedIndexesExceeded: { text: 'Job has exceeded the specified maximal number of failed indexes' },
} satisfies Table

export const jobEnd = textsOf(JOB_ENDS)
