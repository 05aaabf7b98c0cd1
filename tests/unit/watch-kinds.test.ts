// Which of the things that are shown a change is about.
import { expect, test } from 'bun:test'
import { type About, type Shown, WATCHING, type WatchedKind } from '../../server/cli/watch-kinds.ts'
import type { ChangeView } from '../../shared/model/change.ts'

const change = (topic: string, rest: Partial<ChangeView> = {}): ChangeView => ({
  id: 1,
  atMs: 1,
  topic,
  cluster: null,
  project: null,
  name: null,
  keys: null,
  ...rest,
})
const CLUSTERS: Shown = { items: new Map([['ship', { metadata: { name: 'ship', uid: 'c-1' } }]]) }
const web = { metadata: { project: 'p', name: 'web' }, spec: { source: { repository: 'apps' } } }
const SERVICES: Shown = { project: 'p', items: new Map([['p/web', web]]) }
const ALL: Shown = { items: new Map([['p/web', web]]) }
const ship = { name: 'ship', id: 'c-1' }
const of = (shown: Partial<Shown>): Shown => ({ items: new Map(), ...shown })

test.each<[WatchedKind, string, Shown, ChangeView, About]>([
  ['clusters', 'a status of a known one', CLUSTERS, change('status', { cluster: 'c-1' }), ['ship']],
  ['clusters', 'one that joined', CLUSTERS, change('cluster', { cluster: 'c-2', name: 'Cluster/new' }), ['new']],
  ['clusters', 'one that nobody named yet', CLUSTERS, change('status', { cluster: 'c-3' }), 'all'],
  ['clusters', 'relabelled', CLUSTERS, change('resource', { cluster: 'c-1', name: 'Cluster/ship' }), ['ship']],
  ['clusters', 'a service was written', CLUSTERS, change('resource', { project: 'p', name: 'Service/web' }), null],
  ['clusters', 'placed in some', CLUSTERS, change('desired', { project: 'p', name: 'web', keys: ['c-1', 'c-9'] }), ['ship']],
  ['clusters', 'placed in many', CLUSTERS, change('desired', { project: 'p', name: 'web' }), 'all'],
  ['clusters', 'a restore', CLUSTERS, change('restore'), 'all'],
  ['services', 'written', SERVICES, change('resource', { project: 'p', name: 'Service/new' }), ['p/new']],
  ['services', 'written elsewhere', SERVICES, change('resource', { project: 'q', name: 'Service/new' }), null],
  ['services', 'written elsewhere, all are shown', ALL, change('resource', { project: 'q', name: 'Service/new' }), ['q/new']],
  ['services', 'a repository was written', SERVICES, change('resource', { project: 'p', name: 'Repository/apps' }), null],
  ['services', 'its repository cannot be read', SERVICES, change('repository', { project: 'p', name: 'apps' }), ['p/web']],
  ['services', 'another repository', SERVICES, change('repository', { project: 'p', name: 'other' }), []],
  ['services', 'rendered', SERVICES, change('render', { project: 'p', name: 'web' }), ['p/web']],
  ['services', 'reported', SERVICES, change('status', { cluster: 'c-1', keys: ['service/p/web', 'object/p/web//Pod/n/x'] }), ['p/web']],
  ['services', 'objects only', SERVICES, change('status', { cluster: 'c-1', keys: ['object/p/web//Pod/n/x'] }), []],
  ['services', 'reported elsewhere', SERVICES, change('status', { cluster: 'c-1', keys: ['service/q/web'] }), []],
  ['services', 'much was reported', SERVICES, change('status', { cluster: 'c-1' }), 'all'],
  ['services', 'a cluster went', SERVICES, change('cluster', { cluster: 'c-1', name: 'Cluster/ship' }), 'all'],
  ['repositories', 'written', of({ project: 'p' }), change('resource', { project: 'p', name: 'Repository/apps' }), ['p/apps']],
  ['repositories', 'read', of({ project: 'p' }), change('repository', { project: 'p', name: 'apps' }), ['p/apps']],
  ['repositories', 'a service was written', of({ project: 'p' }), change('resource', { project: 'p', name: 'Service/web' }), null],
  ['health-rules', 'one of the fleet', of({}), change('resource', { project: '', name: 'HealthRule/thing' }), ['/thing']],
  ['health-rules', 'one of the project', of({ project: 'p' }), change('resource', { project: 'p', name: 'HealthRule/thing' }), ['p/thing']],
  ['health-rules', 'one elsewhere', of({ project: 'p' }), change('resource', { project: '', name: 'HealthRule/thing' }), null],
  [
    'placements',
    'of the service',
    of({ project: 'p', service: 'web' }),
    change('desired', { project: 'p', name: 'web', keys: ['c-1'] }),
    'all',
  ],
  ['placements', 'of another service', of({ project: 'p', service: 'web' }), change('desired', { project: 'p', name: 'api' }), null],
  ['placements', 'in the cluster', of({ cluster: ship }), change('desired', { project: 'p', name: 'web', keys: ['c-1'] }), 'all'],
  ['placements', 'in another cluster', of({ cluster: ship }), change('desired', { project: 'p', name: 'web', keys: ['c-2'] }), null],
  ['placements', 'reported', of({ cluster: ship }), change('status', { cluster: 'c-1', keys: ['service/q/api'] }), 'all'],
  ['placements', 'reported by another', of({ cluster: ship }), change('status', { cluster: 'c-2', keys: ['service/q/api'] }), null],
  [
    'placements',
    'objects only',
    of({ project: 'p', service: 'web' }),
    change('status', { cluster: 'c-2', keys: ['object/p/web//Pod/n/x'] }),
    null,
  ],
  [
    'objects',
    'of the service',
    of({ project: 'p', service: 'web' }),
    change('status', { cluster: 'c-2', keys: ['object/p/web//Pod/n/x'] }),
    'all',
  ],
  [
    'objects',
    'of a service whose name begins so',
    of({ project: 'p', service: 'web' }),
    change('status', { cluster: 'c-2', keys: ['object/p/web2//Pod/n/x'] }),
    null,
  ],
  ['objects', 'a drift', of({ project: 'p' }), change('status', { cluster: 'c-2', keys: ['drift/p/web//Pod/n/x'] }), 'all'],
  ['objects', 'in another cluster', of({ cluster: ship }), change('status', { cluster: 'c-2' }), null],
  ['confirmations', 'any', of({}), change('confirmation', { project: 'p', name: 'web' }), 'all'],
])('CL12 %s: %s', (kind, _, shown, about, expected) => expect(WATCHING[kind].about(about, shown)).toEqual(expected))
