// The runbook "The server is lost", as an operator does it: an encrypted archive, its key, an agent that knows newer
// revisions, and a person who confirms.
import { afterAll, expect, setDefaultTimeout, test } from 'bun:test'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { generateX25519Identity, identityToRecipient } from 'age-encryption'
import { postgresIsWanted } from '../../scripts/local-cluster/postgres.ts'
import type { RestorePlanView } from '../../shared/model/views.ts'
import { eventually } from '../support/kube-cluster.ts'
import { configMapYaml, type Scenario, serviceYaml, startScenario } from '../support/scenario.ts'
import { tempDir } from '../support/temp-dir.ts'

setDefaultTimeout(360_000)
const tail = (log: string) => log.split('\n').slice(-15).join('\n')
let scenario: Scenario | undefined
afterAll(() => scenario?.stop(), 60_000)

test.skipIf(postgresIsWanted())(
  'BK5 BK8 RP2 a lost server comes back from an archive, deletes nothing, and goes on after the confirmation',
  async () => {
    scenario = await startScenario({ sites: { oslo: { controllers: false } } })
    const { fleet, push, settled, sites } = scenario
    const { cluster, agent } = sites['oslo'] as NonNullable<(typeof sites)[string]>
    const names = async () =>
    (await cluster.kubectl(['get', 'configmap', '-n', 'web', '-o', 'jsonpath={range .items[*]}{.metadata.name}={.data.v} {end}'])).trim().split(' ').filter((one) => !one.startsWith('kube-root')) // biome-ignore format: one line
    await fleet.run(['apply', '-f', '-'], { stdin: serviceYaml({ name: 'web' }) })
    await settled('oslo', ['web'], { commit: await push({ 'web/a.yaml': configMapYaml('a', { v: '1' }) }) })

    const [place, key] = [join(tempDir(), 'backups'), join(tempDir(), 'backup.key')]
    const identity = await generateX25519Identity()
    writeFileSync(key, `# secret\n${identity}\n`, { mode: 0o600 })
    const recipients = await identityToRecipient(identity)
    await fleet.run(['backup', 'create', '--data', fleet.dataDir, '--into', place, '--recipients', recipients])
    // A change that no backup has: the agent knows more than the server that comes back.
    await settled('oslo', ['web'], { commit: await push({ 'web/b.yaml': configMapYaml('b', { v: '2' }) }) })

    agent.pause() // else its wait for a server that is away grows to a minute
    await fleet.killServer()
    rmSync(fleet.dataDir, { recursive: true })
    const [archive = ''] = (await fleet.run(['backup', 'list', place])).trim().split('\n').at(-1)?.split(' ') ?? []
    const path = join(place, archive)
    expect(archive).toMatch(/^skerry-\d{8}T\d{6}Z\.tar\.zst\.age$/)
    const refused = await fleet.skerry(['backup', 'restore', path, '--data', fleet.dataDir])
    expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining('--identity')])
    expect((await fleet.skerry(['backup', 'verify', path, '--identity', key])).code).toBe(0)
    await fleet.run(['backup', 'restore', path, '--identity', key, '--data', fleet.dataDir])
    await fleet.startServer()
    agent.resume()

    // The plan's text may name no cluster: a server that reads the repository before the agent calls has the newer
    // commit, too.
    const waits = async () => {
      const { clusters } = await fleet.api<RestorePlanView>('/restore')
      return clusters.some(({ cluster, behind, heard }) => cluster === 'oslo' && behind !== null && heard)
    }
    await eventually('the server waits for a person', waits, 120_000).catch((error) => {
      throw new Error(`${error.message}\nserver log:\n${tail(fleet.serverLog())}\nagent log:\n${tail(agent.log())}`)
    })
    expect(await fleet.run(['restore'])).toContain('1 of 1 cluster proved that their state is newer')
    expect(await names()).toEqual(['a=1', 'b=2'])
    // A yes is for the plan that was shown: while the agent tells more, the person is asked again.
    await eventually('a person confirms the plan', async () => (await fleet.skerry(['restore', 'confirm', '--yes'])).code === 0, 30_000)
    await agent.start() // it would ask again within two minutes
    const commit = await push({ 'web/c.yaml': configMapYaml('c', { v: '3' }) })
    await settled('oslo', ['web'], { commit, timeoutMs: 120_000 })
    expect(await names()).toEqual(['a=1', 'b=2', 'c=3'])
    expect((await fleet.run(['get', 'clusters'])).trim()).toMatch(/oslo +.*Online/i)
  },
)
