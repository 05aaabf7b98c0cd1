// Content that is made to be slow or large to read: what a person with push access to a repository can try.
import type { FileChanges } from '../local-cluster/git-http-server.ts'

export interface HostileCase {
  name: string
  /** Below the folder of that name. */
  files: FileChanges
  /** The service that renders them. */
  spec?: Record<string, unknown>
  /** In a repository of its own. */
  alone?: boolean
}

const MIB = 1024 * 1024
const HEAD = 'apiVersion: v1\nkind: ConfigMap\nmetadata: { name: a, namespace: a }\n'
const doubled = (length: number) => `{% assign s = "a" %}{% for i in (1..${Math.log2(length)}) %}{% assign s = s | append: s %}{% endfor %}`
const manyKeys = Array.from({ length: 20_000 }, (_, n) => `k${n}: 1`).join(', ')
const merges = `${HEAD}data:\n  a: &a {${manyKeys}}\n${Array.from({ length: 1_000 }, (_, n) => `  b${n}: {<<: *a}\n`).join('')}`
const overlay = (resources: string) => `resources: [${resources}]\n`

export const HOSTILE: readonly HostileCase[] = [
  { name: 'imports', files: { 'main.ts': 'f<(a: '.repeat(12_000) }, spec: { render: { type: 'typescript' } } },
  { name: 'yaml-merges', files: Object.fromEntries(Array.from({ length: 20 }, (_, n) => [`a${n}.yaml`, merges])) },
  { name: 'yaml-documents', files: { 'a.yaml': `${HEAD}---\n`.repeat((15 * MIB) / (HEAD.length + 4)) } },
  { name: 'yaml-twice', files: { 'a.yaml': `${HEAD}data:\n${'  a: "1"\n'.repeat(MIB)}` } },
  {
    name: 'liquid-turns',
    files: Object.fromEntries(
      Array.from({ length: 50 }, (_, n) => [`a${n}.yaml.liquid`, '{% for i in (1..100000000) %}{{ i }}{% endfor %}']),
    ),
  },
  {
    name: 'liquid-text',
    files: {
      'a.yaml.liquid': `${doubled(2 ** 20)}{% for i in (1..1000) %}{% assign t = s | replace: "a", "b" %}{% endfor %}`,
      'b.yaml.liquid': `{{ ${'a['.repeat(60_000)}1${']'.repeat(60_000)} }}`,
    },
  },
  {
    name: 'patches',
    files: { 'a.yaml': `${HEAD}data: {}\n` },
    spec: { render: { patches: Array.from({ length: 8 }, () => ({ patch: 'a: 1\n'.repeat(50_000) })) } },
  },
  {
    name: 'chart',
    files: {
      'Chart.yaml': 'apiVersion: v2\nname: a\nversion: 1.0.0\n',
      'values.yaml': `${manyKeys.replaceAll(', ', '\n')}\n`,
      'templates/a.yaml': '{{ range until 200000000 }}{{ . }}{{ end }}\n',
    },
  },
  {
    name: 'kustomization',
    files: Object.fromEntries([
      ...Array.from({ length: 300 }, (_, n) => [`b${n}/kustomization.yaml`, overlay(n === 299 ? '' : `../b${n + 1}, ../b${n + 1}`)]),
      ['kustomization.yaml', overlay('b0')],
    ]),
  },
  {
    name: 'pack',
    alone: true,
    files: Object.fromEntries([
      ['a.yaml', `${HEAD}data: {}\n`],
      ['large', '\0'.repeat(80 * MIB)],
      ...Array.from({ length: 3_000 }, (_, n) => [`d${n % 50}/f${n}`, `${n}\n`]),
    ]),
  },
]

/** A Helm repository: an index with many charts (less than 2 MiB), one of which is a small archive that unpacks to 1
 *  GiB. */
export function hostileArchive(): { index: string; archive: Uint8Array<ArrayBuffer> } {
  const entry = (name: string) => `  ${name}:\n  - {apiVersion: v2, name: ${name}, version: 1.0.0, urls: [bomb.tgz]}\n`
  const index = `apiVersion: v1\nentries:\n${entry('bomb')}${Array.from({ length: 10_000 }, (_, n) => entry(`chart-${n}`)).join('')}`
  const head = Buffer.alloc(512)
  head.write('bomb/Chart.yaml', 0)
  head.write('0000644', 100)
  head.write((1024 * MIB).toString(8).padStart(11, '0'), 124)
  head.write('ustar', 257)
  head.write('0', 156)
  head.fill(' ', 148, 156)
  head.write(
    head
      .reduce((sum, byte) => sum + byte, 0)
      .toString(8)
      .padStart(6, '0'),
    148,
  )
  const zeros = Bun.gzipSync(Buffer.alloc(64 * MIB)) // members of a gzip file may follow each other
  return { index, archive: Buffer.concat([Bun.gzipSync(head), ...Array.from({ length: 16 }, () => zeros)]) }
}
