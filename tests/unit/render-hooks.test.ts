// Manifests without a name: of hooks they are rows, of anything else an error with its line.
import { expect, test } from 'bun:test'
import { naming } from '../support/naming.ts'
import { renderFiles } from '../support/render-files.ts'

const render = (yaml: string) =>
  renderFiles({
    project: 'web',
    service: 'shop',
    files: new Map([['a.yaml', new TextEncoder().encode(yaml)]]),
    namespace: 'shop',
    path: '.',
    commit: 'c'.repeat(40),
  })
const job = (annotations: string, args = '[]'): string => `apiVersion: batch/v1
kind: Job
metadata: { generateName: migrate-, annotations: { ${annotations} } }
spec: { template: { spec: { containers: [{ name: a, image: a, args: ${args} }] } } }
`

test.each(['skerry.dev/hook: pre-sync', 'argocd.argoproj.io/hook: PreSync', 'helm.sh/hook: "pre-install,pre-upgrade"'])(
  'HK9 a hook with generateName is a row whose name follows from its manifest: %s',
  (annotations) => {
    const [first, again, other] = [render(job(annotations)), render(job(annotations)), render(job(annotations, '[x]'))].map((result) =>
      result.kind === 'rendered' ? [...result.objects.keys()] : result.problems.map(({ message }) => message),
    )
    expect(first).toEqual([expect.stringMatching(/^object\/web\/shop\/batch\/Job\/shop\/migrate-[0-9a-f]{10}$/)])
    expect(again).toEqual(first as string[])
    expect(other).not.toEqual(first as string[])
  },
)

test('RN8 hooks and what is skipped are counted apart from the objects of the revision', () => {
  const map = (name: string, annotations = '{}') =>
    `apiVersion: v1\nkind: ConfigMap\nmetadata: { name: ${name}, annotations: ${annotations} }\n`
  const result = render(
    [map('a'), map('b', '{ skerry.dev/wave: "2" }'), job('skerry.dev/hook: post-sync'), map('t', '{ helm.sh/hook: test }')].join('---\n'),
  )
  expect(result).toMatchObject({ kind: 'rendered', count: 4, hooks: 2 })
})

test('HK9 two that are the same are one too many', () => {
  const result = render(`${job('skerry.dev/hook: sync')}---\n${job('skerry.dev/hook: sync')}`)
  expect(
    result.kind === 'failed' && result.problems.map(({ path, message }) => `${path}: ${message.replace(/-[0-9a-f]{10}/, '-…')}`),
  ).toEqual([naming('a.yaml:6:1: Job shop/migrate-… ', 'a.yaml:1:1')])
})

test.each([
  ['an ordinary object', 'a: b'],
  ['a skipped one', 'argocd.argoproj.io/hook: Skip'],
  ['a word that nobody knows', 'skerry.dev/hook: whenever'],
])('HK9 %s needs a name', (_, annotations) => {
  const result = render(job(annotations))
  expect(result.kind === 'failed' && result.problems).toEqual([
    {
      path: 'a.yaml:3:13',
      message: naming('Job', 'generateName', 'hooks', 'metadata.name'),
    },
  ])
})
