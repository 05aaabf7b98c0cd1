// Nodes with their capacity and what Pods request of it.
import type { K8sObject } from '../../shared/kube/object.ts'
import { questionRefusal } from '../messages/question-messages.ts'
import { nodeLine, noteLine } from './answer-lines.ts'
import type { AnswerSink } from './answer-writer.ts'
import type { AnswerContext } from './ask-context.ts'
import { AskRefused } from './ask-desk.ts'

interface NodeStatus {
  capacity?: Record<string, string>
  allocatable?: Record<string, string>
  conditions?: Array<{ type: string; status: string; reason?: string; message?: string }>
  nodeInfo?: { kubeletVersion?: string }
}
interface PodBody {
  nodeName?: string
  containers?: Array<{ resources?: { requests?: Record<string, string> } }>
}

const SHOWN = ['cpu', 'memory', 'pods', 'ephemeral-storage']

export async function answerNodes({ reads }: AnswerContext, sink: AnswerSink, signal: AbortSignal): Promise<void> {
  const nodes = await reads.list({ group: '', kind: 'Node' }, { fromCache: true, signal })
  if (nodes.items === null) throw new AskRefused(questionRefusal('agent_forbidden.list', { why: nodes.why }))
  if (nodes.why !== null) await sink.write(noteLine(nodes.why))
  const pods = await reads.list({ group: '', kind: 'Pod' }, { fromCache: true, signal })
  if (pods.why !== null) await sink.write(noteLine(pods.why))
  const byNode = Map.groupBy((pods.items ?? []).filter(runs), (pod) => (pod['spec'] as PodBody | undefined)?.nodeName ?? '')
  for (const node of nodes.items.toSorted((a, b) => String(a.metadata.name).localeCompare(String(b.metadata.name)))) {
    const { capacity = {}, allocatable = {}, conditions = [], nodeInfo = {} } = (node['status'] ?? {}) as NodeStatus
    const own = byNode.get(node.metadata.name ?? '') ?? []
    const isUnschedulable = (node['spec'] as { unschedulable?: boolean } | undefined)?.unschedulable === true
    await sink.write(
      nodeLine({
        ...{ node, isUnschedulable, version: nodeInfo.kubeletVersion ?? '', pods: own.length },
        isReady: conditions.some(({ type, status }) => type === 'Ready' && status === 'True'),
        conditions: conditions.filter(({ type, status }) => (type === 'Ready' ? status !== 'True' : status === 'True')),
        capacity: only(capacity),
        allocatable: only(allocatable),
        requested: { cpu: requested(own, 'cpu'), memory: requested(own, 'memory') },
      }),
    )
  }
}

const runs = (pod: K8sObject): boolean =>
  !['Succeeded', 'Failed'].includes(String((pod['status'] as { phase?: string } | undefined)?.phase))
const only = (amounts: Record<string, string>) =>
  Object.fromEntries(SHOWN.flatMap((name) => (amounts[name] === undefined ? [] : [[name, String(amounts[name])]])))

const requested = (pods: readonly K8sObject[], name: string): number => {
  const amounts = pods.flatMap((pod) =>
    ((pod['spec'] as PodBody | undefined)?.containers ?? []).map(({ resources }) => amountOf(resources?.requests?.[name])),
  )
  return Math.round(amounts.reduce((sum, amount) => sum + amount, 0) * 1_000) / 1_000
}

const FACTORS: Readonly<Record<string, number>> = {
  ...{ n: 1e-9, u: 1e-6, m: 1e-3, k: 1e3, M: 1e6, G: 1e9, T: 1e12, P: 1e15, E: 1e18 },
  ...{ Ki: 2 ** 10, Mi: 2 ** 20, Gi: 2 ** 30, Ti: 2 ** 40, Pi: 2 ** 50, Ei: 2 ** 60 },
}
/** A quantity as a number of its base unit: `500m` is 0.5. */
export function amountOf(text: string | undefined): number {
  const [, digits = '0', unit = ''] = /^(-?[0-9.]+(?:[eE][-+]?[0-9]+)?)([a-zA-Z]*)$/.exec(String(text ?? '0')) ?? []
  return Number(digits) * (FACTORS[unit] ?? 1)
}
