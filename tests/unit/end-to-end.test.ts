// That no end-to-end test of a server is left out when they run on PostgreSQL, and that the servers of those tests know
// of it.
import { expect, test } from 'bun:test'
import { SQLITE_ONLY, WITH_SERVER } from '../../scripts/end-to-end.ts'
import { importsOf, type SourceFile, typeScriptFiles } from '../support/source-files.ts'

const byPath = new Map(typeScriptFiles.map((file) => [file.path, file]))
const tests = typeScriptFiles.filter(({ path }) => /^tests\/e2e\/.*\.test\.ts$/.test(path))
const nameOf = ({ path }: SourceFile) => path.slice('tests/e2e/'.length, -'.test.ts'.length)

/** All that it is made of, through support and scripts, not through the product. */
function reach(file: SourceFile, seen = new Set<SourceFile>()): Set<SourceFile> {
  if (seen.has(file)) return seen
  seen.add(file)
  for (const { target, typeOnly } of importsOf(file)) {
    const next = target === null || typeOnly ? undefined : byPath.get(target)
    if (next !== undefined && /^(tests|scripts)\//.test(next.path)) reach(next, seen)
  }
  return seen
}

test('ST15 every end-to-end test that starts a server also runs with its store in PostgreSQL, and no other', () => {
  const asks = (file: SourceFile) => [...reach(file)].some(({ text }) => /\bpostgresIsWanted\(\)/.test(text))
  // `demo` runs the script as a user does, which is no import.
  const expected = tests
    .filter((file) => asks(file) || nameOf(file) === 'demo')
    .map(nameOf)
    .filter((name) => !(name in SQLITE_ONLY))
  expect(WITH_SERVER.toSorted()).toEqual(expected.toSorted())
})

test('ST15 an end-to-end test that starts a server without knowing of PostgreSQL is found', () => {
  const starts = /['"]server['"], '--data'|startServer\(\{/
  const own = tests.filter(({ text }) => starts.test(text)).map(nameOf)
  expect(own.filter((name) => !WITH_SERVER.includes(name) && !(name in SQLITE_ONLY))).toEqual([])
  expect(Object.keys(SQLITE_ONLY).filter((name) => !tests.some((file) => nameOf(file) === name))).toEqual([])
})
