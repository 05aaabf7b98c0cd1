// `skerry install` and `skerry uninstall` without a cluster: manifests against the chart, refusals, questions, and what
// is asked of kubectl.
import { expect, test } from 'bun:test'
import { parseYamlDocuments } from '../../shared/adapters/yaml.ts'
import type { K8sObject } from '../../shared/kube/object.ts'
import { CLAIM_NAMESPACE, renderChart, type Values } from '../support/chart-kit.ts'
import { type CliSetup, runCliWith } from '../support/cli-run.ts'

const objectsOf = (text: string): K8sObject[] => parseYamlDocuments(text, { file: 'out' }).documents.map(({ value }) => value as K8sObject)
const sorted = (objects: readonly K8sObject[]) => objects.toSorted((a, b) => (a.kind < b.kind ? -1 : 1))

const DIGEST = `sha256:${'0'.repeat(64)}`

test.each<[string[], Values]>([
  [[], {}],
  [
    ['--image', `registry.example.com:5000/skerry-server@${DIGEST}`, '--storage', '5Gi', '--storage-class', 'fast'],
    {
      image: { repository: 'registry.example.com:5000/skerry-server', digest: DIGEST },
      persistence: { size: '5Gi', storageClass: 'fast' },
    },
  ],
  [
    ['--url', 'https://skerry.example.com/', '--tls-secret', 'tls', '--ingress-class', 'nginx', '--service-type', 'LoadBalancer'],
    {
      externalUrl: 'https://skerry.example.com',
      tls: { existingSecret: 'tls' },
      ingress: { enabled: true, className: 'nginx' },
      service: { type: 'LoadBalancer', port: 443 },
    },
  ],
])('IK12 %j prints the objects of the chart for the same values', async (args, values) => {
  const { code, out } = await runCliWith(['install', '--dry-run', ...args])
  expect(code).toBe(0)
  const [namespace, ...printed] = objectsOf(out.replaceAll('-dev', ''))
  expect(namespace).toMatchObject({ kind: 'Namespace', metadata: { name: CLAIM_NAMESPACE } })
  const own = printed.map(({ metadata: { annotations, ...metadata }, ...rest }) => {
    expect(annotations).toEqual({ 'meta.helm.sh/release-name': 'skerry', 'meta.helm.sh/release-namespace': CLAIM_NAMESPACE })
    return { ...rest, metadata }
  })
  expect(sorted(own as K8sObject[])).toEqual(sorted(renderChart('skerry', 'skerry', values)))
})

test.each([
  [['--url', 'skerry.example.com'], '--url'],
  [['--url', 'http://a.example.com', '--tls-secret', 'tls'], 'https'],
  [['--ingress-class', 'nginx'], '--url'],
  [['--namespace', 'A'], '--namespace'],
  [['--storage', '10'], '--storage'],
  [['--tls-secret', '--x'], '--tls-secret'],
])('IK12 install %j is refused before the cluster is asked', async (args, named) => {
  const { code, err } = await runCliWith(['install', ...args], { run: () => Promise.reject(new Error('asked')) })
  expect([code, err.includes(named)]).toEqual([2, true])
})

/** A kubectl that answers by the first verb that fits; `asked` has what was asked. */
function kubectl(answers: Record<string, string | { err: string }>) {
  const asked: string[] = []
  const run: NonNullable<CliSetup['run']> = async (command) => {
    const line = command.slice(1).join(' ')
    asked.push(line)
    const answer = Object.entries(answers).find(([part]) => line.includes(part))?.[1] ?? ''
    return typeof answer === 'string' ? { code: 0, out: answer, err: '' } : { code: 1, out: '', err: answer.err }
  }
  return { asked, run }
}
const FOUND = {
  'get statefulset': 'statefulset.apps/skerry\nservice/skerry\n',
  'get persistentvolumeclaim': 'persistentvolumeclaim/data-skerry-0\n',
}

test('IK12 install names the cluster of --context, leaves a namespace that exists alone, and says why a Pod does not start', async () => {
  const pod = { state: { waiting: { reason: 'ImagePullBackOff', message: 'no such image' } } }
  const { asked, run } = kubectl({
    'get namespace': 'namespace/skerry-system',
    rollout: { err: 'timed out' },
    'get pods': JSON.stringify({ items: [{ metadata: { name: 'skerry-0' }, status: { containerStatuses: [pod] } }] }),
  })
  const inputs: string[] = []
  const { code, err } = await runCliWith(['install', '--context', 'prod', '--kubeconfig', '/k', '--timeout', '9'], {
    run: (command, stdin) => {
      inputs.push(stdin)
      return run(command, stdin)
    },
  })
  expect([code, err.includes('skerry-0 is ImagePullBackOff: no such image')]).toEqual([1, true])
  expect(asked.every((line) => line.startsWith('--kubeconfig /k --context prod '))).toBe(true)
  expect(inputs.join('')).toContain('"kind":"StatefulSet"')
  expect(inputs.join('')).not.toContain('"kind":"Namespace"')
})

test('IK12 neither command touches a release of Helm', async () => {
  for (const verb of ['install', 'uninstall']) {
    const { asked, run } = kubectl({ 'get secrets': 'secret/sh.helm.release.v1.skerry.v1' })
    const { code, err } = await runCliWith([verb], { run })
    expect([code, err.includes('helm u')]).toEqual([1, true])
    expect(asked).toHaveLength(1)
  }
})

test('IK12 a missing kubectl is named', async () => {
  const { code, err } = await runCliWith(['install', '--kubectl', '/nonexistent/kubectl'], { run: async () => null })
  expect([code, err.includes('/nonexistent/kubectl')]).toEqual([1, true])
})

test.each<[string, string[], CliSetup, number, string[]]>([
  ['a script must say what it wants', [], {}, 2, []],
  ['--keep', ['--keep'], {}, 0, ['statefulset.apps/skerry', 'service/skerry']],
  ['--prune', ['--prune'], {}, 0, ['statefulset.apps/skerry', 'service/skerry', 'persistentvolumeclaim/data-skerry-0']],
  ['a no deletes nothing', [], { isTty: true, stdin: 'n\n' }, 1, []],
  ['a yes and a no keep the volume', [], { isTty: true, stdin: 'y\nn\n' }, 0, ['statefulset.apps/skerry', 'service/skerry']],
  [
    'two times yes',
    [],
    { isTty: true, stdin: 'y\ny\n' },
    0,
    ['statefulset.apps/skerry', 'service/skerry', 'persistentvolumeclaim/data-skerry-0'],
  ],
])('IK13 uninstall: %s', async (_, args, setup, exit, deleted) => {
  const { asked, run } = kubectl(FOUND)
  const { code, out, err } = await runCliWith(['uninstall', ...args], { ...setup, run })
  expect(code).toBe(exit)
  const command = asked.find((line) => line.startsWith('delete'))
  expect(command?.split(' ').filter((word) => word.includes('/')) ?? []).toEqual(deleted)
  expect(out).toBe(deleted.map((one) => `${one} deleted\n`).join(''))
  if (exit === 0) expect(err).toMatch(/Kept:\n.*(data-skerry-0|namespace)/)
})

test('IK13 uninstall says that there is no server', async () => {
  expect((await runCliWith(['uninstall', '--keep'], { run: kubectl({}).run })).code).toBe(1)
})
