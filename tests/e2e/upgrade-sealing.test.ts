// A server and an agent of a build that wrote rendered Secrets in clear are upgraded, the server first. The command
// that seals the fleet then cleans what the earlier build wrote: content store, shard files, kept renders, replica,
// state of the agent, and the next backup.
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { join } from 'node:path'
import { EARLIER, earlierBuild, type Half, lacksEarlier, THIS_BUILD } from '../../scripts/benchmarks/upgrade-run.ts'
import { createGitServer, type GitServer } from '../../scripts/local-cluster/git-http-server.ts'
import { createLocalFleet, type LocalAgent, type LocalFleet } from '../../scripts/local-cluster/local-fleet.ts'
import { CANARIES, createSearch, filesIn } from '../support/canaries.ts'
import { CLUSTER_START_TIMEOUT_MS, eventually, type KubeCluster, startKubeCluster } from '../support/kube-cluster.ts'
import { joinToken, repositoryYaml, serviceYaml } from '../support/scenario.ts'
import { tempDir } from '../support/temp-dir.ts'

setDefaultTimeout(120_000)
const lack = lacksEarlier(EARLIER.unsealed)
/** Includes the build of the earlier programs. */
const BUILD_MS = 300_000
const labels = { env: 'prod' }
const search = createSearch([CANARIES.manifest, CANARIES.config])

let git: GitServer
let cluster: KubeCluster
let fleet: LocalFleet
let agent: LocalAgent
const folders: Record<Half, string> = { skerry: '', 'skerry-agent': '' }
const backups = tempDir()

/** Where a secret is found, as folder/…; the content of the repository is as it was committed. */
function found(folder: string): string[] {
  const clones = join(fleet.dataDir, 'git')
  const names = [...filesIn(folder)].filter(({ path, bytes }) => !path.startsWith(clones) && search('', bytes).length > 0)
  return [...new Set(names.map(({ path }) => path.slice(folder.length + 1).replace(/\/.*/, '')))].sort()
}
const files = () => [...found(fleet.dataDir).map((name) => `server/${name}`), ...found(agent.dataDir).map((name) => `agent/${name}`)].sort()

const value = async (kind: string, name: string, entry: string) => {
  const path = `jsonpath={.data.${entry}}`
  const text = await cluster.kubectl(['get', kind, name, '-n', 'shop', '-o', path]).catch(() => '')
  return kind === 'secret' ? Buffer.from(text, 'base64').toString() : text
}
async function change(number: string): Promise<void> {
  const secret = `stringData: {password: ${CANARIES.manifest}, number: "${number}"}`
  await git.commit({ 'shop/secret.yaml': `apiVersion: v1\nkind: Secret\nmetadata: {name: plain}\n${secret}\n` }, number)
  await fleet.webhook('apps')
  await eventually(`number ${number} arrives`, async () => (await value('secret', 'plain', 'number')) === number, 60_000)
}
const findings = async () => {
  const { stdout } = await fleet.skerry(['doctor', '--data', fleet.dataDir, '-o', 'json'])
  return (JSON.parse(stdout) as { findings: Array<{ code: string }> }).findings.map(({ code }) => code)
}
const status = async () => JSON.parse(await fleet.run(['secrets', 'status', '-o', 'json'])) as Record<string, unknown>
const backUp = (name: string) => fleet.run(['backup', 'create', '--data', fleet.dataDir, '--to', join(backups, name)])

describe.skipIf(lack !== null)(`SL9 a fleet of a build that did not seal${lack === null ? '' : ` (${lack})`}`, () => {
  beforeAll(async () => {
    const earlier = earlierBuild(EARLIER.unsealed)
    Object.assign(folders, { skerry: earlier, 'skerry-agent': earlier })
    git = await createGitServer({ dir: tempDir() })
    cluster = await startKubeCluster({ name: 'harbour', controllers: false })
    fleet = await createLocalFleet({ programs: (name) => [join(folders[name], name)] })
    await fleet.startServer()
    const derived = 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: derived}\ndata: {url: "https://x:{{ config.password }}@db"}\n'
    await git.commit({ 'shop/derived.yaml.liquid': derived }, 'begin')
    const config = `---\napiVersion: skerry.dev/v1\nkind: Config\nmetadata: {name: vars}\nspec: {secrets: {password: "${CANARIES.config}"}}\n`
    const service = serviceYaml({ name: 'shop', labels, extra: 'configFrom: [{name: vars}]' })
    await fleet.run(['apply', '-f', '-'], { stdin: repositoryYaml('apps', git.url) + config + service })
    agent = await fleet.addAgent({ name: 'harbour', cluster, joinToken: await joinToken(fleet, labels) })
    await change('one')
  }, CLUSTER_START_TIMEOUT_MS + BUILD_MS)
  afterAll(async () => {
    await fleet?.stop()
    await cluster?.stop()
    await git?.stop()
  })

  test('has its secrets in clear, in the places that are cleaned later', async () => {
    expect(await value('configmap', 'derived', 'url')).toBe(`https://x:${CANARIES.config}@db`)
    await backUp('before')
    expect(found(join(backups, 'before'))).not.toEqual([])
    expect(files()).toEqual(expect.arrayContaining(['server/content', 'server/shards']))
    expect(files().some((name) => name.startsWith('agent/'))).toBe(true)
  })

  test('goes on in clear with a newer server, which says so', async () => {
    await fleet.killServer()
    folders.skerry = THIS_BUILD
    await fleet.startServer()
    await change('two')
    expect(await status()).toMatchObject({ step: 'off', key: null })
    expect(await findings()).toContain('sealing_off')
  })

  test('is not served sealed rows while its agent is too old, and keeps what it has', async () => {
    await fleet.run(['secrets', 'seal', '--all', '--yes'])
    await eventually('the agent is refused', async () => {
      const { link } = await agent.status()
      return link?.error?.code === 'protocol_unsupported'
    })
    expect(await value('secret', 'plain', 'number')).toBe('two')
    expect(await status()).toMatchObject({ step: 'finished', done: false, left: [], replicas: { count: 1, first: ['harbour'] } })
  })

  test('has nothing in clear after its agent is upgraded: no file of server or agent, no new backup, no finding', async () => {
    folders['skerry-agent'] = THIS_BUILD
    await agent.start()
    await eventually('all is sealed', async () => (await status())['done'] === true, 60_000)
    await change('three')
    await eventually('no file has a secret', async () => {
      const left = files()
      if (left.length > 0) throw new Error(left.join(', '))
      return true
    })
    await backUp('after')
    expect(found(join(backups, 'after'))).toEqual([])
    for (const log of [fleet.serverLog(), agent.log()]) expect(search('log', Buffer.from(log))).toEqual([])
    const codes = await findings()
    for (const code of ['sealing_off', 'sealing_unfinished', 'secret_clear', 'backup_clear']) expect(codes).not.toContain(code)
    expect(await value('configmap', 'derived', 'url')).toBe(`https://x:${CANARIES.config}@db`)
  })
})
