// Lives of one site in which much is pruned: what may happen, how often, and how a history ends. `pruneHistory` plays
// one of them.
import { refOf } from '../../shared/kube/object.ts'
import { serviceKey } from '../../shared/runtime/ids.ts'
import type { Random } from '../../shared/runtime/random.ts'
import { lagWatches } from '../support/fake-cluster.ts'
import { Refusal } from '../support/fake-kube-kinds.ts'
import { PruneHistory, type PruneReport, pick } from './prune-history.ts'
import { type Commit, isContainer, keyOfName, NAMES, objectOf, refOfName, SERVICES, strangerIn } from './prune-world.ts'

interface Play extends PruneHistory {
  /** The server writes hand-overs; else it publishes who gains before who loses. */
  handovers: boolean
}

const KEYS = SERVICES.map(serviceKey)
const KEEP: ReadonlyArray<Record<string, string>> = [
  { 'skerry.dev/prune': 'disabled' },
  { 'helm.sh/resource-policy': 'keep' },
  { 'argocd.argoproj.io/sync-options': 'Prune=false' },
  { 'argocd.argoproj.io/tracking-id': 'x' },
]

type Draft = Map<string, Map<string, string> | 'remove'>
const draftOf = (commit: Commit | undefined): Draft =>
  new Map([...(commit ?? [])].map(([key, wanted]) => [key, wanted === 'remove' ? wanted : new Map(wanted)]))
const someValue = (random: Random): string => String(Math.floor(random() * 3))

/** What people do to the manifests. */
const EDITS: ReadonlyArray<readonly [share: number, edit: (draft: Draft, random: Random) => void]> = [
  [4, (draft, random) => void sets(draft, random)?.delete(pick(random, NAMES))],
  [3, (draft, random) => void sets(draft, random)?.set(pick(random, NAMES), someValue(random))],
  [4, move],
  [2, swap],
  [1, (draft, random) => sets(draft, random)?.clear()],
  [
    2,
    (draft, random) => {
      const wanted = sets(draft, random)
      for (const name of NAMES) if (random() < 0.5) wanted?.delete(name)
    },
  ],
  [1, (draft, random) => void draft.set(pick(random, KEYS), 'remove')],
  [
    1,
    (draft, random) =>
      void draft.set(pick(random, KEYS), new Map(NAMES.filter(() => random() < 0.4).map((name) => [name, someValue(random)]))),
  ],
]

function sets(draft: Draft, random: Random): Map<string, string> | undefined {
  const wanted = draft.get(pick(random, KEYS))
  return wanted === 'remove' ? undefined : wanted
}

function move(draft: Draft, random: Random): void {
  const [from, to] = [sets(draft, random), sets(draft, random)]
  if (from === undefined || to === undefined || from === to) return
  for (const [name, value] of [...from]) {
    if (random() < 0.6) continue
    from.delete(name)
    to.set(name, value)
  }
}

function swap(draft: Draft, random: Random): void {
  const [one, other] = [sets(draft, random), sets(draft, random)]
  if (one === undefined || other === undefined || one === other) return
  const [x] = one.keys()
  const [y] = other.keys()
  if (x === undefined || y === undefined) return
  one.delete(x)
  other.delete(y)
  one.set(y, '0')
  other.set(x, '0')
}

function weighted<T>(random: Random, items: ReadonlyArray<readonly [share: number, item: T]>): T {
  let at = random() * items.reduce((sum, [share]) => sum + share, 0)
  for (const [share, item] of items) {
    at -= share
    if (at < 0) return item
  }
  return (items[0] as readonly [number, T])[1]
}

/** A commit, and the passes of the server over its services. */
function revise(play: Play): void {
  const { random, world } = play
  const draft = draftOf(world.commits.at(-1))
  for (const key of KEYS)
    if (draft.get(key) === 'remove' && random() < 0.3 && play.status(key)?.removed === true) draft.set(key, new Map([['m0', '0']]))
  for (let edits = 1 + Math.floor(random() * 3); edits > 0; edits -= 1) weighted(random, EDITS)(draft, random)
  // What does not render stays what it was, for everybody.
  const before = draftOf(world.commits.at(-1))
  for (const [key, wanted] of before) if (random() < 0.08) draft.set(key, wanted)
  play.commit(draft)
  publish(play, draft)
}

function publish(play: Play, draft: Draft): void {
  const { random, world } = play
  const commit = world.commits.length - 1
  const named = (key: string) => {
    const wanted = draft.get(key)
    return wanted === undefined || wanted === 'remove' ? [] : [...wanted.keys()]
  }
  const before = (key: string, name: string) => world.published.get(key)?.revision?.objects.has(`object/${key}/${keyOfName(name)}`) === true
  const rank = (key: string) => {
    const loses = NAMES.some((name) => before(key, name) && !named(key).includes(name))
    return loses ? (named(key).some((name) => !before(key, name)) ? 1 : 2) : 0
  }
  const order = [...SERVICES].sort(() => random() - 0.5)
  if (!play.handovers) order.sort((a, b) => rank(serviceKey(a)) - rank(serviceKey(b)))
  // Who gains and loses at once needs the hand-over; the order alone is enough for the others.
  const handovers = play.handovers || KEYS.some((key) => rank(key) === 1)
  for (const id of order) {
    if (!draft.has(serviceKey(id))) continue
    const settings = {
      pruneConfirmed: random() < 0.3,
      confirmed: random() < 0.3 ? null : NAMES.filter(() => random() < 0.5),
      pruneWhen: random() < 0.3 ? 'applied' : 'healthy',
      handovers,
    } as const
    world.publish(id, commit, settings)
    if ((world.published.get(serviceKey(id))?.revision?.row.handover ?? []).length > 0) play.report.handovers += 1
  }
}

const liveNames = (play: Play): string[] => NAMES.filter((name) => play.live(name) !== null)

const ACTS: ReadonlyArray<readonly [share: number, act: readonly [name: string, run: (play: Play) => void | Promise<void>]]> = [
  [10, ['commit', revise]],
  [10, ['pull', (play) => play.deliver(1 + Math.floor(play.random() * 3))]],
  [4, ['contact', (play) => play.contact()]],
  [3, ['wait', (play) => play.clock.advance(play.random() * 120_000)]],
  [2, ['lose rows', (play) => play.handovers && play.damage(pick(play.random, KEYS), play.random() < 0.4)]],
  [2, ['repair', (play) => play.repair()]],
  [2, ['confirm at the site', (play) => play.confirmAtSite(pick(play.random, KEYS))]],
  [2, ['become healthy', (play) => play.makeHealthy()]],
  [2, ['crash', (play) => play.crashSoon(1 + Math.floor(play.random() * 25))]],
  [1, ['restart', restart]],
  [1, ['take a snapshot', snapshot]],
  [1, ['an older disk', olderDisk]],
  [0.4, ['lose the disk', loseDisk]],
  [2, ['a keep mark', keep]],
  [1, ['a finalizer', finalizer]],
  [
    1,
    [
      'deleted by hand',
      (play) => liveNames(play).length > 0 && play.cluster.deleteAs('kubectl', refOfName(pick(play.random, liveNames(play)))),
    ],
  ],
  [1, ['made anew by somebody', makeAnew]],
  [3, ['somebody’s objects in a Namespace or of a CRD', strangers]],
  [1, ['cut watches', (play) => play.cluster.cutWatches({ forget: play.random() < 0.5 })]],
  [1, ['lag of watches', ({ random, cluster }) => lagWatches(random, cluster)]],
]

async function restart(play: Play): Promise<void> {
  await play.stop()
  if (play.random() < 0.5) play.restartedOffline()
  play.start()
}

async function snapshot(play: Play): Promise<void> {
  await play.stop()
  play.takeSnapshot()
  play.start()
}

async function olderDisk(play: Play): Promise<void> {
  await play.stop()
  play.comeBackOlder(play.random() < 0.5)
  play.start()
}

async function loseDisk(play: Play): Promise<void> {
  await play.stop()
  play.loseDisk()
  play.start()
}

function keep(play: Play): void {
  const names = liveNames(play)
  if (names.length === 0) return
  const mark = pick(play.random, KEEP)
  play.cluster.editAs('kubectl-annotate', refOfName(pick(play.random, names)), ({ metadata }) =>
    Object.assign(metadata, { annotations: { ...metadata.annotations, ...mark } }),
  )
}

function finalizer(play: Play): void {
  const names = liveNames(play)
  if (names.length === 0) return
  play.cluster.editAs('controller', refOfName(pick(play.random, names)), ({ metadata }) => {
    if (metadata.finalizers === undefined && metadata.deletionTimestamp === undefined)
      Object.assign(metadata, { finalizers: ['example.com/hold'] })
    else Reflect.deleteProperty(metadata, 'finalizers')
  })
}

function makeAnew(play: Play): void {
  const absent = NAMES.filter((name) => play.live(name) === null)
  if (absent.length > 0) play.cluster.applyAs('kubectl', objectOf(pick(play.random, absent), 'theirs'))
}

/** They come and go by other hands. */
function strangers(play: Play): void {
  const containers = liveNames(play).filter((name) => isContainer(name) && play.live(name)?.metadata.deletionTimestamp === undefined)
  if (containers.length === 0) return
  const object = strangerIn(pick(play.random, containers), Math.floor(play.random() * 3))
  const ref = refOf(object)
  try {
    if (play.cluster.object(ref) === null) play.cluster.applyAs('kubectl', object)
    else play.cluster.deleteAs('kubectl', ref)
  } catch (error) {
    // A CRD is not served in the moment in which it is made.
    if (!(error instanceof Refusal)) throw error
  }
}

const ACTS_OF_A_HISTORY = 40

export async function pruneHistory(seed: number, dir: string): Promise<PruneReport> {
  const history = new PruneHistory(seed, dir)
  const play: Play = Object.assign(history, { handovers: history.random() < 0.8 })
  const { report, random, clock } = play
  const first: Draft = new Map(KEYS.map((key, i) => [key, new Map(NAMES.filter((_, n) => n % 3 === i).map((name) => [name, '0']))]))
  play.commit(first)
  publish(play, first)
  play.deliver(SERVICES.length)
  play.start()
  await clock.advance(100)
  const acts = new Set<string>()
  for (let i = 0; i < ACTS_OF_A_HISTORY && report.broken.length === 0; i += 1) {
    const [name, act] = weighted(random, ACTS)
    report.trace.note(name)
    acts.add(name)
    await act(play)
    await clock.advance(random() < 0.7 ? 50 : random() * 5_000)
    if (play.state === null) play.start()
  }
  await end(play, acts)
  return report
}

/** Everything is well again: then nothing of ours is left that nobody wants, and all that is wanted is there. */
async function end(play: Play, acts: ReadonlySet<string>): Promise<void> {
  const { world, clock, report } = play
  play.crashSoon(0)
  for (const name of liveNames(play))
    play.cluster.editAs('argocd', refOfName(name), ({ metadata }) =>
      Reflect.deleteProperty(metadata.annotations ?? {}, 'argocd.argoproj.io/tracking-id'),
    )
  const last = draftOf(world.commits.at(-1))
  // Nobody shares and nobody empties: who has an object first keeps it for as long as it wants it.
  const seen = new Set<string>()
  for (const wanted of last.values())
    if (wanted !== 'remove')
      for (const name of [...wanted.keys()])
        if (seen.has(name)) wanted.delete(name)
        else seen.add(name)
  play.commit(last)
  publish(play, last)
  for (let round = 0; round < 4; round += 1) {
    for (const name of liveNames(play))
      play.cluster.editAs('controller', refOfName(name), ({ metadata }) => Reflect.deleteProperty(metadata, 'finalizers'))
    play.makeHealthy()
    play.contact()
    await clock.advance(700_000)
    for (const key of KEYS) play.confirmAtSite(key)
    if (play.state === null) play.start()
  }
  if (report.broken.length > 0) return
  const wanted = world.namesAt(world.commits.length - 1)
  for (const name of wanted)
    if (play.live(name) === null)
      report.broken.push(
        `${name} is wanted and not there: ${KEYS.map((key) => `${key} ${play.status(key)?.reason} ${play.status(key)?.message}`).join(' | ')}`,
      )
  // What an agent forgot with its disk, it finds again only among the kinds that it still watches (IV3).
  if (acts.has('lose the disk') || acts.has('an older disk')) return play.stop()
  for (const name of liveNames(play)) {
    const mark = play.live(name)?.metadata.annotations?.['skerry.dev/tracking']
    if (!wanted.has(name) && mark !== undefined && mark.endsWith(keyOfName(name)))
      report.broken.push(
        `${name} is wanted by nobody, ours, and still there: ${KEYS.map((key) => `${key} ${play.status(key)?.reason} ${play.status(key)?.message}`).join(' | ')}`,
      )
  }
  await play.stop()
}
