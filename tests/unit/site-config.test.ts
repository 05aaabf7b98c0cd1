// SC1 to SC4: values of a ConfigMap at the site: what a Service may name, how the agent follows it, and what it
// becomes.
import { afterEach, describe, expect, test } from 'bun:test'
import type { WatchEvent, WatchScope } from '../../agent/cluster/cluster.ts'
import { GONE_AFTER_MS } from '../../agent/cluster/facts-book.ts'
import { SiteBook } from '../../agent/cluster/site-book.ts'
import { sitePart } from '../../agent/messages/site-messages.ts'
import type { SitePolicy } from '../../agent/reconcile/snapshot/permits.ts'
import { SiteConfigKeeper } from '../../agent/site-config.ts'
import type { K8sObject } from '../../shared/kube/object.ts'
import {
  readSite,
  SITE_CHARS_MAX,
  SITE_MAPS_MAX,
  SITE_VALUE_CHARS_MAX,
  type SiteMap,
  type SiteStatus,
  siteConfigSchema,
  siteStatusSchema,
} from '../../shared/model/site-config.ts'
import { systemClock } from '../../shared/runtime/clock.ts'
import { silentLogger } from '../../shared/runtime/logger.ts'
import { eventually } from '../support/kube-cluster.ts'

const map = (values: Record<string, string>, absent: string[] = [], problem: string | null = null): SiteMap => ({
  values,
  absent,
  refused: {},
  problem,
})
const status = (one: SiteMap): SiteStatus => ({ maps: { 'infra/site': one } })
const wanted = (keys: unknown[]) => siteConfigSchema.parse({ namespace: 'infra', name: 'site', keys })

describe('SC3 variables of a site', () => {
  test.each([
    ['text', 'text', ' a ', ' a '],
    ['number', 'number', '3\n', 3],
    ['boolean', 'boolean', 'true', true],
    ['json', 'json', '[1, {"a": 2}]', [1, { a: 2 }]],
  ])('a key of type %s', (_, type, text, value) => {
    expect(readSite(wanted([{ key: 'k.x', name: 'v', type }]), status(map({ 'k.x': text })))).toEqual({
      kind: 'read',
      values: { v: value },
    })
  })
  test.each([
    ['of an agent that has reported nothing', undefined, 'has not reported'],
    ['whose report has not this key', status(map({ other: 'x' })), 'the key k'],
    ['that is no number', status(map({ k: 'three' })), 'expected a number'],
    ['that cannot be read', status(map({}, [], 'forbidden')), 'forbidden'],
    ['that is too long', { maps: { 'infra/site': { ...map({}), refused: { k: 'too long' } } } }, 'too long'],
  ])('a key %s lets nothing be rendered', (_, reported, why) => {
    const read = readSite(wanted([{ key: 'k', type: 'number' }]), reported)
    expect(read).toMatchObject({ kind: 'lacking', why: expect.stringContaining(why) })
  })
  test('a key that the site lacks leaves the other levels as they are', () => {
    expect(readSite(wanted(['a', 'b']), status(map({ a: 'x' }, ['b'])))).toEqual({ kind: 'read', values: { a: 'x' } })
  })
  test.each([
    ['a key that is no name of a variable', ['a.b'], 'keys.0'],
    ['two keys for one variable', ['a', { key: 'b', name: 'a' }], 'keys.1'],
    ['no key', [], 'keys'],
    ['an unknown type', [{ key: 'a', type: 'int' }], 'keys.0'],
  ])('%s is refused', (_, keys, path) => {
    const parsed = siteConfigSchema.safeParse({ namespace: 'infra', name: 'site', keys })
    expect(parsed.error?.issues.map((issue) => issue.path.join('.'))).toContain(path)
  })
})

describe('SC2 what an agent reports', () => {
  const T = 1_000_000
  const data = (of: Record<string, string>) => ({ kind: 'data', data: of }) as const
  const keys = ['a', 'b']
  test('has the named keys only, and those that are not there', () => {
    const book = new SiteBook(null)
    expect(book.look('infra/site', keys, data({ a: '1', secret: 'x' }), T)).toBeNull()
    expect(book.status()).toEqual(status(map({ a: '1' }, ['b'])))
  })
  test.each([
    ['a ConfigMap', { kind: 'absent' } as const],
    ['a key', data({ b: '2' })],
  ])('keeps a value for ten minutes after %s is gone', (_, gone) => {
    const book = new SiteBook(status(map({ a: '1', b: '2' })))
    expect(book.look('infra/site', keys, gone, T)).toBe(T + GONE_AFTER_MS)
    expect(book.status().maps['infra/site']?.values).toEqual({ a: '1', b: '2' })
    expect(book.look('infra/site', keys, gone, T + GONE_AFTER_MS - 1)).toBe(T + GONE_AFTER_MS)
    book.look('infra/site', keys, gone, T + GONE_AFTER_MS)
    expect(book.status().maps['infra/site']?.absent).toContain('a')
  })
  test('counts anew when the key came back meanwhile', () => {
    const book = new SiteBook(status(map({ a: '1', b: '2' })))
    book.look('infra/site', keys, { kind: 'absent' }, T)
    book.look('infra/site', keys, data({ a: '1', b: '3' }), T + 1)
    expect(book.look('infra/site', keys, { kind: 'absent' }, T + GONE_AFTER_MS)).toBe(T + 2 * GONE_AFTER_MS)
    expect(book.status().maps['infra/site']?.values).toEqual({ a: '1', b: '3' })
  })
  test('of a ConfigMap that cannot be read is what was known, with the reason', () => {
    const book = new SiteBook(status(map({ a: '1' }, ['b'])))
    book.look('infra/site', keys, { kind: 'unreadable', why: 'forbidden' }, T)
    expect(book.status()).toEqual(status(map({ a: '1' }, ['b'], 'forbidden')))
  })
  test('is bounded: a value, and all values together', () => {
    const book = new SiteBook(null)
    book.look('infra/site', keys, data({ a: 'x'.repeat(SITE_VALUE_CHARS_MAX), b: 'x'.repeat(SITE_VALUE_CHARS_MAX + 1) }), T)
    expect(Object.keys(book.status().maps['infra/site']?.values ?? {})).toEqual(['a'])
    expect(book.status().maps['infra/site']?.refused['b']).toContain(String(SITE_VALUE_CHARS_MAX))
    for (let no = 0; no < 20; no++) book.look(`infra/z${no}`, ['a'], data({ a: 'x'.repeat(SITE_VALUE_CHARS_MAX) }), T)
    const all = book.status()
    expect(JSON.stringify(all).length).toBeLessThan(SITE_CHARS_MAX + 10_000)
    expect(Object.values(all.maps).filter(({ problem }) => problem?.includes(String(SITE_CHARS_MAX)))).not.toHaveLength(0)
    expect(siteStatusSchema.safeParse(all).success).toBe(true)
  })
})

describe('SC1 SC4 the agent follows the rows', () => {
  let stop = new AbortController()
  afterEach(() => stop.abort())
  function start(policy: SitePolicy | null = null) {
    stop = new AbortController()
    const rows = new Map<string, string[]>()
    const watched: WatchScope[] = []
    const push = new Map<string, (event: WatchEvent) => void>()
    let reported: SiteStatus | null = null
    const keeper = new SiteConfigKeeper({
      replica: { siteConfigs: () => [...rows].sort().map(([id, keys]) => [`siteconfig/${id}`, JSON.stringify({ keys })] as const) },
      cluster: {
        async *watch(_, scope) {
          watched.push(scope)
          const events: WatchEvent[] = []
          let wake = () => {}
          push.set(`${scope.namespace}/${scope.fieldSelector?.split('=')[1]}`, (event) => {
            events.push(event)
            wake()
          })
          while (!scope.signal.aborted) {
            const event = events.shift()
            if (event !== undefined) yield event
            else
              await new Promise<void>((resolve) => {
                wake = resolve
                scope.signal.addEventListener('abort', () => resolve(), { once: true })
              })
          }
        },
      },
      state: {
        lastReported: () => null,
        report: ([row]) => {
          reported = (row?.doc ?? null) as SiteStatus | null
        },
      },
      policy: () => policy,
      clock: systemClock,
      log: silentLogger,
    })
    void keeper.run(stop.signal)
    const want = (id: string, keys: string[] | null) => {
      if (keys === null) rows.delete(id)
      else rows.set(id, keys)
      keeper.changed()
    }
    const say = async (id: string, ...events: WatchEvent[]) => {
      const send = await eventually(`a watch of ${id}`, async () => push.get(id))
      for (const event of events) send(event)
    }
    return { want, say, watched, reported: () => reported }
  }
  const object = (data: Record<string, string>) =>
    ({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'site', namespace: 'infra' }, data }) as unknown as K8sObject

  test('it watches that one ConfigMap, reports changes, and forgets what nobody wants any more', async () => {
    const site = start()
    site.want('infra/site', ['a'])
    await site.say('infra/site', { kind: 'reset' }, { kind: 'present', object: object({ a: '1', other: 'x' }) }, { kind: 'synced' })
    await eventually('the value', async () => site.reported()?.maps['infra/site']?.values['a'] === '1')
    expect(site.watched[0]).toMatchObject({ namespace: 'infra', fieldSelector: 'metadata.name=site' })
    expect(JSON.stringify(site.reported())).not.toContain('other')
    await site.say('infra/site', { kind: 'changed', object: object({ a: '2' }) })
    await eventually('the next value', async () => site.reported()?.maps['infra/site']?.values['a'] === '2')
    site.want('infra/site', null)
    await eventually('nothing', async () => site.reported() === null)
    expect(site.watched[0]?.signal.aborted).toBe(true)
  })
  test('a ConfigMap that is not there is reported as such; one that may not be read says why', async () => {
    const site = start()
    site.want('infra/site', ['a'])
    await site.say('infra/site', { kind: 'reset' }, { kind: 'synced' })
    await eventually('absent', async () => site.reported()?.maps['infra/site']?.absent[0] === 'a')
    site.want('infra/other', ['a'])
    await site.say('infra/other', {
      kind: 'failed',
      failure: { kind: 'forbidden', status: 403, reason: 'Forbidden', message: 'may not watch' },
    })
    await eventually('the reason', async () => site.reported()?.maps['infra/other']?.problem === 'may not watch')
  })
  test.each([
    ['a namespace that the site does not allow', { namespaces: ['web-*'] }, sitePart('namespace_denied', { namespace: 'infra' })],
    ['any ConfigMap when the site denies it', { deny: ['site-config'] }, sitePart('site_config_denied')],
  ] as Array<[string, SitePolicy, string]>)('it does not look at %s', async (_, policy, why) => {
    const site = start(policy)
    site.want('infra/site', ['a'])
    await eventually('the refusal', async () => site.reported()?.maps['infra/site']?.problem?.includes(why))
    expect(site.watched).toEqual([])
  })
  test(`it watches at most ${SITE_MAPS_MAX} of them`, async () => {
    const site = start()
    for (let no = 0; no <= SITE_MAPS_MAX; no++) site.want(`infra/m${String(no).padStart(2, '0')}`, ['a'])
    await eventually('one too many', async () => site.reported()?.maps[`infra/m${SITE_MAPS_MAX}`]?.problem?.includes(String(SITE_MAPS_MAX)))
    expect(site.watched).toHaveLength(SITE_MAPS_MAX)
  })
})
