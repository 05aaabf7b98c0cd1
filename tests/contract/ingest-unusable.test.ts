// A repository that cannot be opened at all keeps nobody else waiting.
import { afterEach, test } from 'bun:test'
import { repositorySpecSchema } from '../../shared/model/resources.ts'
import { configMap, createIngestKit, type IngestKit } from '../support/ingest-kit.ts'
import { eventually } from '../support/kube-cluster.ts'

let kit: IngestKit
afterEach(() => kit.close())

test.each([
  ['ssh for the library', { git: { url: 'ssh://git@git.example/x.git', client: 'library' } }],
  ['a host that ssh does not accept', { git: { url: 'ssh://git@git_example/x.git' } }],
  ['a port that is none', { oci: { url: 'oci://registry.example:99999/x', tag: 'a' } }],
])('IN8 %s: after a restart all other repositories and services are looked at', async (_, spec) => {
  kit = await createIngestKit()
  const cluster = await kit.join('1')
  const key = { kind: 'Repository' as const, project: 'default', name: 'aaa' }
  await kit.store.applyResource(key, { labels: {}, spec: JSON.stringify(repositorySpecSchema.parse(spec)), nowMs: 1 })
  await kit.git.commit({ 'shop/a.yaml': configMap('a', '1') }, 'first')
  await kit.repository()
  await kit.service()
  await kit.service({ source: { repository: 'aaa', path: '.' } }, 'lost')
  await kit.git.commit({ 'shop/a.yaml': configMap('a', '2'), 'shop/b.yaml': configMap('b', '2') }, 'second')
  await kit.store.setRepositoryState('default', 'apps', { commit: null, fetchedMs: null, tag: null, error: null })
  const stopping = new AbortController()
  const running = kit.restarted(stopping.signal).run()
  try {
    await eventually('the others are read', async () => (await kit.pull(cluster)).includes('object/default/shop//ConfigMap/shop/b'))
    await eventually('it is told', async () => (await kit.store.repositoryState('default', 'aaa')).error?.code === 'source_refused')
  } finally {
    stopping.abort()
    await running
  }
})
