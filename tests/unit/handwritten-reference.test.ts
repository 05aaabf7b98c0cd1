// docs/reference/reasons.md and annotations.md have every reason, event and annotation of the source, and no other.
import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { AGENT_CATALOGUE } from '../../scripts/docs-pages/agent-messages.ts'
import { SERVER_CATALOGUE } from '../../scripts/docs-pages/server-messages.ts'
import { reasonOf } from '../../shared/runtime/messages.ts'
import { productFiles, ROOT, withoutComments } from '../support/source-files.ts'

const page = readFileSync(join(ROOT, 'docs/reference/reasons.md'), 'utf8')
const listed = new Set([...page.matchAll(/^\| `([A-Z]\w+)`/gm)].map(([, name = '']) => name))
const code = productFiles.map(({ path, text }) => ({ path, text: withoutComments(text) }))

/** Files whose reasons people see; elsewhere a reason is one of an API server, or stays inside. */
const SEEN = [
  /^server\/(fleet|ingest|http|access|store\/status)\//,
  /^agent\/reconcile\/(report|claim|plan\/(gates|order|problem-text|left-alone))/,
  /^agent\/reconcile\/(apply\/(record|rounds|hook-rounds|prune-rounds|admission-warnings)|edge-orders|reconcile-loop)/,
]
const PATTERNS = [/\breason: '([A-Z]\w+)'/g, /\b(?:news|warning)\('([A-Z]\w+)/g, /\bclosed\(\s*'([A-Z]\w+)'/g]

test('AP11 the page has every reason and every event that the source gives', () => {
  const given = code
    .filter(({ path }) => SEEN.some((pattern) => pattern.test(path)))
    .flatMap(({ path, text }) => PATTERNS.flatMap((pattern) => [...text.matchAll(pattern)].map(([, name = '']) => ({ path, name }))))
  expect(given.filter(({ name }) => !listed.has(name)).map(({ path, name }) => `${path}: ${name}`)).toEqual([])
  expect(given.length).toBeGreaterThan(60)
})

test('AP11 every reason and event of the page is in the source', () => {
  const tables = [...Object.values(AGENT_CATALOGUE), ...Object.values(SERVER_CATALOGUE)]
  const inCatalogue = new Set(tables.flatMap((table) => Object.keys(table).map(reasonOf)))
  expect([...listed].filter((name) => !inCatalogue.has(name) && !code.some(({ text }) => text.includes(`'${name}'`)))).toEqual([])
})

test('AO2 HK1 IV4 the page of annotations has every key of ours, and keys of others that the source reads', () => {
  const text = readFileSync(join(ROOT, 'docs/reference/annotations.md'), 'utf8')
  const keys = new Set([...text.matchAll(/`(?:[a-z0-9-]+\.)+[a-z]+\/[a-z-]+`/g)].map(([key]) => key.slice(1, -1)))
  const inSource = (key: string) => code.some(({ text: source }) => source.includes(`'${key}'`))
  const ours = new Set(code.flatMap(({ text: source }) => [...source.matchAll(/'(skerry\.dev\/[a-z-]+)'/g)].map(([, key = '']) => key)))
  // The name of the agent as a reporter of events, and a service option that a newer server set.
  for (const other of ['skerry.dev/agent', 'skerry.dev/unreadable']) ours.delete(other)
  expect([...keys].filter((key) => !inSource(key))).toEqual([])
  expect([...ours].filter((key) => !keys.has(key))).toEqual([])
})
