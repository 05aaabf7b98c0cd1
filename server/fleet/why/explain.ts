// From facts of a service to causes, the most likely one first. Pure: equal facts give equal answers.
import type { WhyCause, WhyEvidence } from '../../../shared/model/why.ts'
import { DEPTH } from './apply-signs.ts'
import { readSign } from './signs.ts'
import { readState } from './states.ts'

export interface WhyObject {
  cluster: string
  /** `Deployment shop/web`. */
  name: string
  sync: string
  health: string
  reason: string
  message: string
  sinceMs: number | null
  /** The field manager of its newest drift that is not corrected. Null means that there is none. */
  driftBy: string | null
}

export interface WhyPlacement {
  cluster: string
  liveness: string
  sync: string
  health: string
  reason: string
  message: string
  next: string
  sinceMs: number | null
}

export interface WhyFacts {
  service: { sync: string; health: string; reason: string; message: string; next: string; sinceMs: number | null }
  placements: readonly WhyPlacement[]
  /** Those that are not Synced and Healthy. */
  objects: readonly WhyObject[]
  /** Clusters that should have the service. */
  clusterCount: number
  /** Causes of the services that it waits for. */
  dependencies: ReadonlyArray<{ key: string; cause: WhyCause | null; state: string }>
}

interface Weighed extends WhyCause {
  depth: number
}

const CLUSTERS_NAMED = 5
const EVIDENCE_MAX = 5

export function explain(facts: WhyFacts): WhyCause[] {
  const found = [...ofService(facts), ...facts.placements.flatMap((one) => ofPlacement(one, facts)), ...facts.objects.map(ofObject)]
  const merged = merge(found)
  const first = merged[0]
  if (first !== undefined) first.evidence.push(...spread(first, facts))
  return merged.map(({ depth: _, ...cause }) => ({ ...cause, evidence: cause.evidence.slice(0, EVIDENCE_MAX) }))
}

function ofService({ service, placements }: WhyFacts): Weighed[] {
  const state = readState(service.reason)
  // Reports of an agent are checked for their origin.
  if (state === null || state.of !== 'service' || placements.some(({ reason }) => reason === service.reason && reason !== 'RenderFailed'))
    return []
  return [
    {
      ...{ cause: state.cause, summary: state.summary, depth: state.depth, object: null },
      clusters: { count: 0, first: [] },
      evidence: [evidence('status', `${service.reason}: ${service.message}`, service.sinceMs)],
      next: service.next === '' ? state.next : service.next,
    },
  ]
}

function ofPlacement(placement: WhyPlacement, { dependencies }: WhyFacts): Weighed[] {
  const { cluster, reason, message, next, sinceMs } = placement
  const state = readState(reason)
  if (state === null) return []
  const blocked = reason === 'BlockedBy' ? dependencies.find(({ cause }) => cause !== null) : undefined
  const because = blocked?.cause ?? null
  return [
    {
      cause: state.cause,
      summary: because === null ? state.summary : `the service waits for ${blocked?.key}: ${because.summary}`,
      depth: state.depth,
      object: null,
      clusters: { count: 1, first: [cluster] },
      evidence: [
        evidence('status', `${reason}: ${message}`, sinceMs),
        ...(because === null ? [] : because.evidence.map((one) => ({ ...one, text: `${blocked?.key}: ${one.text}` }))),
      ],
      next: because?.next ?? (next === '' ? state.next : next),
    },
  ]
}

function ofObject({ cluster, name, sync, health, reason, message, sinceMs, driftBy }: WhyObject): Weighed {
  const read = readSign({ reason, message })
  const drift = driftBy === null || driftBy === '' ? [] : [evidence('object', `${name} was changed by ${driftBy}`, null)]
  const told = evidence(
    'object',
    `${name} is ${health === 'Healthy' ? sync : health}: ${reason}${message === '' ? '' : `: ${message}`}`,
    sinceMs,
  )
  const clusters = { count: 1, first: [cluster] }
  if (read === null) {
    const summary = message === '' ? `${name} is ${health === 'Healthy' ? sync : health}` : (message.split('; ')[0] ?? message)
    const cause = reason === '' || reason === health ? (health === 'Healthy' ? sync : health) : reason
    return {
      cause,
      summary,
      object: name,
      clusters,
      evidence: [told, ...drift],
      next: NEXT_OTHER,
      depth: waits(health, reason) ? 0 : DEPTH.other - 1,
    }
  }
  return {
    cause: read.sign.cause,
    summary: read.summary,
    object: name,
    clusters,
    evidence: [told, ...drift],
    next: read.next,
    depth: read.sign.depth,
  }
}

const NEXT_OTHER = '`skerry describe service` shows the objects; the message of the object names its trouble.'

/** It is on its way, or waits for another object. */
const waits = (health: string, reason: string): boolean =>
  health === 'Progressing' || ['Waiting', 'Pending', 'NotReported'].includes(reason)

/** The same cause of the same object in several clusters is one. */
function merge(found: readonly Weighed[]): Weighed[] {
  const byKey = new Map<string, Weighed>()
  for (const one of found) {
    const key = `${one.cause}\n${one.object ?? ''}\n${one.summary}`
    const held = byKey.get(key)
    if (held === undefined) {
      byKey.set(key, { ...one, evidence: [...one.evidence] })
      continue
    }
    held.clusters = {
      count: held.clusters.count + one.clusters.count,
      first: [...held.clusters.first, ...one.clusters.first].slice(0, CLUSTERS_NAMED),
    }
  }
  return [...byKey.values()].sort(
    (a, b) =>
      b.depth - a.depth || b.clusters.count - a.clusters.count || compare(a.object ?? '', b.object ?? '') || compare(a.cause, b.cause),
  )
}

/** Whether it is the revision or the place: the same cause everywhere, or in few clusters. */
function spread({ clusters }: Weighed, { clusterCount, placements }: WhyFacts): WhyEvidence[] {
  if (clusterCount < 2 || clusters.count === 0 || placements.length < 2) return []
  const everywhere = clusters.count >= clusterCount
  const text = everywhere
    ? `in all ${clusterCount} clusters: the revision is more likely the cause than a cluster`
    : `in ${clusters.count} of ${clusterCount} clusters (${clusters.first.join(', ')})`
  return [evidence('fleet', text, null)]
}

export const evidence = (from: string, text: string, atMs: number | null): WhyEvidence => ({ from, text, atMs })
const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)
