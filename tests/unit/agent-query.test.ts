// `skerry-agent query`: SQL over the state of a site, beside a running agent, bounded, and nothing but reads of its
// views.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { agentFiles } from '../../agent/agent.ts'
import { runAgentCli } from '../../agent/cli/agent-cli.ts'
import type { AgentState } from '../../agent/state/agent-state.ts'
import { openAgentState } from '../../agent/state/sqlite-agent-state.ts'
import { tempDir } from '../support/temp-dir.ts'

const data = tempDir()
let state: AgentState

beforeAll(() => {
  state = openAgentState(agentFiles(data).state)
  const words = { sync: 'Synced', health: 'Degraded', reason: 'CrashLoop', message: 'restarts', sinceMs: 5 }
  state.widenInventory({ project: 'shop', service: 'web' }, [
    { ref: { group: 'apps', kind: 'Deployment', namespace: 'shop', name: 'web' }, apiVersion: 'apps/v1' },
    { ref: { group: '', kind: 'ConfigMap', namespace: 'shop', name: 'web' }, apiVersion: 'v1' },
  ])
  state.report([
    {
      kind: 'service',
      key: 'shop/web',
      doc: { ...words, objectCount: 2, healthyCount: 1, applied: { commit: 'c1', digest: 'd', atMs: 4 } },
    },
    { kind: 'object', key: 'shop/web/apps/Deployment/shop/web', doc: words },
    { kind: 'object', key: 'shop/web/rbac.authorization.k8s.io/ClusterRole//system:"odd"', doc: { ...words, health: 'Healthy' } },
  ])
})
afterAll(() => state.close())

async function query(...args: string[]) {
  let [out, err] = ['', '']
  const io = { env: {}, out: (text: string) => (out += text), err: (text: string) => (err += text), onStop: () => {} }
  const code = await runAgentCli(
    ['bun', 'skerry-agent', 'query', ...args, ...(args.includes('--views') ? [] : ['--data', data])],
    io as never,
  )
  return { code, out, err }
}

test('SQ8 views of a site have what its agent reported and manages, while the agent runs', async () => {
  expect((await query('SELECT project, service, health, applied_commit FROM services')).out).toBe(
    'PROJECT   SERVICE   HEALTH     APPLIED_COMMIT\nshop      web       Degraded   c1\n',
  )
  const { out } = await query("SELECT kind, namespace, name FROM objects WHERE health = 'Healthy'", '-o', 'json')
  expect(JSON.parse(out).items).toEqual([{ kind: 'ClusterRole', namespace: '', name: 'system:"odd"' }])
  expect((await query('SELECT kind, count(*) AS n FROM inventory GROUP BY kind ORDER BY kind', '--csv')).out.split(/\r?\n/)[1]).toBe(
    'ConfigMap,1',
  )
  expect((await query('--views')).out).toContain('applied_commit')
})

test.each([
  'SELECT * FROM outbox',
  'DELETE FROM services',
  'SELECT * FROM sqlite_schema',
  'SELECT load_extension(1) FROM services',
  'PRAGMA x',
])('SQ8 %s reaches nothing but views', async (sql) => expect(await query(sql)).toMatchObject({ code: 1, out: '' }))

test('SQ8 an answer has at most as many rows as asked for, and wrong options are named', async () => {
  expect((await query('SELECT name FROM inventory', '--limit', '1')).out).toContain('only the first 1 rows')
  for (const args of [[], ['SELECT name FROM inventory', '--limit', '0']]) expect((await query(...args)).code).toBe(1)
})
