// Runs a case of the corpus as an agent and the server would: health and explanation of each object, then the causes.
import { EventFindings, POD_CAUSES } from '../../agent/reconcile/report/explain-events.ts'
import { PodFindings } from '../../agent/reconcile/report/explain-workload.ts'
import { TaintFindings } from '../../agent/reconcile/report/node-taints.ts'
import { explain, type WhyFacts, type WhyObject } from '../../server/fleet/why/explain.ts'
import { healthOf } from '../../shared/kube/health.ts'
import type { K8sObject } from '../../shared/kube/object.ts'
import type { WhyCause } from '../../shared/model/why.ts'
import type { LiveCase, RefusedCase, WhyCase } from './why-corpus-objects.ts'

const NOW_MS = Date.parse('2026-01-01T01:00:00Z')

function liveObject({ object, pods = [], events = [], podEvents = [], nodes = [] }: LiveCase): WhyObject {
  const health = healthOf(object, NOW_MS)
  const findings = new PodFindings(object)
  for (const pod of pods) findings.add(pod)
  const explanation = findings.explain()
  const said = explanation === null ? eventText(object, events) : explanation.text
  const more = explanation?.eventsOf == null ? '' : eventText(explanation.eventsOf, podEvents, POD_CAUSES)
  const taints = explanation?.taintsOf == null ? '' : taintText(explanation.taintsOf, nodes)
  // Without an end it would be DeadlineExceeded: the agent says so of what is Progressing for too long.
  const reason = health.word === 'Progressing' ? 'DeadlineExceeded' : (health.reason ?? '')
  const message = [health.message ?? '', said, more, taints].filter((text) => text !== '').join('; ')
  const { namespace = '', name = '' } = object.metadata
  return {
    ...{ cluster: 'c1', name: `${object.kind} ${namespace}/${name}`, sync: 'Synced', health: 'Degraded', reason, message },
    ...{ sinceMs: NOW_MS, driftBy: null },
  }
}

function taintText(pod: K8sObject, nodes: readonly K8sObject[]): string {
  const findings = new TaintFindings(pod)
  for (const node of nodes) findings.add(node)
  return findings.explain()
}

function eventText(object: K8sObject, events: NonNullable<LiveCase['events']>, causes?: ReadonlySet<string>): string {
  const findings = new EventFindings(object, causes)
  for (const event of events)
    findings.add({ apiVersion: 'v1', kind: 'Event', metadata: { name: 'e' }, type: 'Warning', ...event } as unknown as K8sObject)
  return findings.explain()
}

const refusedObject = ({ name, reason, message, health = 'Missing', sync = 'OutOfSync' }: RefusedCase): WhyObject => ({
  ...{ cluster: 'c1', name, sync, health, reason, message, sinceMs: NOW_MS, driftBy: null },
})

export function factsOf({ live = [], refused = [], placement, service }: WhyCase): WhyFacts {
  const objects = [...live.map(liveObject), ...refused.map(refusedObject)]
  const [worst] = objects
  const state = {
    sync: worst?.sync ?? 'OutOfSync',
    health: worst?.health ?? 'Missing',
    reason: worst?.reason ?? '',
    message: worst?.message ?? '',
  }
  const told = { ...state, ...service, next: '', sinceMs: NOW_MS }
  const placements = service === undefined ? [{ ...state, ...placement, next: '', sinceMs: NOW_MS, cluster: 'c1', liveness: 'Online' }] : []
  return { service: told, placements, objects, clusterCount: 1, dependencies: [] }
}

export const causesOf = (one: WhyCase): WhyCause[] => explain(factsOf(one))
