// The agent as a service of a node with a real systemd: installed, hardened, restarted, upgraded, removed, while it
// takes commits to a cluster.
import { afterAll, expect, setDefaultTimeout, test } from 'bun:test'
import { copyFileSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { eventually, startKubeCluster } from '../support/kube-cluster.ts'
import { configMapYaml, joinToken, serviceYaml, startScenario } from '../support/scenario.ts'
import { ROOT } from '../support/source-files.ts'
import { lacksSystemd, type SystemdNode, startSystemdNode } from '../support/systemd-node.ts'

setDefaultTimeout(180_000)
const UNIT = 'skerry-agent.service'
const AGENT = '/media/skerry-agent'
const undo: Array<() => unknown> = []
afterAll(async () => {
  for (const step of undo.reverse()) await step()
}, 60_000)
const lack = lacksSystemd()

/** What systemd says of the service, by property. */
const facts = (node: SystemdNode, ...names: string[]): string[] =>
  names.map((name) => node.must(['systemctl', 'show', '--value', '-p', name, UNIT]).trim())

test.skipIf(lack !== null)(
  `IK7 IK8 IK14 CU11 systemd runs the agent as its unit says, through its whole life${lack === null ? '' : ` (${lack})`}`,
  async () => {
    const { fleet, push, stop } = await startScenario({ sites: {} })
    undo.push(stop)
    const cluster = await startKubeCluster({ name: 'oslo', controllers: false })
    undo.push(() => cluster.stop())
    const node = await startSystemdNode()
    undo.push(() => node.stop())
    copyFileSync(join(ROOT, 'dist/skerry-agent'), join(node.shared, 'skerry-agent'))
    const value = () => cluster.kubectl(['get', 'configmap', 'a', '-n', 'web', '-o', 'jsonpath={.data.v}'])
    const arrives = async (v: string) => {
      await push({ 'web/a.yaml': configMapYaml('a', { v }) })
      await eventually(`the commit ${v}`, async () => (await value()) === v, 60_000).catch((error) => {
        throw new Error(`${error.message}\n${node.run(['journalctl', '-u', UNIT, '-n', '30', '--no-pager']).out}`)
      })
    }
    await fleet.run(['apply', '-f', '-'], { stdin: serviceYaml({ name: 'web', labels: { env: 'edge' } }) })

    node.must(['install', '-D', '-m', '600', '/dev/stdin', '/etc/rancher/k3s/k3s.yaml'], readFileSync(cluster.kubeconfigPath, 'utf8'))
    const token = await joinToken(fleet, { env: 'edge' })
    const said = node.must([AGENT, 'install', '--server', fleet.serverUrl, '--cluster', 'oslo', '--join-token', token])
    expect(said).toContain('/etc/rancher/k3s/k3s.yaml (k3s)')
    await arrives('1')

    const [pid = '', user, isEnabled] = facts(node, 'MainPID', 'DynamicUser', 'UnitFileState')
    expect([user, isEnabled]).toEqual(['yes', 'enabled'])
    const status = node.must(['cat', `/proc/${pid}/status`])
    expect(status).toMatch(/^Uid:\t6\d{4}\t/m) // of the range of dynamic users
    expect(status).toMatch(/^CapEff:\t0{16}$/m)
    expect(status).toMatch(/^CapBnd:\t0{16}$/m)
    expect(status).toMatch(/^NoNewPrivs:\t1$/m)
    expect(status).toMatch(/^Seccomp:\t2$/m)
    const writable = node
      .must(['sh', '-c', `awk '$6 ~ /(^|,)rw(,|$)/ {print $5}' /proc/${pid}/mountinfo`])
      .trim()
      .split('\n')
    expect(writable.filter((path) => !/^\/(proc|dev|run|tmp|var\/tmp|var\/lib\/(private\/)?skerry-agent)(\/|$)/.test(path))).toEqual([])

    // New credentials of the node, and no join token: as after a month.
    node.must(['rm', '/etc/skerry-agent/join-token.env'])
    node.must([
      'sh',
      '-c',
      'cat /etc/rancher/k3s/k3s.yaml >/tmp/new && echo "# renewed" >>/tmp/new && cat /tmp/new >/etc/rancher/k3s/k3s.yaml',
    ])
    await eventually('the agent is started again', async () => !['0', pid].includes(facts(node, 'MainPID')[0] ?? ''), 30_000)
    await arrives('2')

    copyFileSync(join(ROOT, 'dist/skerry-agent'), join(node.shared, 'newer'))
    expect(node.must(['/media/newer', 'upgrade'])).toContain('upgraded /usr/local/bin/skerry-agent')
    await arrives('3')
    expect(facts(node, 'NRestarts')).toEqual(['0'])

    // A version whose native library is damaged can upgrade and cannot run: what it replaced is installed again.
    const installed = () => node.must(['sha256sum', '/usr/local/bin/skerry-agent']).split(' ')[0]
    const good = installed()
    const program = readFileSync(join(ROOT, 'dist/skerry-agent'))
    const library = program.indexOf(readFileSync(join(ROOT, 'build/crsqlite.so')))
    expect(library).toBeGreaterThan(0)
    writeFileSync(join(node.shared, 'broken'), program.fill(0, library, library + 4_096), { mode: 0o755 })
    const refusal = node.run(['/media/broken', 'upgrade'])
    expect([refusal.code === 0, installed()]).toEqual([false, good])
    expect(refusal.err).toContain('the previous one runs again')
    await arrives('4')

    node.must(['systemctl', 'kill', '-s', 'KILL', UNIT])
    await arrives('5')

    expect(node.must([AGENT, 'uninstall'])).toContain('kept /var/lib/skerry-agent')
    expect(node.run(['systemctl', 'is-active', UNIT]).out.trim()).toBe('inactive')
    const left =
      'ls -d /etc/skerry-agent* /usr/local/bin/skerry-agent* /etc/systemd/system/skerry-agent* /var/lib/private/skerry-agent/* 2>/dev/null || true'
    expect(node.must(['sh', '-c', left])).toMatch(
      /^\/var\/lib\/private\/skerry-agent\/agent-keys\.json\n\/var\/lib\/private\/skerry-agent\/agent\.sqlite\n/,
    )
    expect(await value()).toBe('5')
  },
)
