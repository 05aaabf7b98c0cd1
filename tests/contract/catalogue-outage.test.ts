// Failure catalogue: the API server, its store or the way to it break in the middle of a revision. While it lasts
// nothing is deleted that is wanted and the reason is said; when it ends, the revision is carried out without anybody's
// help.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { type ApiProxy, refusal, startApiProxy } from '../support/api-proxy.ts'
import { DROPPED_NAMES, type FaultSite, OBJECTS, startFaultSite } from '../support/fault-site.ts'
import { CLUSTER_START_TIMEOUT_MS, type Etcd, type KubeCluster, startEtcd, startKubeCluster } from '../support/kube-cluster.ts'
import { startTcpProxy } from '../support/tcp-proxy.ts'
import { until } from '../support/watch-probe.ts'

let etcd: Etcd
let server: KubeCluster
beforeAll(async () => {
  etcd = await startEtcd()
  server = await startKubeCluster({ name: 'outage', controllers: false, etcd })
}, CLUSTER_START_TIMEOUT_MS)

const sites: FaultSite[] = []
const proxies: ApiProxy[] = []
/** The first revision is in force. */
async function site(namespace: string, options: Parameters<typeof startFaultSite>[2] = {}): Promise<FaultSite> {
  for (const before of sites.splice(0)) await before.stop()
  await server.kubectl(['delete', 'configmap', 'skerry-claim', '-n', 'skerry-system', '--ignore-not-found'])
  await server.kubectl(['create', 'namespace', namespace])
  const one = await startFaultSite(server, namespace, options)
  sites.push(one)
  one.kit.start()
  one.desire(1)
  await one.converged(1)
  return one
}
function proxy(): ApiProxy {
  const one = startApiProxy(server)
  proxies.push(one)
  return one
}
afterAll(async () => {
  for (const one of sites) await one.stop()
  for (const one of proxies) await one.stop()
  await server?.stop()
  await etcd?.stop()
}, CLUSTER_START_TIMEOUT_MS)

const onlyDropped = ({ deletes }: FaultSite) => expect(deletes.filter((name) => !DROPPED_NAMES.includes(name))).toEqual([])
const port = () => Number(new URL(server.server).port)
/** In the middle of the second revision. */
async function midPass(one: FaultSite): Promise<void> {
  const reached = one.afterWrites(10)
  one.desire(2)
  await reached
}

test('RC8 the API server is killed in the middle of a revision and started again', async () => {
  const one = await site('killed-server')
  await midPass(one)
  await server.stopApiServer()
  await one.says(/Unable to connect|ECONNREFUSED|no answer|refused|closed/i)
  expect(one.deletes).toEqual([])
  expect(one.kit.state.inventory(one.id)).toHaveLength(OBJECTS + DROPPED_NAMES.length)
  await server.startApiServer()
  await one.converged(2)
  onlyDropped(one)
}, 120_000)

test('RC15 the store of the API server hangs for 20 s: nothing is called applied that is not, and no request is lost', async () => {
  const one = await site('slow-store')
  const reached = one.afterWrites(10)
  const digest = one.desire(2)
  await reached
  etcd.pause()
  await Bun.sleep(20_000)
  const before = one.kit.service(one.id)
  etcd.resume()
  expect(before?.applied?.digest).not.toBe(digest)
  await one.converged(2)
  onlyDropped(one)
}, 180_000)

test('RC9 a storm of 429 with Retry-After: few requests meanwhile, said as what it is, then all is done', async () => {
  const between = proxy()
  const one = await site('throttled', { url: between.url, insecure: true })
  between.answer((method) =>
    method === 'PATCH' ? refusal(429, 'TooManyRequests', 'too many requests, please try again later', { 'retry-after': '1' }) : null,
  )
  one.desire(2)
  await one.says(/too many requests, please try again later; .*retrying/)
  const from = between.answered()
  await Bun.sleep(4_000)
  // Thirty objects asked at full speed would be thousands of requests.
  expect(between.answered() - from).toBeLessThan(60)
  expect(one.deletes).toEqual([])
  between.answer(() => null)
  await one.converged(2, 90_000)
  onlyDropped(one)
}, 150_000)

test.each([
  [500, 'InternalError', 'etcdserver: leader changed'],
  [503, 'ServiceUnavailable', 'apiserver not ready'],
] as const)(
  'RC5 RC8 a storm of %i for everything, watches and discovery too: unknown is not gone',
  async (code, reason, message) => {
    const between = proxy()
    const one = await site(`storm-${code}`, { url: between.url, insecure: true })
    await midPass(one)
    between.answer(() => refusal(code, reason, message))
    await one.says(new RegExp(`${message}; .*retrying`))
    await Bun.sleep(3_000)
    expect(one.deletes).toEqual([])
    expect(one.kit.state.inventory(one.id)).toHaveLength(OBJECTS + DROPPED_NAMES.length)
    between.answer(() => null)
    await one.converged(2, 90_000)
    onlyDropped(one)
  },
  150_000,
)

test('KA22 RC5 connections are cut all the time, while somebody changes and deletes objects', async () => {
  const line = startTcpProxy(port())
  const one = await site('cut', { url: `https://127.0.0.1:${line.port}` })
  one.desire(2)
  for (let n = 0; n < 20; n += 1) {
    line.cutAll()
    if (n === 8) await server.kubectl(['delete', 'configmap', 'm10', '-n', 'cut', '--wait=false'])
    if (n === 12) await server.kubectl(['patch', 'configmap', 'm11', '-n', 'cut', '--type=merge', '-p', '{"data":{"v":"somebody"}}'])
    await Bun.sleep(150)
  }
  await one.converged(2)
  onlyDropped(one)
  const writes = one.writes()
  await Bun.sleep(1_000)
  expect(one.writes()).toBe(writes)
  await one.stop()
  sites.splice(0)
  line.stop()
}, 150_000)

test('KA24 RC5 the positions of all watches are forgotten (410) while the agent is cut off: what happened meanwhile is found and healed', async () => {
  const line = startTcpProxy(port())
  const one = await site('expired', { url: `https://127.0.0.1:${line.port}` })
  line.setRules({ refuse: true })
  line.cutAll()
  await server.kubectl(['delete', 'configmap', 'm05', '-n', 'expired'])
  await server.kubectl(['patch', 'configmap', 'm06', '-n', 'expired', '--type=merge', '-p', '{"data":{"v":"somebody"}}'])
  await server.kubectl(['label', 'configmap', 'm07', '-n', 'expired', 'skerry.dev/service-'])
  await etcd.compact()
  await server.restartApiServer()
  const writes = one.writes()
  line.setRules({})
  await one.converged(1, 90_000)
  // Nothing else was written.
  expect(one.writes() - writes).toBe(3)
  expect(one.deletes).toEqual([])
  await one.stop()
  sites.splice(0)
  line.stop()
}, 150_000)

test('CM2 PR13 a later life of the agent without its disk takes over in the middle of a revision: the first stops, nothing is lost between them', async () => {
  const one = await site('two-agents')
  const younger = await startFaultSite(server, 'two-agents', { incarnation: 2 })
  younger.desire(2)
  const stalling = one.stallAfterWrites(10)
  one.desire(2)
  const { resume } = await stalling
  younger.kit.start()
  await until('the elder is superseded', () => one.kit.claims.at(-1)?.kind === 'superseded')
  // The second has no record of these objects, so a person confirms their names.
  const refusal = () => younger.kit.service(younger.id)?.refusal
  await until('the second asks for a confirmation', () => refusal() !== undefined)
  expect(refusal()?.names).toEqual(DROPPED_NAMES.map((name) => `ConfigMap two-agents/${name}`))
  expect(younger.deletes).toEqual([])
  // Requests that the first had begun arrive late.
  const begun = one.writes()
  resume()
  expect(younger.kit.confirm(younger.id).kind).toBe('done')
  await younger.converged(2)
  expect(one.deletes).toEqual([])
  onlyDropped(younger)
  one.desire(1)
  await Bun.sleep(500)
  expect(one.writes()).toBe(begun)
  await younger.stop()
}, 150_000)
