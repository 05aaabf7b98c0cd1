// What a site lives through while its agent is killed somewhere: a first revision, drift, a revision that changes,
// adds, drops, takes over and moves objects, a service that is removed, one that is let go. Told on the fake and on a
// real API server; whatever the place, the end is the same.
import { SERVICE_LABEL } from '../../shared/kube/marks.ts'
import { type K8sObject, type ObjectRef, refOf } from '../../shared/kube/object.ts'
import type { ServiceId } from '../../shared/runtime/ids.ts'
import type { MortalAgent } from './mortal-agent.ts'

export interface KilledWorld {
  /** ConfigMaps and Secrets of the story's namespace. */
  live(): Promise<K8sObject[]>
  edit(ref: ObjectRef, key: string, value: string): Promise<void>
  remove(ref: ObjectRef): Promise<void>
  /** As kubectl does without --server-side. */
  applyClientSide(object: K8sObject): Promise<void>
  /** A hook of the second revision, which runs once. Null means none. */
  hook: K8sObject | null
  /** Lets time pass until it is so. */
  until(what: string, check: () => Promise<boolean>): Promise<void>
}

const A: ServiceId = { project: 'web', service: 'giver' }
const B: ServiceId = { project: 'web', service: 'taker' }

/** Each chapter is over when the cluster holds exactly this: names with one value, in order. */
type Held = Record<string, string>

export async function tellStory(agent: MortalAgent, world: KilledWorld, namespace: string): Promise<void> {
  const map = (name: string, value = '1'): K8sObject =>
    ({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace }, data: { v: value } }) as K8sObject
  const secret = {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: 'login', namespace },
    stringData: { v: 'x' },
  } as unknown as K8sObject
  const ref = (name: string): ObjectRef => refOf(map(name))
  const reach = (what: string, held: Held, owned: { a: string[]; b: string[] }, alsoWhen: () => boolean = () => true) =>
    world.until(what, async () => {
      const live = await world.live()
      return (
        Bun.deepEquals(heldBy(live), held) &&
        Bun.deepEquals(agent.inventory(A), owned.a.sort()) &&
        Bun.deepEquals(agent.inventory(B), owned.b.sort()) &&
        alsoWhen()
      )
    })
  const synced =
    (...ids: ServiceId[]) =>
    () =>
      ids.every((id) => agent.service(id)?.sync === 'Synced')

  agent.start()
  agent.desire(A, [map('one'), map('two'), map('drop'), map('moves'), secret])
  agent.desire(B, [map('b-one')])
  const first = { one: '1', two: '1', drop: '1', moves: '1', login: 'x', 'b-one': '1' }
  await reach('the first revision', first, { a: ['one', 'two', 'drop', 'moves', 'login'], b: ['b-one'] }, synced(A, B))

  await world.edit(ref('one'), 'v', 'somebody')
  await world.remove(ref('two'))
  await reach('drift is healed', first, { a: ['one', 'two', 'drop', 'moves', 'login'], b: ['b-one'] }, synced(A, B))

  const taken = map('taken')
  await world.applyClientSide({ ...taken, data: { v: '1', old: 'gone' } })
  const hooks = world.hook === null ? [] : [world.hook]
  const hookNames = hooks.map(({ metadata }) => metadata.name ?? '')
  agent.desire(A, [map('one', '2'), map('two'), map('new'), taken, secret, ...hooks])
  agent.desire(B, [map('b-one'), map('moves', '2')])
  const second = { one: '2', two: '1', new: '1', taken: '1', login: 'x', 'b-one': '1', moves: '2' }
  await reach(
    'the second revision',
    second,
    { a: ['one', 'two', 'new', 'taken', 'login', ...hookNames], b: ['b-one', 'moves'] },
    synced(A, B),
  )

  agent.remove(B, 'prune')
  const third = { one: '2', two: '1', new: '1', taken: '1', login: 'x' }
  await reach('the taker is removed', third, { a: [...Object.keys(third), ...hookNames], b: [] }, () => agent.service(B)?.removed === true)
  agent.dropRow(B)

  agent.remove(A, 'orphan')
  await reach('the giver is let go', third, { a: [], b: [] }, () => agent.service(A)?.removed === true)
  const marked = (await world.live()).filter(({ metadata }) => metadata.labels?.[SERVICE_LABEL] !== undefined)
  if (marked.length > 0) agent.wrong.push(`${marked.length} objects kept the marks of a service that let them go`)
}

/** All of data, so that a key too many shows. */
function heldBy(live: readonly K8sObject[]): Held {
  const held: Held = {}
  for (const { kind, metadata, data } of live) {
    const values = Object.entries((data ?? {}) as Record<string, string>).sort(([a], [b]) => (a < b ? -1 : 1))
    const name = metadata.name ?? ''
    if (kind !== 'ConfigMap' && kind !== 'Secret') continue
    held[name] = values.map(([key, value]) => (key === 'v' ? text(kind, value) : `${key}=${value}`)).join()
  }
  return held
}
const text = (kind: string, value: string): string => (kind === 'Secret' ? Buffer.from(value, 'base64').toString() : value)
