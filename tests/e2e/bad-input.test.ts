// What goes wrong, and where a person looks first: each case changes nothing in the cluster and says what to do.
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import type { LocalAgent } from '../../scripts/local-cluster/local-fleet.ts'
import { CLUSTER_START_TIMEOUT_MS, eventually } from '../support/kube-cluster.ts'
import {
  agentWrites,
  configMapYaml,
  joinToken,
  repositoryYaml,
  requestText,
  type Scenario,
  serviceYaml,
  startScenario,
} from '../support/scenario.ts'

setDefaultTimeout(60_000)
let scenario: Scenario
const site = () => {
  const found = scenario.sites['pier']
  if (found === undefined) throw new Error('no site')
  return found
}
const describeService = (name: string) => scenario.fleet.run(['describe', 'service', name])

beforeAll(async () => {
  scenario = await startScenario({ sites: { pier: { labels: { env: 'prod' }, controllers: false }, spare: { controllers: false } } })
  await scenario.fleet.run(['apply', '-f', '-'], { stdin: serviceYaml({ name: 'base' }) })
  await scenario.push({ 'base/a.yaml': configMapYaml('a', { value: 'good' }) })
  await scenario.settled('pier', ['base'])
  await scenario.sites['spare']?.agent.kill() // its cluster is for the agents that fail to join
}, CLUSTER_START_TIMEOUT_MS)
afterAll(() => scenario?.stop())

/** A service of its own for each case, applied with a bad commit; nothing may be written to the cluster but what the
 *  case allows. */
async function badCommit(
  name: string,
  files: Record<string, string>,
  options: Parameters<typeof serviceYaml>[0] = { name },
): Promise<number> {
  const since = site().cluster.auditMark()
  await scenario.fleet.run(['apply', '-f', '-'], { stdin: serviceYaml({ ...options, name }) })
  await scenario.push(Object.fromEntries(Object.entries(files).map(([file, text]) => [`${name}/${file}`, text])))
  return since
}
const says = (name: string, ...texts: string[]) =>
  eventually(
    `describe service ${name} says ${texts.join(' and ')}`,
    async () => {
      const text = await describeService(name)
      return texts.every((part) => text.includes(part))
    },
    20_000,
  )

describe('manifests', () => {
  test('broken YAML: file and line', async () => {
    const since = await badCommit('broken', { 'x.yaml': 'apiVersion: v1\nkind: [ConfigMap\n' })
    await says('broken', 'broken/x.yaml:')
    expect(agentWrites(site().cluster, since).map(requestText)).toEqual([])
  })
  test('duplicate objects: both places', async () => {
    const since = await badCommit('twice', { 'one.yaml': configMapYaml('same', { a: '1' }), 'two.yaml': configMapYaml('same', { a: '2' }) })
    await says('twice', 'twice/one.yaml', 'twice/two.yaml', 'same')
    expect(agentWrites(site().cluster, since).map(requestText)).toEqual([])
  })
  test('missing namespace: the object, and how to give one', async () => {
    const since = site().cluster.auditMark()
    const yaml = serviceYaml({ name: 'nowhere' }).replace(/^ {2}namespace: .*\n/m, '')
    await scenario.fleet.run(['apply', '-f', '-'], { stdin: yaml })
    await scenario.push({ 'nowhere/a.yaml': configMapYaml('a', { a: '1' }) })
    await says('nowhere', 'nowhere/a.yaml', 'namespace')
    expect(agentWrites(site().cluster, since).map(requestText)).toEqual([])
  })
  test('an unknown kind is a state of that object; the rest of the service is applied', async () => {
    const since = await badCommit('strange', {
      'thing.yaml': 'apiVersion: nowhere.example/v1\nkind: Thing\nmetadata: {name: odd}\n',
      'a.yaml': configMapYaml('a', { a: '1' }),
    })
    await says('strange', 'Thing', 'nowhere.example')
    const writes = agentWrites(site().cluster, since).map(requestText)
    expect(writes.filter((text) => !text.includes('/configmaps/a') && !/namespaces(\/strange)? /.test(text))).toEqual([])
    expect(writes.some((text) => text.includes('/namespaces/strange/configmaps/a'))).toBe(true)
  })
  test('a resource with a misspelt field names line, path and the nearest right name, and changes nothing', async () => {
    const { code, stderr } = await scenario.fleet.skerry(['apply', '-f', '-'], {
      stdin: serviceYaml({ name: 'base', sync: '{maxPrunePercnt: 10}' }),
    })
    expect(code).toBe(1)
    expect(stderr).toContain('maxPrunePercnt')
    expect(stderr).toContain('maxPrunePercent')
  })
})

test('unreachable Git: the repository says so, and what is applied stays', async () => {
  const since = site().cluster.auditMark()
  await scenario.fleet.run(['apply', '-f', '-'], { stdin: repositoryYaml('gone', 'http://127.0.0.1:1/none.git', '2s') })
  await eventually('describe repository', async () => {
    const text = await scenario.fleet.run(['describe', 'repository', 'gone'])
    return text.includes('GitUnreachable') && text.includes('127.0.0.1:1')
  })
  scenario.git.setDown(true)
  await scenario.fleet.webhook('apps')
  await eventually('apps is unreachable', async () =>
    (await scenario.fleet.run(['describe', 'repository', 'apps'])).includes('GitUnreachable'),
  )
  expect((await scenario.status('pier', 'base'))?.sync).toBe('Synced')
  scenario.git.setDown(false)
  await scenario.fleet.webhook('apps')
  await eventually('apps is back', async () => !(await scenario.fleet.run(['describe', 'repository', 'apps'])).includes('GitUnreachable'))
  expect(agentWrites(site().cluster, since).map(requestText)).toEqual([])
})

describe('joining', () => {
  const failsWith = async (agent: LocalAgent, code: string, ...texts: string[]) => {
    const found = await eventually(
      `status says ${code}`,
      async () => {
        const { link } = await agent.status()
        return link?.error?.code === code ? link.error : undefined
      },
      20_000,
    )
    for (const text of texts) expect(found.message).toContain(text)
  }
  const join = (name: string, token: string) => {
    const spare = scenario.sites['spare']
    if (spare === undefined) throw new Error('no spare site')
    return scenario.fleet.addAgent({ name, cluster: spare.cluster, joinToken: token })
  }

  test('a wrong token, a used-up token, an expired token: each by its own name', async () => {
    const used = await joinToken(scenario.fleet, {}, ['--uses', '1'])
    const first = await join('first', used)
    await eventually('first joins', async () => (await first.status()).clusterId ?? undefined)
    await failsWith(await join('second', used), 'join_token_used_up')
    await failsWith(await join('third', used.replace(/^skj\.[^.]+/, 'skj.wrong-wrong-wrong-wrong-wrong')), 'join_token_unknown')
    const short = await joinToken(scenario.fleet, {}, ['--expires', '1s'])
    await Bun.sleep(1_100)
    await failsWith(await join('fourth', short), 'join_token_expired')
    const clusters = await scenario.fleet.run(['get', 'clusters', '-o', 'name'])
    expect([clusters.includes('first'), clusters.includes('second'), clusters.includes('third'), clusters.includes('fourth')]).toEqual([
      true,
      false,
      false,
      false,
    ])
    await first.kill()
  }, 90_000)

  test('a token of another server is refused by the agent before it trusts anything', async () => {
    const token = await joinToken(scenario.fleet, {})
    const agent = await join('misled', token.replace(/\.[0-9a-f]{32}$/, `.${'0'.repeat(32)}`))
    await failsWith(agent, 'server_key_mismatch')
    await agent.kill()
  })
})

test('a revoked cluster stops syncing and goes on enforcing; undoing it needs no new join', async () => {
  const cluster = (revoked: boolean) =>
    `apiVersion: skerry.dev/v1\nkind: Cluster\nmetadata: {name: pier, labels: {env: prod}}\nspec: {revoked: ${revoked}}\n`
  await scenario.fleet.run(['apply', '-f', '-'], { stdin: cluster(true) })
  await eventually('status says it', async () => (await site().agent.status()).link?.error?.code === 'revoked')
  expect(await scenario.fleet.run(['describe', 'cluster', 'pier'])).toMatch(/revoked/i)
  await site().cluster.kubectl(['delete', 'configmap', 'a', '-n', 'base'])
  await eventually(
    'still enforced',
    async () => (await site().cluster.kubectl(['get', 'configmap', 'a', '-n', 'base', '-o', 'name'])).trim() === 'configmap/a',
  )
  await scenario.fleet.run(['apply', '-f', '-'], { stdin: cluster(false) })
  await site().agent.start() // rather than waiting for its slow retry
  const commit = await scenario.push({ 'base/a.yaml': configMapYaml('a', { value: 'after the pardon' }) })
  await scenario.settled('pier', ['base'], { commit })
}, 60_000)

test('PL11 an agent of another protocol version is told both versions', async () => {
  const response = await fetch(`${scenario.fleet.serverUrl}/agent/v1/desired`, { headers: { 'skerry-protocol': '99' } })
  expect(response.status).toBe(426)
  const problem = (await response.json()) as { code: string; detail: string; remedy: string }
  expect(problem.code).toBe('protocol_unsupported')
  expect(problem.detail).toContain('99')
  expect(problem.detail).toContain('1')
})
