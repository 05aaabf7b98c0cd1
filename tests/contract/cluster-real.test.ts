// The Cluster contract on a real API server, and what only a real one can do: time out, restart, forget, freeze, refuse
// a certificate.
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { ApiResource, Cluster } from '../../agent/cluster/cluster.ts'
import type { KubeCredentials } from '../../agent/cluster/kube-credentials.ts'
import { loadKubeCredentials } from '../../agent/cluster/kubeconfig.ts'
import { createRestCluster } from '../../agent/cluster/rest-cluster.ts'
import { type K8sObject, refOf } from '../../shared/kube/object.ts'
import { type Clock, systemClock } from '../../shared/runtime/clock.ts'
import { configMap } from '../support/contract-kit.ts'
import { CLUSTER_START_TIMEOUT_MS, type KubeCluster } from '../support/kube-cluster.ts'
import { REST_DEPS, realHarness, resourceNamed, startRealCluster, USER_AGENT } from '../support/real-cluster.ts'
import { comparable, readCorpus, recordRefusals } from '../support/refusal-corpus.ts'
import { until, WatchProbe } from '../support/watch-probe.ts'
import { clusterContract } from './cluster.contract.ts'

/** A valid certificate that has nothing to do with the server's. */
const OTHER_CA = `-----BEGIN CERTIFICATE-----
MIIBeDCCAR2gAwIBAgIUO3+FMzIv3Gia3M6oF8Ga9bAAX50wCgYIKoZIzj0EAwIw
EDEOMAwGA1UEAwwFb3RoZXIwIBcNMjYxMTIxMTEwMjA2WhgPMjEyNjEwMjgxMTAy
MDZaMBAxDjAMBgNVBAMMBW90aGVyMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE
lLh0sox8uA4a5ngATMiphsCJRu4alZzYcyusF8/r1QB3Q3cshq21Js0THvbUwWMz
6zrYFq1c8RysN5w78sD1iaNTMFEwHQYDVR0OBBYEFBCrEkfrGMyhA0WbQXFW+4IV
uYlTMB8GA1UdIwQYMBaAFBCrEkfrGMyhA0WbQXFW+4IVuYlTMA8GA1UdEwEB/wQF
MAMBAf8wCgYIKoZIzj0EAwIDSQAwRgIhAIVTaAE8Mr4/ZYX4vNQqV+W5ocG+dWmp
noN3dRyKSoytAiEAoQVRHABzDkLrCTH1SyFawEZ7orrHcsSAMiEamCIudDM=
-----END CERTIFICATE-----
`

clusterContract('real API server', () => realHarness({ name: 'contract' }), CLUSTER_START_TIMEOUT_MS)

describe('a real API server', () => {
  let server: KubeCluster
  let credentials: KubeCredentials
  let cluster: Cluster & { close(): void }
  let kind: { configMap: ApiResource; secret: ApiResource }
  let resources: readonly ApiResource[]

  beforeAll(async () => {
    // Watches last 2 to 4 s here, so that renewals happen within a test.
    const started = await startRealCluster({ name: 'renewals', extraApiServerFlags: ['--min-request-timeout=2'] })
    ;({ server, credentials, cluster, resources } = started)
    kind = { configMap: resourceNamed(started.resources, 'ConfigMap'), secret: resourceNamed(started.resources, 'Secret') }
  }, CLUSTER_START_TIMEOUT_MS)

  afterAll(async () => {
    cluster.close()
    await server.stop()
  }, CLUSTER_START_TIMEOUT_MS)

  const apply = async (name: string, data: Record<string, string> = {}, on: Cluster = cluster): Promise<K8sObject> => {
    const result = await on.apply(kind.configMap, configMap('default', name, data), { force: true })
    if (result.kind === 'failed') throw new Error(result.failure.message)
    return result.object
  }
  const clientWith = (other: Partial<KubeCredentials>, clock: Clock = systemClock) =>
    createRestCluster({ ...credentials, ...other }, { ...REST_DEPS, clock })

  /** Between client and server: answers itself, or passes on with another query. */
  const proxy = (change: (url: URL) => string | Response) => {
    const listener = Bun.serve({
      port: 0,
      hostname: '127.0.0.1',
      idleTimeout: 0,
      async fetch(request) {
        const url = new URL(request.url)
        const changed = change(url)
        if (changed instanceof Response) return changed
        const { authorization, tls } = await credentials.read()
        const headers = { authorization: authorization ?? '' }
        return fetch(server.server + url.pathname + changed, { headers, tls: { ca: tls.ca ?? '' }, timeout: false, signal: request.signal })
      },
    })
    const read = async () => ({ tls: { insecure: false }, authorization: null })
    const client = clientWith({ server: `http://127.0.0.1:${listener.port}`, read })
    const stop = () => {
      client.close()
      return listener.stop(true)
    }
    return { client, stop }
  }

  test('KA31 it refuses in the recorded words, of which no value leaves', async () => {
    const said = await recordRefusals({ server, credentials, resources })
    expect(said.map(comparable)).toEqual(readCorpus('v1.36.jsonl').map(comparable))
  }, 60_000)

  test('KA22 a watch that the server ends goes on without a list, and no event is lost or doubled', async () => {
    const mark = server.auditMark()
    const watch = new WatchProbe(cluster, kind.configMap)
    await watch.seen('synced')
    const requests = () =>
      server.auditLines({ userAgent: USER_AGENT, since: mark }).filter(({ verb }) => verb === 'list' || verb === 'watch')
    const renewals = () => requests().filter(({ verb, stage }) => verb === 'watch' && stage === 'ResponseComplete').length
    const before = renewals()
    const expected: string[] = []
    for (let index = 0; renewals() < before + 3; index += 1) {
      await apply(`renewed-${index}`)
      expected.push(`changed:renewed-${index}`)
      await Bun.sleep(50)
    }
    await watch.seen(expected.at(-1) ?? '')
    expect(watch.story()).toBe(['reset', 'synced', ...expected].join(' '))
    expect(requests().filter(({ verb }) => verb === 'list')).toEqual([])
    expect(
      requests().filter(({ requestURI, stage }) => stage === 'ResponseStarted' && requestURI.includes('sendInitialEvents')),
    ).toHaveLength(1)
    await watch.stop()
  }, 60_000)

  test('KA22 an idle watch is renewed without any list or new start', async () => {
    const watch = new WatchProbe(cluster, kind.secret)
    await watch.seen('synced')
    const mark = server.auditMark()
    await until('two renewals', () => server.auditLines({ userAgent: USER_AGENT, verbs: ['watch'], since: mark }).length >= 4, 30_000)
    expect(server.auditLines({ userAgent: USER_AGENT, verbs: ['list'], since: mark })).toEqual([])
    expect(watch.story()).toBe('reset synced')
    await watch.stop()
  }, 60_000)

  test('KA25 a server that restarts: failed meanwhile, and nothing is missed afterwards', async () => {
    const kept = await apply('kept')
    const gone = await apply('gone')
    const watch = new WatchProbe(cluster, kind.configMap)
    await watch.seen('synced')
    const from = watch.events.length
    await server.stopApiServer()
    expect(await cluster.get(kind.configMap, refOf(kept))).toMatchObject({ kind: 'failed', failure: { kind: 'unreachable' } })
    await expect(cluster.discover()).rejects.toMatchObject({ code: 'kube_unreachable' })
    await watch.seen('failed:unreachable', from)
    await server.startApiServer()
    expect(await cluster.delete(kind.configMap, refOf(gone), gone.metadata.uid ?? '')).toEqual({ kind: 'gone' })
    await watch.seen('synced', from)
    await apply('after-restart')
    await until('the new object', () => /(changed|present):after-restart/.test(watch.story(from)))
    // Either the position was still known and the removal comes as an event, or everything is told again without it.
    const story = watch.story(from)
    expect(story.includes('removed:gone') || (story.includes('reset') && !story.includes('present:gone'))).toBe(true)
    await watch.stop()
  }, 90_000)

  test('KA26 a link that freezes: noticed by silence, unknown meanwhile, nothing lost afterwards', async () => {
    // Fifty times faster, so that two and a half minutes of silence are three seconds.
    const hurried: Clock = { ...systemClock, sleep: (ms, signal) => systemClock.sleep(ms / 50, signal) }
    const frozen = clientWith({}, hurried)
    const watch = new WatchProbe(frozen, kind.configMap)
    await watch.seen('synced')
    await apply('before-the-freeze')
    await watch.seen('changed:before-the-freeze')
    server.pause()
    await watch.seen('failed:unreachable')
    const result = await frozen.get(kind.configMap, { group: '', kind: 'ConfigMap', namespace: 'default', name: 'a' })
    expect(result).toMatchObject({
      kind: 'failed',
      failure: { kind: 'unreachable', message: expect.stringContaining('no answer within 65 s') },
    })
    const from = watch.events.length
    server.resume()
    await watch.seen('synced', from)
    await apply('after-the-freeze')
    await watch.seen('changed:after-the-freeze', from)
    await watch.stop()
    frozen.close()
  }, 60_000)

  test('KA9 a pod’s token and authority are read again: rotated under a running agent', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'skerry-contract-'))
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
    const { host } = new URL(server.server)
    const [address, port] = host.split(':')
    const write = (token: string, ca: string) => {
      writeFileSync(join(folder, 'token'), token)
      writeFileSync(join(folder, 'ca.crt'), ca)
    }
    write(server.token, OTHER_CA)
    const env = { KUBERNETES_SERVICE_HOST: address, KUBERNETES_SERVICE_PORT: port }
    const pod = createRestCluster(await loadKubeCredentials({ env, serviceAccountFolder: folder }, REST_DEPS), REST_DEPS)
    await expect(pod.info()).rejects.toMatchObject({ code: 'kube_unreachable' })
    write('expired', server.caPem)
    await expect(pod.info()).rejects.toMatchObject({ code: 'kube_refused' })
    const watch = new WatchProbe(pod, kind.configMap)
    await watch.seen('failed:unauthorized')
    write(server.token, server.caPem)
    expect((await pod.info()).version).toBe('v1.36.3')
    await watch.seen('synced')
    // A bad token is no harm while the old one still works, nor is a file that is missing for a moment.
    rmSync(join(folder, 'token'))
    await apply('during-rotation', {}, pod)
    await watch.seen('changed:during-rotation')
    await watch.stop()
    pod.close()
  }, 60_000)

  test('KA8 after a 401 other credentials are tried at once, the same ones are not', async () => {
    const tokens = ['expired', 'expired', server.token]
    let reads = 0
    const read = async () => {
      const access = await credentials.read()
      const token = tokens[Math.min(reads, tokens.length - 1)]
      reads += 1
      return { ...access, authorization: `Bearer ${token}` }
    }
    const client = clientWith({ read })
    const get = () => client.get(kind.configMap, { group: '', kind: 'ConfigMap', namespace: 'default', name: 'none' })
    expect(await get()).toMatchObject({ kind: 'failed', failure: { kind: 'unauthorized', status: 401 } })
    expect(reads).toBe(2)
    expect(await get()).toEqual({ kind: 'absent' })
    client.close()
  })

  test('KA28 a list by pages where the server cannot stream one', async () => {
    await Promise.all(Array.from({ length: 3 }, (_, index) => apply(`page-${index}`)))
    const between = proxy(({ search }) => {
      if (!search.includes('sendInitialEvents')) return search.replace('limit=500', 'limit=2')
      const message = 'sendInitialEvents: Forbidden: sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled'
      return Response.json({ kind: 'Status', reason: 'Invalid', code: 422, message }, { status: 422 })
    })
    const { client } = between
    const watch = new WatchProbe(client, kind.configMap)
    await watch.seen('synced')
    const present = watch.events.flatMap((event) => (event.kind === 'present' ? [event.object] : []))
    expect(present.map(({ metadata }) => metadata.name)).toContain('page-2')
    expect(present.every(({ apiVersion, kind: name }) => apiVersion === 'v1' && name === 'ConfigMap')).toBe(true)
    expect(watch.story().startsWith('reset present:')).toBe(true)
    await apply('after-the-list')
    await watch.seen('changed:after-the-list')
    await watch.stop()
    await between.stop()
  }, 30_000)

  test('KA24 a position that the server no longer remembers: once more everything, without a failure in between', async () => {
    const name = 'survivor'
    await apply(name)
    // Every resume asks for the first revision of all, which the real server answers with 410 in a stream of status
    // 200.
    const between = proxy(({ search }) => search.replace(/resourceVersion=\d+/, 'resourceVersion=1'))
    const watch = new WatchProbe(between.client, kind.configMap)
    await watch.seen('synced')
    const from = watch.events.length
    await watch.seen('synced', from)
    const story = watch.story(from)
    expect(story).toMatch(/^reset (present:\S+ )+synced/)
    expect(story).toContain(`present:${name}`)
    expect(watch.story()).not.toContain('failed')
    await watch.stop()
    await between.stop()
  }, 30_000)

  test('KA12 a certificate of another authority is refused with a message that says so', async () => {
    const read = async () => ({ ...(await credentials.read()), tls: { ca: OTHER_CA, insecure: false } })
    const stranger = clientWith({ read })
    await expect(stranger.info()).rejects.toThrow(/certificate of https:\/\/127\.0\.0\.1:\d+ was refused/)
    const result = await stranger.get(kind.configMap, { group: '', kind: 'ConfigMap', namespace: 'default', name: 'a' })
    expect(result).toMatchObject({ kind: 'failed', failure: { kind: 'unreachable', reason: 'UntrustedCertificate' } })
    stranger.close()
  })
})
