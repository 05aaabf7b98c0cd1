// Which routes an event goes to, pure. The routes are read once; the answer for a reason, a project and a service is
// kept, so that ten thousand events of one service look at the routes once.
import { type LabelSelector, type Labels, matchesSelector } from '../../shared/model/labels.ts'
import type { NotificationRouteSpec } from '../../shared/model/notifications.ts'
import { FLEET } from '../../shared/model/resources.ts'
import type { FleetEvent } from '../fleet/records.ts'
import { ENDS, isAtLeast, severityOf } from './severity.ts'

export interface Route {
  /** '' is the fleet. */
  project: string
  name: string
  spec: NotificationRouteSpec
}

export interface Routing {
  routes: readonly Route[]
  /** Routes that get it. `labels`: of its cluster. Null means about no cluster, or one that is gone. */
  routesOf(event: FleetEvent, labels: Labels | null): readonly Route[]
  /** Whether labels of clusters matter. */
  readsLabels: boolean
}

/** Answers that are kept. */
const KEPT_MAX = 10_000

export function createRouting(routes: readonly Route[]): Routing {
  const kept = new Map<string, readonly Route[]>()
  const candidates = (event: FleetEvent): readonly Route[] => {
    const key = `${event.type} ${event.reason} ${event.project ?? ''}/${event.service ?? ''} ${event.cluster === null}`
    const held = kept.get(key)
    if (held !== undefined) return held
    const found = routes.filter((route) => takes(route, event))
    if (kept.size >= KEPT_MAX) kept.clear()
    kept.set(key, found)
    return found
  }
  return {
    routes,
    routesOf: (event, labels) =>
      candidates(event).filter(({ spec }) => spec.clusters === undefined || (labels !== null && selects(spec.clusters, labels))),
    readsLabels: routes.some(({ spec }) => spec.clusters !== undefined),
  }
}

const selects = (selector: LabelSelector, labels: Labels): boolean => matchesSelector(labels, selector)

function takes({ project, spec }: Route, event: FleetEvent): boolean {
  // NR3: a route of a project never gets what belongs to another one, or to none.
  if (project !== FLEET && event.project !== project) return false
  if (!isAtLeast(severityOf(event.type, event.reason), spec.severity)) return false
  if (spec.events !== undefined && !spec.events.some((pattern) => fits(pattern, event.reason))) return false
  if (spec.projects !== undefined && !spec.projects.some((pattern) => event.project !== null && fits(pattern, event.project))) return false
  if (spec.services !== undefined && !spec.services.some((pattern) => event.service !== null && fits(pattern, event.service))) return false
  return spec.clusters === undefined || event.cluster !== null
}

export const fits = (pattern: string, name: string): boolean =>
  pattern.endsWith('*') ? name.startsWith(pattern.slice(0, -1)) : pattern === name

/** Whether the event can matter to anything: it goes to a route, or ends what one told. */
export const endsSomething = ({ reason }: FleetEvent): boolean => Object.hasOwn(ENDS, reason)
